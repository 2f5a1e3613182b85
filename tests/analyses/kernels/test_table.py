"""The kernel with the most time, and what keeps more blocks of a kernel off a multiprocessor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.kernels.table import LIMITERS, largest_kernel, occupancy_limiters
from torch_tb_profiler.analyses.tracks.sources import name_of

CARD = {
    "id": 0,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 65536,
}
KNOWN = "block=[1024,1,1] registers per thread=16 shared memory=0"


@pytest.mark.parametrize(
    ("launch", "device", "card", "limiter"),
    [
        (KNOWN, 0, CARD, "threads"),
        (KNOWN + " blocks per SM=1.5", 0, CARD, "threads"),  # two at most on some multiprocessor, as many as fit
        (KNOWN + " blocks per SM=0.5", 0, CARD, "grid"),
        (KNOWN, 1, CARD, None),  # nobody describes that card
        (KNOWN, 0, {**CARD, "regsPerMultiprocessor": None}, None),
        (KNOWN.replace("=16", "=0"), 0, CARD, None),  # no kernel runs without registers
        (KNOWN.replace(" shared memory=0", ""), 0, CARD, None),
        (KNOWN.replace("[1024,1,1]", "[1024]"), 0, CARD, None),
    ],
)
def test_a_limiter_needs_every_number(
    launch: str, device: int, card: dict[str, object], limiter: str | None
) -> None:
    trace = draw(f"gpu{device} kernel k 0 1 stream=7 {launch}", deviceProperties=[card])
    (code,) = occupancy_limiters(trace, np.array([0], np.int32)).tolist()
    assert (LIMITERS[code] if code >= 0 else None) == limiter


def test_the_largest_kernel_is_the_name_with_the_most_time_and_its_longest_launch() -> None:
    """One long launch takes less than many short ones of another name; copies are no kernels."""
    trace = draw("""
    gpu0  kernel      long      0  40  stream=7
    gpu0  kernel      short    50  20  stream=7
    gpu0  kernel      short    80  25  stream=7
    gpu0  kernel      short   110  15  stream=7
    gpu0  gpu_memcpy  Memcpy  130  90  stream=7
    """)
    found = largest_kernel(trace)
    assert found is not None
    assert (name_of(trace, found.row), trace.events.start[found.row], found.share) == ("short", 80_000, 0.6)


def test_there_is_no_largest_kernel_without_kernel_time() -> None:
    assert largest_kernel(draw("host cpu_op aten::mm 0 10")) is None
    assert largest_kernel(draw("gpu0 kernel k 0 0 stream=7")) is None
