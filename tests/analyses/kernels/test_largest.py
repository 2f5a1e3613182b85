"""The kernel with the most time, and the traces that would make that false."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.kernels.largest import largest_kernel
from torch_tb_profiler.analyses.tracks.sources import name_of


def test_it_is_the_name_with_the_most_time_and_its_longest_launch() -> None:
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


def test_without_a_kernel_that_takes_time_there_is_none() -> None:
    assert largest_kernel(draw("host cpu_op aten::mm 0 10")) is None
    assert largest_kernel(draw("gpu0 kernel k 0 0 stream=7")) is None
