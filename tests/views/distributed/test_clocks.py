"""Planted clock offsets are found and removed."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.job_views import kinds, view
from tests.support.jobs import Job, ddp, ring_of_pairs, tensor_and_data_parallel
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.collectives import CollectivesParams, build_collectives


@pytest.mark.parametrize("ahead", [5_000_000, -70_000_000, 3_600_000_000_000])
def test_a_planted_offset_is_found_and_removed(ahead: int) -> None:
    payload = view(Job(8, ddp(8), straggler=2, clock_ns={6: ahead}))
    clock = payload.ranks[6].clock
    assert clock is not None and clock.method == "collective_ends"
    assert clock.offset_ns == pytest.approx(-ahead, abs=2_000)
    assert clock.residual_ns is not None and clock.residual_ns < 2_000
    assert kinds(payload) == ["clock"]
    assert payload.verdict.rank == 2
    assert payload.stragglers[0].delay_ns == pytest.approx(15e6, rel=0.1)


def test_an_offset_is_carried_from_group_to_group() -> None:
    """No group holds all ranks: the clock of the far end of a ring is reached through its neighbors."""
    payload = view(Job(6, ring_of_pairs(6), clock_ns={3: 9_000_000}))
    clocks = [rank.clock for rank in payload.ranks]
    assert [clock.method for clock in clocks if clock is not None].count("collective_ends") == 1
    assert clocks[3] is not None and clocks[3].offset_ns == pytest.approx(-9_000_000, abs=5_000)


def test_a_process_whose_clock_differs_from_its_host_is_corrected_and_said() -> None:
    """Ranks 0 to 7 are on one host, 8 to 15 on another."""
    payload = view(Job(16, ddp(16), clock_ns={3: 300_000, 12: 300_000, 5: 3_000_000}))
    methods = {rank.rank: rank.clock.method for rank in payload.ranks if rank.clock}
    assert [rank for rank, method in methods.items() if method == "collective_ends"] == [3, 5, 12]
    assert [problem.rank for problem in payload.problems if problem.kind == "clock"] == [3, 5, 12]


def test_clocks_that_agree_are_left_alone() -> None:
    payload = view(Job(4, ddp(4)))
    assert [rank.clock.method for rank in payload.ranks if rank.clock] == ["reference"] + 3 * ["base_time"]
    assert payload.origin_ns is not None


def without_time_of_day(member: Member[RankSummary], start: int) -> Member[RankSummary]:
    assert member.result is not None
    return replace(member, result=msgspec.structs.replace(member.result, base_ns=0, trace_start_ns=start))


def test_ranks_without_a_common_clock_are_aligned_by_collectives_alone() -> None:
    members = list(Job(4, ddp(4), straggler=1).members())
    members[3] = without_time_of_day(members[3], 123)
    payload = build(Members(members), NoParams())
    clock = payload.ranks[3].clock
    assert clock is not None and (clock.method, clock.offset_ns) == ("collective_ends", None)
    assert payload.verdict.rank == 1


def test_a_rank_that_cannot_be_aligned_is_not_compared_by_time() -> None:
    members = list(Job(4, tensor_and_data_parallel(4, 2)[:6], straggler=1).members())  # two pairs that never meet
    members[2], members[3] = without_time_of_day(members[2], 5), without_time_of_day(members[3], 9)
    payload = build(Members(members), NoParams())
    assert [rank.clock.method for rank in payload.ranks if rank.clock] == [
        "reference",
        "base_time",
        "none",
        "none",
    ]
    assert kinds(payload) == ["clock", "clock"]
    assert payload.verdict.rank == 1
    rows = build_collectives(Members(members), CollectivesParams(group=1)).rows
    assert all(row.skew_ns is None and row.waiting_ns is not None for row in rows)


def test_profilers_that_start_late_make_no_straggler() -> None:
    payload = view(Job(4, ddp(4), begins_late_us={2: 4_000.0}, straggler=None))
    assert payload.start_skew_ns == pytest.approx(4e6, rel=0.5)
    assert payload.verdict.kind == "balanced"


def test_the_wait_for_a_profiler_that_starts_late_is_named_and_attributed_to_no_rank() -> None:
    payload = view(Job(4, ddp(4), joins_late_us={2: 8_000.0}))
    assert kinds(payload) == ["start_skew"]
    assert payload.problems[0].rank == 2
    assert payload.start_skew_ns == pytest.approx(8e6, rel=0.01)
    assert payload.verdict.kind == "balanced"
    assert payload.stragglers[0].delay_ns < 1e6
