from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.traces import draw
from torch_tb_profiler.analyses.timeline.window import (
    busy_of_tracks,
    device_usage,
    family_of,
    totals_by_family,
    totals_by_name,
)
from torch_tb_profiler.analyses.tracks.lanes import count_lanes, lanes
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import Trace

STEP = """
host  cpu_op  aten::linear     0   50
host  cpu_op  aten::mm         5   20
host  cpu_op  aten::mm        30   10
gpu0  kernel  gemm            10   30  stream=7
gpu0  kernel  ncclDevKernel_AllReduce_Sum  30   30  stream=8
gpu0  gpu_memcpy  copy        70   10  stream=7
"""


def table(trace: Trace, begin: int, end: int) -> dict[str, tuple[int, int, int, int, int]]:
    layout = lanes(trace, False)
    sums = totals_by_name(trace, False, np.arange(len(layout.track)), begin, end)
    columns = (sums.count, sums.total, sums.self_time, sums.min, sums.max)
    return {
        trace.strings[code]: tuple(int(column[i]) for column in columns)  # type: ignore[misc]
        for i, code in enumerate(sums.name.tolist())
    }


def test_totals_are_clipped_to_the_window() -> None:
    sums = table(draw(STEP), 10_000, 35_000)
    assert sums["aten::mm"] == (2, 20_000, 20_000, 5_000, 15_000)
    assert sums["aten::linear"] == (1, 25_000, 5_000, 25_000, 25_000)
    assert sums["gemm"] == (1, 25_000, 25_000, 25_000, 25_000)
    assert "copy" not in sums


def test_a_slice_that_ends_where_the_window_begins_is_outside() -> None:
    assert set(table(draw(STEP), 80_000, 90_000)) == set()
    assert set(table(draw(STEP), 79_999, 90_000)) == {"copy"}


def test_device_work_by_family_is_clipped_likewise_and_calls_of_the_host_have_none() -> None:
    trace = draw(STEP)
    layout = lanes(trace, False)
    sums = totals_by_name(trace, False, np.arange(len(layout.track)), 20_000, 90_000)
    assert [(each.family, each.count, each.total) for each in totals_by_family(trace, sums)] == [
        ("communication", 1, 30_000), ("matrix product", 1, 20_000), ("memory", 1, 10_000),
    ]  # fmt: skip
    assert [family_of(trace, row) for row in (0, 3, 5)] == [None, "matrix product", "memory"]


def test_busy_idle_and_overlap_of_a_device() -> None:
    (device,) = device_usage(draw(STEP), 0, 100_000)
    assert (device.busy, device.idle) == (60_000, 40_000)
    assert (device.compute, device.communication, device.overlap, device.copy) == (30_000, 30_000, 10_000, 10_000)
    (part,) = device_usage(draw(STEP), 35_000, 75_000)
    assert (part.busy, part.compute, part.communication, part.overlap, part.copy) == (
        30_000,
        5_000,
        25_000,
        5_000,
        5_000,
    )


def test_busy_of_tracks_is_the_union() -> None:
    trace = draw("""
    host  cpu_op  a   0  20
    host  cpu_op  b  10  20
    host  cpu_op  c  50  10
    """)
    layout = lanes(trace, False)
    assert busy_of_tracks(layout, np.arange(len(layout.track)), 5_000, 55_000) == {0: 30_000}


slices = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 30), st.sampled_from("abc")), min_size=1, max_size=30
)


@settings(deadline=None)
@given(slices, st.integers(0, 60), st.integers(1, 60))
def test_self_times_in_a_window_sum_to_what_a_thread_is_busy(
    drawing: list[tuple[int, int, str]], begin: int, length: int
) -> None:
    trace = draw("\n".join(f"host cpu_op {name} {start} {lasting}" for start, lasting, name in drawing))
    layout = lanes(trace, False)
    origin = trace.trace_start_ns
    window = begin * 1000 - origin, (begin + length) * 1000 - origin
    all_lanes = np.arange(len(layout.track))
    inside = totals_by_name(trace, False, all_lanes, *window)
    start, end = np.maximum(trace.events.start, window[0]), np.minimum(event_ends(trace), window[1])
    assert int(inside.total.sum()) == int(np.maximum(end - start, 0).sum())
    if count_lanes(trace, False).side_slices == 0:
        assert int(inside.self_time.sum()) == sum(busy_of_tracks(layout, all_lanes, *window).values())
    tree = call_tree(trace)
    whole = totals_by_name(trace, False, all_lanes, -(10**9), 10**9)
    lasting = event_ends(trace) - trace.events.start
    alone = lasting.copy()
    children = np.flatnonzero(tree.parent >= 0)
    np.subtract.at(alone, tree.parent[children], lasting[children])
    expected = {name: int(alone[trace.events.name == name].sum()) for name in whole.name.tolist()}
    assert dict(zip(whole.name.tolist(), whole.self_time.tolist(), strict=True)) == expected
