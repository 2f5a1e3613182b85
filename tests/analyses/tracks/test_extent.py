"""The time range of a trace without absurd times, and the range that its timeline opens with."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.tracks.extent import extent, opening_extent

DAY_US = 24 * 3600 * 1_000_000
LAST = 30_000
"""ns: the end of the last event below whose time can be true."""

WORK = "host cpu_op aten::mm 10 40\ngpu kernel gemm 60 30 stream=7"
SPAN = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
MARK = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 90_000}
USED = {"ph": "C", "name": "gpu memory", "pid": 1, "tid": 1, "ts": 80_000, "args": {"used": 5}}


@pytest.mark.parametrize(
    ("event", "end", "outside"),
    [
        (f"host cpu_op x {6 * DAY_US} 10", (6 * DAY_US + 10) * 1000, 0),
        (f"host cpu_op x {7 * DAY_US} 10", LAST, 1),
        (f"host cpu_op x 10 {13 * DAY_US}", (13 * DAY_US + 10) * 1000, 0),
        (f"host cpu_op x 10 {15 * DAY_US}", LAST, 1),
    ],
)
def test_a_week_after_the_start_or_an_end_two_weeks_after_it_lies_outside(
    event: str, end: int, outside: int
) -> None:
    found = extent(draw(f"host cpu_op a 0 10\nhost cpu_op b 20 10\n{event}"))
    assert (found.begin, found.end, found.outside) == (0, end, outside)


@pytest.mark.parametrize(("days", "outside"), [(7, 0), (8, 1)])
def test_what_begins_within_a_week_before_the_start_is_shown(days: int, outside: int) -> None:
    """Markers of the profiler's own window stand before the trace's start."""
    marker = {"ph": "X", "name": "Iteration Start: 1", "pid": 1, "tid": 1, "ts": -days * DAY_US, "dur": 1}
    found = extent(draw("host cpu_op a 0 10", marker))
    assert found.outside == outside
    assert found.begin == (-days * DAY_US * 1000 if outside == 0 else 0)


def test_a_trace_of_one_instant_has_a_window() -> None:
    assert extent(draw("host cpu_op a 0 0"))[:2] == (0, 1)


def test_a_timeline_opens_with_the_slices_wherever_marks_counters_and_the_profilers_own_span_lie() -> None:
    trace = draw(WORK, {**SPAN, "ts": 0, "dur": 70_000}, MARK, USED)
    assert extent(trace)[:2] == (0, 90_000_000)
    assert opening_extent(trace)[:2] == (10_000, 90_000)


def test_a_timeline_without_work_opens_with_the_entire_recording() -> None:
    trace = draw("", {**SPAN, "ts": 5, "dur": 20}, MARK)
    assert opening_extent(trace) == extent(trace)
    assert opening_extent(draw("host user_annotation a 5 0"))[:2] == (0, 1)


def test_a_slice_with_an_absurd_time_does_not_stretch_the_opening_range() -> None:
    far = 30 * DAY_US
    assert opening_extent(draw(f"{WORK}\nhost cpu_op late {far} 10"))[:2] == (0, 80_000)
