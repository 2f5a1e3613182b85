"""Each sentence of Operators on what takes the time: where it holds, and where it doesn't."""

from __future__ import annotations

from tests.model.work.operator_events import BF16, kernel, launch, operator
from tests.support.claims import Claim, ReadSentences, read_sentences
from tests.support.traces import read

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
CORES = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off"


def of(*calls: tuple[str, float, float, str], device: bool = True) -> ReadSentences:
    """Read the sentences about operators: name, us on the host, us of their kernel, and its name."""
    events, at = [], 0.0
    for number, (name, host, work, kernel_name) in enumerate(calls, 1):
        inputs = {"dims": [[512, 512], [512, 512]], "types": [BF16, BF16]}
        events.append(operator(name, at, host, **inputs))
        if device:
            events += [launch(at + 1, number), kernel(kernel_name, at + 20, work, number)]
        at += host + work + 40
    return lambda: read_sentences("operators", read(events, deviceProperties=[H100]))


CLAIMS = [
    Claim(
        "{names} {rank}: {share} of operator {time}.",
        r"sort is the top operator: 90% of operator GPU time\.",
        of(("aten::sort", 10, 900, "k"), ("aten::add", 10, 100, "k")),
        "it takes as long on the host, but less on the GPU",
        of(("aten::sort", 10, 100, "k"), ("aten::add", 10, 900, "k")),
    ),
    Claim(
        "{share} of the {time} uses {cores}.",
        r"None of the eligible GPU time uses Tensor Cores\.",
        of(("aten::mm", 10, 900, "ampere_sgemm_128x64_tn")),
        "its kernel uses them",
        of(("aten::mm", 10, 900, CORES)),
    ),
    Claim(
        "No operator took any time.",
        "No operator took any time.",
        of(("aten::sort", 0, 0, "k"), device=False),
        "one of them does",
        of(("aten::sort", 1, 0, "k"), device=False),
    ),
]

_REPLAYED = (
    "operators that graphs replayed: tests/views/serving/test_origins.py and tests/corpus draw and record them"
)

NO_CLAIMS = {
    "{name} is the top replayed operator: {share} of the time of graph replays.": _REPLAYED,
    "Which operators the graphs replayed is unknown.": _REPLAYED,
    "These calls launched nothing, and contain no compiled kernel.": "an empty table",
}
"""Templates that say nothing of who, why, or how much, or whose recordings are drawn elsewhere."""
