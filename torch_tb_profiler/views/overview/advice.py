"""Findings in words: what was measured, the rule, what to do; a click opens the evidence."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.overview import recommendations as rules
from torch_tb_profiler.analyses.overview.recommendations import Finding
from torch_tb_profiler.base.units import format_ratio
from torch_tb_profiler.views._shared.text import Phrase, link, text
from torch_tb_profiler.views.overview.payload import Recommendation


class _Words(msgspec.Struct, frozen=True):
    """`text` is a template; a click on its `{value}` or `{subject}` opens `link`."""

    title: str
    text: str
    rule: str
    link: str


_WORDS = {
    "data_loading": _Words(
        "Load data in parallel",
        "{value} of the average step waits for the data loader. Worker processes can prepare the next batch "
        "while this one is computed: DataLoader(..., num_workers=4, pin_memory=True, "
        "persistent_workers=True).",
        f"data loading takes more than {rules.DATA_LOADING_SHARE:.0%} of the average step",
        link("trace"),
    ),
    "communication": _Words(
        "Hide or shrink communication",
        "{value} of the average step is communication that no kernel hides. Accumulate gradients over several "
        "batches, enlarge the batch, or compress gradients with a DDP communication hook.",
        f"communication that is not hidden takes more than {rules.COMMUNICATION_SHARE:.0%} of the average step",
        link("trace"),
    ),
    "data_parallel": _Words(
        "Use DistributedDataParallel",
        "The model runs in DataParallel on {count} devices from one process. DistributedDataParallel, "
        "one process per device, avoids copying the model in each step and GIL contention.",
        "DataParallel.forward was recorded and more than one device did work",
        link("operators", q="DataParallel"),
    ),
    "nccl_backend": _Words(
        "Use the NCCL backend",
        "Gradients are exchanged through {subject}, by way of host memory. These GPUs can exchange them "
        'directly: init_process_group("nccl").',
        "DistributedDataParallel runs on GPUs without NCCL",
        link("trace"),
    ),
    "low_utilization": _Words(
        "Give the GPU more to do",
        "GPU {subject} is busy for only {value} of the time. A larger batch, fewer synchronizing calls "
        "(.item(), .cpu()) or torch.compile raise the share.",
        f"a GPU runs kernels for less than {rules.LOW_UTILIZATION:.0%} of the time",
        link("trace"),
    ),
    "mixed_precision": _Words(
        "Let matrix products use Tensor Cores",
        "{value} of kernel time belongs to operators that can use Tensor Cores, but no kernel uses them. "
        "Mixed precision (torch.autocast) or TF32 (torch.set_float32_matmul_precision) would use them.",
        "the GPU has Tensor Cores, no kernel uses them, and eligible operators launched kernels",
        link("kernels"),
    ),
    "memory_limit": _Words(
        "Memory is nearly full",
        "Allocations on {subject} reach {value} of its memory. Activation checkpointing or mixed precision "
        "reduce memory use.",
        f"allocated memory peaks above {rules.MEMORY_SHARE:.0%} of the GPU's memory",
        link("memory"),
    ),
}


def recommendation(finding: Finding) -> Recommendation:
    """What to do about a finding."""
    words = _WORDS[finding.id]
    evidence = {
        "value": Phrase(format_ratio(finding.value), words.link),
        "count": Phrase(str(int(finding.value)), words.link),
        "subject": Phrase(finding.subject, words.link),
    }
    return Recommendation(
        id=finding.id,
        severity=finding.severity,
        title=(Phrase(words.title, words.link),),
        text=text(words.text, **evidence),
        rule=words.rule,
        gain_ns=finding.gain_ns,
    )
