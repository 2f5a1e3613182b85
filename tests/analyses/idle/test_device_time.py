"""What the time of a device goes to, part by part."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.idle.device_time import (
    DEVICE_TIME_CATEGORIES,
    device_step_times,
    device_time,
    device_time_lanes,
    find_moment,
)
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace

OVERLAP = """
host  user_annotation  ProfilerStep#1                          0  100
host  cuda_runtime     cudaLaunchKernel                        1    4  correlation=1
host  cuda_runtime     cudaLaunchKernel                        6    4  correlation=2
host  cuda_runtime     cudaMemcpyAsync                        11    4  correlation=3
host  cpu_op           aten::mm                               16   53
host  cuda_runtime     cudaLaunchKernel                       60    8  correlation=4
gpu0  kernel           gemm                                   10   20  correlation=1 stream=7
gpu9  kernel           ncclDevKernel_AllReduce_Sum            20   25  correlation=2 device=0 stream=9
gpu8  gpu_memcpy       Memcpy_HtoD                            40   10  correlation=3 device=0 stream=8
gpu0  kernel           relu                                   70   30  correlation=4 stream=7
"""


def parts(trace: Trace, device: int = 0) -> list[tuple[float, float, str, str]]:
    """Return the parts of a device's time: (begin, end in us, category, name of the row)."""
    found = device_time(trace, device)
    columns = (found.begin.tolist(), found.end.tolist(), found.category.tolist(), found.row.tolist())
    return [
        (begin / 1000, end / 1000, DEVICE_TIME_CATEGORIES[category], name_of(trace, row) if row >= 0 else "")
        for begin, end, category, row in zip(*columns, strict=True)
    ]


def test_compute_hides_communication_and_communication_hides_copies() -> None:
    assert [part for part in parts(draw(OVERLAP)) if part[2] in DEVICE_TIME_CATEGORIES[:3]] == [
        (10, 30, "compute", "gemm"),
        (30, 45, "exposed_communication", "ncclDevKernel_AllReduce_Sum"),
        (45, 50, "exposed_copy", "Memcpy_HtoD"),
        (70, 100, "compute", "relu"),
    ]


def test_the_parts_tile_the_step_and_sum_to_its_breakdown() -> None:
    trace = draw(OVERLAP)
    found, times = device_time(trace, 0), device_step_times(trace, 0)
    assert (found.begin[1:] == found.end[:-1]).all()
    assert (found.begin[0], found.end[-1]) == (0, 100_000)
    sums = [int(found.length[found.category == code].sum()) for code in range(3)]
    assert sums == [int(column[0]) for column in (times.compute, times.communication, times.copies)]
    assert int(found.length[found.category >= 3].sum()) == int(times.idle[0])


def test_of_kernels_that_overlap_each_instant_counts_once_for_the_first() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1    0  100
    gpu0  kernel           long             10   50  stream=7
    gpu1  kernel           inside           20   10  device=0 stream=8
    gpu1  kernel           late             40   40  device=0 stream=8
    """)
    assert [part[:2] + part[3:] for part in parts(trace) if part[2] == "compute"] == [
        (10, 60, "long"),
        (60, 80, "late"),
    ]


def test_a_moment_is_its_part_and_the_whole_gap_around_it() -> None:
    trace = draw(OVERLAP)
    running = find_moment(trace, 0, 15_000, 15_001)
    assert (name_of(trace, running.part.row), running.step, running.gap) == ("gemm", "1", None)
    waiting = find_moment(trace, 0, 61_000, 61_001)
    assert DEVICE_TIME_CATEGORIES[waiting.part.category] == "launch_call"
    assert (waiting.part.begin, waiting.part.end) == (60_000, 68_000)
    assert waiting.gap is not None
    assert (waiting.gap.begin, waiting.gap.end) == (50_000, 70_000)
    assert [DEVICE_TIME_CATEGORIES[part.category] for part in waiting.gap.parts] == [
        "operator",
        "launch_call",
        "launch_latency",
    ]
    assert sum(part.end - part.begin for part in waiting.gap.parts) == 20_000
    assert [DEVICE_TIME_CATEGORIES[part.category] for part in waiting.gap.longest(2)] == [
        "operator",
        "launch_call",
    ]
    assert waiting.gap.longest(9) == list(waiting.gap.parts)
    for outside in (-1, 100_000):
        with pytest.raises(NotFoundError):
            find_moment(trace, 0, outside, outside + 1)
    with pytest.raises(NotFoundError):
        find_moment(trace, 3, 15_000, 15_001)


def test_a_stretch_stands_for_its_longest_part_of_a_category() -> None:
    trace = draw(OVERLAP)
    longest = find_moment(trace, 0, 0, 100_000)
    assert (longest.part.begin, longest.part.end) == (70_000, 100_000)
    operator = DEVICE_TIME_CATEGORIES.index("operator")
    found = find_moment(trace, 0, 0, 100_000, operator).part
    assert (found.category, found.begin, found.end) == (operator, 50_000, 60_000)
    with pytest.raises(NotFoundError):
        find_moment(trace, 0, 70_000, 100_000, operator)


def test_lanes_hold_each_part_once_by_track_and_category() -> None:
    trace = draw(f"""
    {OVERLAP}
    host2 cuda_runtime     cudaLaunchKernel   20    4  correlation=11
    host2 cuda_runtime     cudaLaunchKernel   50    4  correlation=12
    gpu4  kernel           gemm               30   10  correlation=11 stream=7
    gpu4  kernel           gemm               60   10  correlation=12 stream=7
    """)
    layout = device_time_lanes(trace, ((4, 21), (0, 20)))
    assert sorted(set(layout.track.tolist())) == [20, 21]
    for track, device in ((20, 0), (21, 4)):
        mine = layout.of_tracks([track])
        found = device_time(trace, device)
        for lane in mine.tolist():
            low, high = layout.bounds[lane : lane + 2]
            same = found.category == layout.depth[lane]
            assert layout.start[low:high].tolist() == found.begin[same].tolist()
            assert layout.end[low:high].tolist() == found.end[same].tolist()
            assert layout.rows[low:high].tolist() == found.row[same].tolist()
    assert layout.bounds[-1] == len(device_time(trace, 0).row) + len(device_time(trace, 4).row)
    assert len(idle_segments(trace, 4).begin) > 0
