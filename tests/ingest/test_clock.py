"""Which times cannot be true."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.ingest.kineto.clock import is_absurd_time, may_be_absurd, ns_from_value
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ABSENT

WEEK = 7 * 24 * 3600 * 10**9


@pytest.mark.parametrize(
    ("duration", "wrong"),
    [(WEEK, False), (WEEK + 1, True), (-WEEK, False), (-WEEK - 1, True), (ABSENT, False), (0, False)],
)
def test_a_duration_over_a_week_is_noted(duration: int, wrong: bool) -> None:
    assert is_absurd_time(np.array([0], np.int64), np.array([duration], np.int64)).tolist() == [wrong]


@pytest.mark.parametrize(("start", "wrong"), [(WEEK, False), (WEEK + 2, True), (-WEEK, False), (-WEEK - 2, True)])
def test_a_start_more_than_a_week_from_the_rest_is_noted(start: int, wrong: bool) -> None:
    """Measured from the median, which single events do not move."""
    starts = np.array([0, 0, 0, start], np.int64)
    assert is_absurd_time(starts, np.zeros(4, np.int64)).tolist() == [False, False, False, wrong]


def test_the_largest_numbers_do_not_overflow() -> None:
    starts = np.array([-(2**62), 2**62, 2**62], np.int64)
    assert is_absurd_time(starts, np.zeros(3, np.int64)).tolist() == [True, False, False]
    assert is_absurd_time(starts[:0], starts[:0]).tolist() == []


def test_a_time_of_a_million_digits_is_missing() -> None:
    assert ns_from_value(Decimal("1e9999999999")) == ns_from_value(Decimal("-1e9999999999")) == ABSENT
    assert ns_from_value(Decimal("nan")) == ns_from_value(Decimal("inf")) == ABSENT
    assert ns_from_value(Decimal("9223372036854775.807")) == 2**63 - 1


def test_an_absurd_time_is_noted_and_is_not_the_start() -> None:
    """A driver's zero among times of the day, and a wrapped duration."""
    day = 1_700_000_000_000_000
    lines = [f"host cpu_op a {day + i} 1" for i in range(3)]
    trace = draw("\n".join([*lines, "host cpu_op zero 0 1", f"host cpu_op long {day + 1} {10**12}"]))
    assert trace.trace_start_ns == day * 1000
    assert [note.count for note in trace.health if note.kind == "absurd_time"] == [2]


def test_a_negative_duration_is_noted_and_counts_as_empty() -> None:
    """One of zero is nothing unusual."""
    trace = draw("host cpu_op empty 0 0\nhost cpu_op negative 5 -3")
    assert event_ends(trace).tolist() == [0, 5_000]
    assert [note.count for note in trace.health if note.kind == "negative_duration"] == [1]


MERGED_US = 1_792_000_000_000_000
"""A time of the day since the epoch, in us; since the quarter it is MERGED_US % 7,889,238,000,000."""


def test_the_two_clocks_of_a_merged_file_are_joined() -> None:
    """Composer's batch counts from the epoch, torch's operator inside it from the quarter."""
    since_quarter = MERGED_US % (7_889_238 * 10**6)
    trace = draw(
        f"""
        host  trainer  event/batch  {MERGED_US}           100
        host2 cpu_op   aten::mm     {since_quarter + 30}   40
        """
    )
    assert trace.trace_start_ns == MERGED_US * 1000
    assert trace.events.start.tolist() == [0, 30_000]
    assert [note.count for note in trace.health if note.kind == "two_clocks"] == [1]


def test_a_file_with_a_base_time_keeps_its_times() -> None:
    trace = draw(f"host cpu_op a {MERGED_US} 1\nhost cpu_op b 30 1", baseTimeNanoseconds=7_889_238 * 10**9)
    assert not [note for note in trace.health if note.kind == "two_clocks"]


def test_a_time_that_the_quarter_offset_leaves_far_away_is_absurd() -> None:
    trace = draw(f"host cpu_op a {MERGED_US} 1\nhost cpu_op b {MERGED_US + 5} 1\nhost cpu_op zero 0 1")
    assert {note.kind for note in trace.health} == {"absurd_time"}


def test_times_of_a_single_clock_are_unchanged() -> None:
    trace = draw("host cpu_op a 10 1\nhost cpu_op b 30 1")
    assert trace.events.start.tolist() == [0, 20_000]
    assert not trace.health


@pytest.mark.parametrize("seed", range(4))
def test_where_no_time_may_be_absurd_none_is(seed: int) -> None:
    random = np.random.default_rng(seed)
    day = 86_400 * 10**9
    times = np.array([ABSENT, -8 * day, -day, 0, day, 6 * day, 8 * day, 2**62, -(2**62)])
    seen = set()
    for _ in range(200):
        count = int(random.integers(1, 4))
        starts, durations = random.choice(times, count), random.choice(times, count)
        which = random.random(count) < 0.7
        which[random.integers(count)] = True
        absurd = bool(is_absurd_time(starts[which], durations[which]).any())
        suspected = may_be_absurd(starts, durations, which)
        assert suspected or not absurd
        seen.add((suspected, absurd))
    assert seen >= {(False, False), (True, True)}
