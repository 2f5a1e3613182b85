"""When the host is late for all devices: what the gaps of the one schedule say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw, event
from torch_tb_profiler.analyses.overview.dominant_frames import dominant_frames
from torch_tb_profiler.analyses.overview.idle import (
    host_late_times,
    idle_times,
    long_stretches,
    short_stretches,
    submitted_idle_times,
)
from torch_tb_profiler.base.intervals import Intervals

STEP = "host user_annotation ProfilerStep#0 0 10000"


def kernel(start: int, duration: int, launch: int | None, number: int, **more: object) -> str:
    call = "" if launch is None else f"host cuda_runtime cudaLaunchKernel {launch} 5 correlation={number}\n"
    place = {"track": "gpu0", "kind": "kernel", "name": f"k{number}", "stream": 7, **more}
    track, kind, name, stream = (place[key] for key in ("track", "kind", "name", "stream"))
    return f"{call}{track} {kind} {name} {start} {duration} correlation={number} stream={stream}"


FIRST = kernel(10, 990, 2, 1)


@pytest.mark.parametrize(
    ("work", "late"),
    [
        # until the launch returns
        ([FIRST, kernel(4_000, 6_000, 3_990, 2)], [(0, 7), (1_000, 3_995)]),
        # a prefetch of a side stream, launched long before, takes no blame: the next kernel is what is waited for
        (
            [FIRST, kernel(4_000, 500, 100, 2, kind="gpu_memcpy", stream=9), kernel(4_600, 5_400, 4_590, 3)],
            [(0, 7), (1_000, 4_000), (4_500, 4_595)],
        ),
        # submitted before the gap: the device is late, not the host
        ([FIRST, kernel(4_000, 6_000, 500, 2)], [(0, 7)]),
        # another device works meanwhile, and gets nothing afterwards
        (
            [FIRST, kernel(4_000, 6_000, 3_990, 2), kernel(10, 3_000, 3, 3, track="gpu1")],
            [(0, 8), (3_010, 3_995)],
        ),
        # without a recorded launch, until the work begins
        ([FIRST, kernel(4_000, 6_000, None, 2)], [(0, 7), (1_000, 4_000)]),
        # nothing follows: for long, this is the host's own affair
        ([kernel(10, 8_000, 2, 1)], [(0, 7), (8_010, 10_000)]),
        ([kernel(10, 9_500, 2, 1)], [(0, 7)]),
    ],
)
def test_the_host_is_late_until_it_submits_what_a_device_waits_for(
    work: list[str], late: list[tuple[int, int]]
) -> None:
    found = host_late_times(draw("\n".join([STEP, *work])))
    assert list(zip((found.starts // 1000).tolist(), (found.ends // 1000).tolist(), strict=True)) == late


@pytest.mark.parametrize(("begin", "long"), [(2_000, False), (2_001, True)])
def test_a_stretch_of_more_than_a_millisecond_is_long(begin: int, long: bool) -> None:
    """From the end of the first kernel at 1,000 us to the start of the second."""
    alone = idle_times(draw(f"{STEP}\n{FIRST}\n{kernel(begin, 10_000 - begin, 500, 2)}"))
    assert (len(long_stretches(alone).starts), len(short_stretches(alone).starts)) == ((1, 1) if long else (0, 2))


@pytest.mark.parametrize(
    ("work", "late"),
    [
        # a copy waits for the kernel before it, which the device begins long after it was submitted
        ([FIRST, kernel(4_000, 6_000, 500, 2)], [(1_000, 4_000)]),
        # submitted in the gap: from then on, if that is longer than the latency of a launch, as up to 10 us
        ([FIRST, kernel(4_000, 6_000, 3_000, 2)], [(3_005, 4_000)]),
        # another device waits for the host meanwhile: the host could be what both wait for
        (
            [FIRST, kernel(4_000, 6_000, 500, 2), kernel(10, 2_000, 3, 3, track="gpu1")]
            + [kernel(4_500, 5_000, 3_500, 4, track="gpu1")],
            [(3_505, 4_000)],
        ),
        # no launch is recorded, or nothing follows: what it waits for is not known
        ([FIRST, kernel(4_000, 6_000, None, 2)], []),
        ([kernel(10, 9_500, 2, 1)], []),
    ],
)
def test_the_device_is_late_once_all_that_comes_next_is_submitted(
    work: list[str], late: list[tuple[int, int]]
) -> None:
    found = submitted_idle_times(draw("\n".join([STEP, *work])))
    assert list(zip((found.starts // 1000).tolist(), (found.ends // 1000).tolist(), strict=True)) == late


@pytest.mark.parametrize("lost", [False, True])
def test_a_slice_without_a_name_covers_no_gap_in_the_name_of_another(lost: bool) -> None:
    slow = event("host cpu_op load 1500 2000")
    if lost:
        del slow["name"]
    trace = draw("\n".join([STEP, FIRST, kernel(4_000, 6_000, 3_990, 2)]), slow)
    found = dominant_frames(trace, long_stretches(idle_times(trace)))
    assert [each.name for each in found] == ([] if lost else ["load"])


def test_of_a_gap_only_the_part_in_the_operator_counts_as_time_in_it() -> None:
    trace = draw("\n".join([STEP, FIRST, kernel(4_000, 6_000, 3_990, 2), "host cpu_op load 1500 2000"]))
    idle = long_stretches(idle_times(trace))
    (found,) = dominant_frames(trace, idle)
    assert (found.during.starts.tolist(), found.during.ends.tolist()) == ([1_500_000], [3_500_000])
    assert idle.starts[0] < 1_500_000
    assert idle.ends[0] > 3_500_000


@pytest.mark.parametrize(
    ("end", "slices", "found"),
    [
        (2_000, ["load 0 1"], ["load"]),  # exactly half
        (2_001, ["load 0 1"], []),
        (2_001, ["load 1 2"], ["load"]),  # the last half, and more of what follows
        (2_000, ["load 3 2"], []),  # as long, but later
        (2_000, ["outer 0 5", "inner 0 1"], ["inner"]),
        (2_000, ["first 0 1", "second 1 1"], ["first"]),
    ],
)
def test_a_stretch_is_named_after_the_shortest_slice_that_covers_half_of_it(
    end: int, slices: list[str], found: list[str]
) -> None:
    trace = draw("\n".join(f"host cpu_op {each}" for each in ["start 0 0", *slices]))
    stretch = Intervals(np.array([0]), np.array([end]))
    assert [each.name for each in dominant_frames(trace, stretch)] == found


def test_stretches_are_compared_with_many_slices_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch_tb_profiler.analyses.overview.dominant_frames._CELLS_AT_ONCE", 4)  # 2 stretches
    trace = draw("host cpu_op a 0 10\nhost cpu_op b 20 40")
    stretches = Intervals(np.array([0, 12, 20, 40, 70]) * 1_000, np.array([10, 18, 35, 60, 99]) * 1_000)
    found = {each.name: each.during.starts.tolist() for each in dominant_frames(trace, stretches)}
    assert found == {"a": [0], "b": [20_000, 40_000]}
