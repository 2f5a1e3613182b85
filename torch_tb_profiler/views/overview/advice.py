"""Findings in words: what was seen, the rule, what to do, where the proof is."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.overview import recommendations as rules
from torch_tb_profiler.analyses.overview.recommendations import Finding
from torch_tb_profiler.base.units import format_ratio


class Recommendation(msgspec.Struct, frozen=True):
    """`link` is a view with parameters (`operators?search=conv`) that proves the advice, or None.

    `gain_ns` is the most a step can get shorter by following it, None where it cannot be told.
    """

    id: str
    severity: str
    title: str
    text: str
    rule: str
    link: str | None
    gain_ns: float | None


class _Words(msgspec.Struct, frozen=True):
    title: str
    text: str
    rule: str
    link: str | None


_WORDS = {
    "data_loading": _Words(
        "Load data in parallel",
        "{value} of the average step waits for the data loader. Worker processes can prepare the next batch "
        "while this one is computed: DataLoader(..., num_workers=4, pin_memory=True, "
        "persistent_workers=True).",
        f"data loading takes more than {rules.DATA_LOADING_SHARE:.0%} of the average step",
        "overview",
    ),
    "communication": _Words(
        "Hide or shrink communication",
        "{value} of the average step is communication that no kernel hides. Accumulate gradients over several "
        "batches, enlarge the batch, or compress gradients with a DDP communication hook.",
        f"communication that is not hidden takes more than {rules.COMMUNICATION_SHARE:.0%} of the average step",
        "overview",
    ),
    "data_parallel": _Words(
        "Use DistributedDataParallel",
        "The model runs in DataParallel on {count} devices from one process. DistributedDataParallel, "
        "one process per device, avoids copying the model in each step and the lock of one interpreter.",
        "DataParallel.forward was recorded and more than one device did work",
        None,
    ),
    "nccl_backend": _Words(
        "Use the NCCL backend",
        "Gradients are exchanged through {subject}, by way of host memory. These GPUs can exchange them "
        'directly: init_process_group("nccl").',
        "DistributedDataParallel runs on GPUs without NCCL",
        None,
    ),
    "low_utilization": _Words(
        "Give the GPU more to do",
        "GPU {subject} is busy for only {value} of the time. A larger batch, fewer synchronizing calls "
        "(.item(), .cpu()) or torch.compile raise the share.",
        f"a GPU runs kernels for less than {rules.LOW_UTILIZATION:.0%} of the time",
        "overview",
    ),
    "mixed_precision": _Words(
        "Let matrix products use Tensor Cores",
        "{value} of kernel time belongs to operators that can use Tensor Cores, and none does. Mixed precision "
        "(torch.autocast) or TF32 (torch.set_float32_matmul_precision) would use them.",
        "the GPU has Tensor Cores, no kernel uses them, and eligible operators launched kernels",
        "overview",
    ),
    "memory_limit": _Words(
        "Memory is nearly full",
        "Allocations on {subject} reach {value} of its memory. Activation checkpointing or mixed precision "
        "make room.",
        f"allocated memory peaks above {rules.MEMORY_SHARE:.0%} of the GPU's memory",
        "memory",
    ),
}


def advise(finding: Finding) -> Recommendation:
    """The words for a finding."""
    words = _WORDS[finding.id]
    text = words.text.format(value=format_ratio(finding.value), count=int(finding.value), subject=finding.subject)
    return Recommendation(finding.id, finding.severity, words.title, text, words.rule, words.link, finding.gain_ns)
