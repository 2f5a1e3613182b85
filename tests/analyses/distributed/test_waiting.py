"""Which rank arrived last, and when that is unknown."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.jobs import Job, ddp
from torch_tb_profiler.analyses.distributed.clocks import RankClock, RankClocks
from torch_tb_profiler.analyses.distributed.job import RankSource, build_job
from torch_tb_profiler.analyses.distributed.matching import match_collectives
from torch_tb_profiler.analyses.distributed.waiting import (
    Arrivals,
    collective_arrivals,
    fastest_transfers,
    split_waiting,
)
from torch_tb_profiler.model.trace import ABSENT, NO_CODE


def second_arrives_late(residual: int, shift: int | None = 0) -> Arrivals:
    """Return the arrivals at one collective, to which the second of two ranks comes 100 us later.

    residual, shift  of its clock
    """
    members = Job(2, ddp(2, 1), steps=1, straggler=1, slow_us=100.0, jitter_us=0.0).members()
    job = build_job(
        [
            RankSource(member.worker, member.rank, None, member.result, member.details)
            for member in members
            if member.result
        ]
    )
    matching = match_collectives(job)
    clocks = RankClocks(
        (RankClock("reference", 0, 0, 1, 0), RankClock("collective_ends", 0, residual, 1, shift)), 0
    )
    return collective_arrivals(job, matching, clocks, split_waiting(job, matching))


def test_the_last_to_arrive_is_late_by_the_median_of_the_others() -> None:
    arrivals = second_arrives_late(0)
    assert arrivals.skew.tolist() == [100_000]
    assert arrivals.lateness.tolist() == [0, 100_000]
    assert arrivals.last.tolist() == [1]
    assert arrivals.is_median.tolist() == [True, False]
    assert not arrivals.late_recording.any()


def test_no_clock_makes_a_rank_later_than_the_others_waited() -> None:
    """By its clock, the second comes 5 ms later; the first waits for 100 us."""
    arrivals = second_arrives_late(0, shift=5_000_000)
    assert arrivals.skew.tolist() == [5_100_000]
    first, second = arrivals.lateness.tolist()
    assert first == 0
    assert second == pytest.approx(100_000, rel=0.01)


@pytest.mark.parametrize(("residual", "last"), [(49_999, 1), (50_000, NO_CODE)])
def test_who_is_last_is_unknown_up_to_twice_the_error_of_the_clocks(residual: int, last: int) -> None:
    """Two clocks may be off by that much in opposite directions."""
    arrivals = second_arrives_late(residual)
    assert arrivals.last.tolist() == [last]
    assert arrivals.skew.tolist() == [100_000]


def test_ranks_without_a_common_clock_are_not_compared() -> None:
    arrivals = second_arrives_late(0, shift=None)
    assert arrivals.skew.tolist() == arrivals.first.tolist() == [ABSENT]
    assert (arrivals.lateness == ABSENT).all()


@pytest.mark.parametrize(("shift", "late_recording"), [(0, False), (2_000_000, True)])
def test_a_rank_that_started_to_record_after_the_others_arrived_is_marked(
    shift: int, late_recording: bool
) -> None:
    assert second_arrives_late(0, shift).late_recording.tolist() == [late_recording]


def test_what_moves_as_much_or_more_of_the_same_kind_shows_how_long_a_transfer_needs() -> None:
    kind, sizes = np.array([0, 1, 0, 0, 1, 0]), np.array([10, 10, 20, 10, 10, 40])
    times = np.array([7, 5, 6, 9, 8, 30])
    assert fastest_transfers(kind, sizes, times).tolist() == [6, 5, 6, 6, 5, 30]
