"""Each sentence of Kernels on what takes the time: where it holds, and where it doesn't."""

from __future__ import annotations

from tests.support.claims import Claim, ReadSentences, launched, read_sentences
from tests.support.traces import draw

CORES = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_tensor16x8x16"


def of(*kernels: tuple[str, int]) -> ReadSentences:
    """Read the sentences about kernels, each of so many us."""
    lines, at = ["host user_annotation ProfilerStep#0 0 10000"], 100
    for number, (name, duration) in enumerate(kernels, 1):
        lines.append(launched(name, at, duration, at - 20, number))
        at += duration + 50
    return lambda: read_sentences("kernels", draw("\n".join(lines)))


CLAIMS = [
    Claim(
        "{name} {verb}: {share} of kernel time.{cores}",
        r"my_norm is the top kernel: 75% of kernel time\.",
        of(("my_norm", 3_000), ("my_copy", 1_000)),
        "another kernel takes longer",
        of(("my_norm", 1_000), ("my_copy", 3_000)),
    ),
    Claim(
        "{name} {verb}: {share} of kernel time.{cores}",
        r" 75% of kernel time uses Tensor Cores\.",
        of((CORES, 3_000), ("vectorized_elementwise_kernel", 1_000)),
        "the kernel on Tensor Cores takes a third as long",
        of((CORES, 1_000), ("vectorized_elementwise_kernel", 3_000)),
    ),
    Claim(
        "All kernels have zero duration.",
        "All kernels have zero duration.",
        of(("my_norm", 0)),
        "one of them takes time",
        of(("my_norm", 0), ("my_copy", 1)),
    ),
]

_GAUDI = "engines of a Gaudi card: tests/model/vendors/test_gaudi.py has each verdict and the next one"

NO_CLAIMS = {
    "{reason}.": "why nothing is said",
    "No kernel matches the filters.": "an empty table",
    "No kernels were recorded, only copies and memsets.": "an empty table",
    "{engines} are busy for {share} of the time ({classes}).": _GAUDI,
    "Nothing complete was recorded, so there is no busy share of the engines.": _GAUDI,
    "They are rarely idle, so the card is the bottleneck.": _GAUDI,
    "They are rarely idle, but most of the time only {network} works: communication is the bottleneck.": _GAUDI,
    "Graph building was not recorded, so the cause of their idle time is unknown.": _GAUDI,
    "They wait for the host, which builds and launches graphs in {share} of their idle time.": _GAUDI,
    "The host builds and launches graphs in {share} of their idle time; the cause of the rest is unknown.": _GAUDI,
}
"""Templates that say nothing of who, why, or how much, or whose recordings are drawn elsewhere."""
