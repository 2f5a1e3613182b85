from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.traces import draw, read
from torch_tb_profiler.analyses.timeline import boxes as level_of_detail
from torch_tb_profiler.analyses.timeline import boxes as levels_of_detail
from torch_tb_profiler.analyses.timeline.boxes import Boxes, Grid, boxes_in, pyramid
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.model.trace import Trace


def boxes(trace: Trace, bucket: int, begin: int = 0, end: int = 10**6) -> Boxes:
    return boxes_in(pyramid(trace, lanes, False), np.arange(len(lanes(trace, False).track)), begin, end, bucket)


def test_short_slices_of_a_bucket_share_a_box_that_shows_the_longest() -> None:
    trace = draw("""
    host  cpu_op  a    0    1
    host  cpu_op  b    1.5  2
    host  cpu_op  c    5    1
    host  cpu_op  d    9   20
    host  cpu_op  e   29    1
    """)
    merged = boxes(trace, 4096)
    name = [trace.strings[code] for code in trace.events.name[merged.row]]
    assert name == ["b", "c", "d", "e"]
    assert merged.count.tolist() == [2, 1, 1, 1]
    assert merged.busy.tolist() == [3000, 1000, 20000, 1000]
    assert merged.start.tolist() == [0, 5000, 9000, 29000]
    assert merged.end.tolist() == [3500, 6000, 29000, 30000]


def test_resolution_is_a_power_of_two_with_enough_buckets() -> None:
    assert Grid.of(0, 1000, 1000).resolution == 1
    assert Grid.of(0, 100, 1000).resolution == 1
    assert Grid.of(0, 10**9, 1000).resolution == 2**19
    assert Grid.of(-500, 500, 1).resolution == 512


picture = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)), min_size=1, max_size=60)


@settings(deadline=None)
@given(picture, st.integers(0, 9), st.integers(0, 400), st.integers(1, 600))
def test_no_slice_is_lost_and_busy_time_is_exact(
    drawing: list[tuple[int, int]], level: int, begin: int, length: int
) -> None:
    lines = [f"host cpu_op s{i} {start / 1000} {lasting / 1000}" for i, (start, lasting) in enumerate(drawing)]
    trace = draw("\n".join(["host cpu_op first 0 0", *lines]))
    bucket, end = 2**level, begin + length
    merged, layout = boxes(trace, bucket, begin, end), lanes(trace, False)
    touching = (layout.start < end) & (layout.end >= begin)
    assert merged.count.sum() == touching.sum()
    assert merged.busy.sum() == (layout.end - layout.start)[touching].sum()
    for lane, (low, high) in enumerate(zip(merged.bounds[:-1], merged.bounds[1:], strict=True)):
        starts, ends = merged.start[low:high], merged.end[low:high]
        assert (ends[:-1] <= starts[1:]).all()
        mine = slice(layout.bounds[lane], layout.bounds[lane + 1])
        exact = merge(layout.start[mine][touching[mine]], layout.end[mine][touching[mine]])
        # Within a box that merges slices busy time is exact; outside of boxes there is none.
        assert (covered_time(exact, starts, ends) == merged.busy[low:high]).all()
        # What lasts a bucket or longer stands alone; what is merged begins in one bucket.
        lasting = (layout.end - layout.start)[mine][touching[mine]]
        alone = merged.count[low:high] == 1
        assert (lasting >= bucket).sum() == (alone & (ends - starts >= bucket)).sum()
        assert ((ends - starts)[~alone] < 2 * bucket).all()
    shown = (layout.end - layout.start)[np.isin(layout.rows, merged.row)]
    if len(merged.row):
        assert shown.max() == (layout.end - layout.start)[touching].max()


@settings(deadline=None)
@given(picture, st.integers(0, 12), st.integers(0, 3))
def test_each_level_of_the_pyramid_is_the_direct_merge(
    drawing: list[tuple[int, int]], level: int, coarser: int
) -> None:
    lines = [f"host cpu_op s{i} {start} {lasting / 10}" for i, (start, lasting) in enumerate(drawing)]
    layout = lanes(draw("\n".join(["host cpu_op first 0 0", *lines])), False)
    fine = level_of_detail.merge_boxes(level_of_detail.unmerged_boxes(layout), 2**level)
    twice, once = (
        level_of_detail.merge_boxes(fine, 2 ** (level + coarser)),
        level_of_detail.merge_boxes(level_of_detail.unmerged_boxes(layout), 2 ** (level + coarser)),
    )
    for name in Boxes.__annotations__:
        assert getattr(twice, name).tolist() == getattr(once, name).tolist(), name


def test_levels_halve_and_a_wide_window_reads_the_coarsest_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels_of_detail, "MIN_BOXES_PER_LEVEL", 8)
    rng = np.random.default_rng(7)
    starts = np.cumsum(rng.integers(1, 30, 3000))
    trace = read(
        [
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": int(t), "dur": float(d)}
            for t, d in zip(starts, rng.exponential(2, 3000).clip(0, 25).round(3), strict=True)
        ]
    )
    levels = pyramid(trace, lanes, False)
    assert len(levels) > 3
    sizes = [len(boxes.row) for _, boxes in levels]
    assert all(2 * after <= before for before, after in zip(sizes, sizes[1:], strict=False))
    busy = int((lanes(trace, False).end - lanes(trace, False).start).sum())
    for bucket, boxes in levels:
        assert (int(boxes.count.sum()), int(boxes.busy.sum())) == (3000, busy)
        direct = level_of_detail.merge_boxes(level_of_detail.unmerged_boxes(lanes(trace, False)), bucket)
        assert boxes.row.tolist() == direct.row.tolist()


@settings(deadline=None)
@given(picture, st.integers(0, 8))
def test_up_to_any_column_the_boxes_are_as_busy_as_the_slices_within_one_column(
    drawing: list[tuple[int, int]], level: int
) -> None:
    lines = [f"host cpu_op s{i} {start / 1000} {lasting / 1000}" for i, (start, lasting) in enumerate(drawing)]
    trace = draw("\n".join(["host cpu_op first 0 0", *lines]))
    layout, bucket = lanes(trace, False), 2**level
    merged = boxes(trace, bucket)
    for lane, (low, high) in enumerate(zip(merged.bounds[:-1], merged.bounds[1:], strict=True)):
        mine = slice(layout.bounds[lane], layout.bounds[lane + 1])
        exact = merge(layout.start[mine], layout.end[mine])
        start, busy, alone = merged.start[low:high], merged.busy[low:high], merged.count[low:high] == 1
        columns = np.arange(0, 700, bucket)
        up_to = columns[:, None]
        shown = np.where(alone, np.clip(up_to - start, 0, busy), busy * (start < up_to)).sum(1)
        over = shown - covered_time(exact, np.full(len(columns), -(10**6)), columns)
        assert ((over >= 0) & (over < bucket)).all()
