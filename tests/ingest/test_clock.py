"""Which times cannot be true."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.ingest.kineto.clock import absurd
from torch_tb_profiler.model.kinds import ends
from torch_tb_profiler.model.trace import ABSENT

WEEK = 7 * 24 * 3600 * 10**9


@pytest.mark.parametrize(
    ("duration", "wrong"),
    [(WEEK, False), (WEEK + 1, True), (-WEEK, False), (-WEEK - 1, True), (ABSENT, False), (0, False)],
)
def test_nothing_lasts_more_than_a_week(duration: int, wrong: bool) -> None:
    assert absurd(np.array([0], np.int64), np.array([duration], np.int64)).tolist() == [wrong]


@pytest.mark.parametrize(("start", "wrong"), [(WEEK, False), (WEEK + 2, True), (-WEEK, False), (-WEEK - 2, True)])
def test_nothing_begins_more_than_a_week_from_the_rest(start: int, wrong: bool) -> None:
    """Measured from the median, which single events do not move."""
    starts = np.array([0, 0, 0, start], np.int64)
    assert absurd(starts, np.zeros(4, np.int64)).tolist() == [False, False, False, wrong]


def test_the_largest_numbers_do_not_overflow() -> None:
    starts = np.array([-(2**62), 2**62, 2**62], np.int64)
    assert absurd(starts, np.zeros(3, np.int64)).tolist() == [True, False, False]
    assert absurd(starts[:0], starts[:0]).tolist() == []


def test_an_absurd_time_is_noted_and_does_not_begin_the_trace() -> None:
    """A driver's zero among times of the day, and a wrapped duration."""
    day = 1_700_000_000_000_000
    lines = [f"host cpu_op a {day + i} 1" for i in range(3)]
    trace = draw("\n".join([*lines, "host cpu_op zero 0 1", f"host cpu_op long {day + 1} {10**12}"]))
    assert trace.trace_start_ns == day * 1000
    assert [note.count for note in trace.health if note.kind == "absurd_time"] == [2]


def test_a_negative_duration_is_noted_and_counts_as_empty() -> None:
    """One of zero is nothing unusual."""
    trace = draw("host cpu_op empty 0 0\nhost cpu_op negative 5 -3")
    assert ends(trace).tolist() == [0, 5_000]
    assert [note.count for note in trace.health if note.kind == "negative_duration"] == [1]
