"""A rank that keeps the others waiting is named, and only such a rank; clocks that are off mislead nobody."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.support.jobs import (
    CULPRIT,
    Job,
    Op,
    ddp,
    fsdp,
    kinds,
    pipeline,
    ring_of_pairs,
    tensor_and_data_parallel,
    view,
)
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.part_payloads import CollectivesParams
from torch_tb_profiler.views.distributed.parts import build_collectives

# ---- stragglers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "program"),
    [
        (2, ddp(2)),
        (8, ddp(8)),
        (64, ddp(64)),
        (8, fsdp(8)),
        (4, pipeline(4)),
        (16, tensor_and_data_parallel(16, 4)),
    ],
    ids=["ddp2", "ddp8", "ddp64", "fsdp8", "pipeline4", "tp4dp4"],
)
def test_the_planted_straggler_is_named(ranks: int, program: tuple[Op, ...]) -> None:
    culprit = ranks // 2
    found = view(Job(ranks, program, straggler=culprit))
    assert (found.verdict.kind, found.verdict.rank) == ("straggler", culprit)
    assert f"Rank {culprit} keeps" in found.verdict.text and CULPRIT in found.verdict.text
    # Of the first operation of a group it is not known; later messages of a pipeline are late in that step, too.
    time = "3.33 ms" if program[0].name == "send" else "5.00 ms"
    assert f"is in `{CULPRIT}` for {time} per step, " in found.verdict.text
    first = found.stragglers[0]
    assert first.rank == culprit
    # 5 ms in each of three steps; in a pipeline others also wait while a stage computes as it should.
    usual = 5e6 if program[0].name == "send" else 2.5e6
    assert 14.9e6 < first.delay_ns < 15e6 + usual
    assert max(other.delay_ns for other in found.stragglers[1:]) < usual
    assert found.problems == []
    assert found.mismatch_count == 0


@pytest.mark.slow
def test_one_of_a_thousand() -> None:
    found = view(Job(1024, ddp(1024), steps=2, straggler=777))
    assert (found.verdict.kind, found.verdict.rank) == ("straggler", 777)
    assert len(found.ranks) == 1024
    assert all(operation.compared == 6 for group in found.groups for operation in group.operations)


def test_a_straggler_is_last_in_the_first_collective_of_each_step() -> None:
    found = view(Job(4, ddp(4), straggler=2, jitter_us=0.0))
    assert found.heat_map is not None
    assert found.heat_map.steps == ["1", "2", "3"]
    late = dict(zip(found.heat_map.workers, found.heat_map.late_ns, strict=True))
    assert late["host0_1002"] == [pytest.approx(5e6, abs=5e3)] * 3
    assert all(cell < 5_000 for worker, row in late.items() if worker != "host0_1002" for cell in row)  # type: ignore[operator]
    first = found.stragglers[0]
    assert first.last >= 3
    assert first.waited_ns < 20_000


def test_what_the_straggler_did_stands_beside_the_median_rank() -> None:
    found = view(Job(4, ddp(4), straggler=1))
    told = found.meanwhile[0]
    assert told.rank == 1
    # The first collective of the recording has none before it, so two of the three count.
    host = {share.name: share for share in told.host}
    assert host[CULPRIT].late_ns >= 2 * 4_990_000
    assert host[CULPRIT].median_ns is None
    categories = {share.name: share for share in told.categories}
    excess = categories["cpu_exec"].late_ns - (categories["cpu_exec"].median_ns or 0)
    assert excess == pytest.approx(10e6, rel=0.01)
    assert told.window_ns - told.median_window_ns == pytest.approx(10e6, rel=0.01)


def test_a_slow_device_is_told_from_a_slow_host() -> None:
    found = view(Job(4, ddp(4), straggler=3, slow_kernel=True))
    assert f"device is in `{CULPRIT}`" in found.verdict.text
    assert found.meanwhile[0].kernels[0].name == CULPRIT


@pytest.mark.parametrize("program", [ddp(8), fsdp(8)], ids=["ddp", "fsdp"])
def test_ranks_alike_blame_nobody(program: tuple[Op, ...]) -> None:
    found = view(Job(8, program))
    assert found.verdict.kind == "balanced"
    assert found.verdict.rank is None


def test_a_rank_that_waits_elsewhere_is_not_blamed_for_it() -> None:
    """Rank 5 holds up its tensor-parallel neighbours, which then come late to their data-parallel groups."""
    found = view(Job(16, tensor_and_data_parallel(16, 4), straggler=5))
    delays = {row.rank: row.delay_ns for row in found.stragglers}
    assert delays[5] > 14e6
    assert max(delays[neighbour] for neighbour in (4, 6, 7)) < 1e6


# ---- clocks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [5_000_000, -70_000_000, 3_600_000_000_000])
def test_a_planted_offset_is_found_and_removed(ahead: int) -> None:
    found = view(Job(8, ddp(8), straggler=2, clock_ns={6: ahead}))
    clock = found.ranks[6].clock
    assert clock is not None and clock.method == "collective_ends"
    assert clock.offset_ns == pytest.approx(-ahead, abs=2_000)
    assert clock.residual_ns is not None and clock.residual_ns < 2_000
    assert kinds(found) == ["clock"]
    assert found.verdict.rank == 2
    assert found.stragglers[0].delay_ns == pytest.approx(15e6, rel=0.1)


def test_an_offset_is_carried_from_group_to_group() -> None:
    """No group holds all ranks: the clock of the far end of a ring is reached through its neighbours."""
    found = view(Job(6, ring_of_pairs(6), clock_ns={3: 9_000_000}))
    clocks = [rank.clock for rank in found.ranks]
    assert [clock.method for clock in clocks if clock is not None].count("collective_ends") == 1
    assert clocks[3] is not None and clocks[3].offset_ns == pytest.approx(-9_000_000, abs=5_000)


def test_on_one_host_only_a_large_offset_is_one_of_the_clock() -> None:
    """Ranks 0 to 7 are on one host."""
    found = view(Job(16, ddp(16), clock_ns={3: 300_000, 12: 300_000, 5: 3_000_000}))
    methods = {rank.rank: rank.clock.method for rank in found.ranks if rank.clock}
    assert [rank for rank, method in methods.items() if method == "collective_ends"] == [5, 12]


def test_clocks_that_agree_are_left_alone() -> None:
    found = view(Job(4, ddp(4)))
    assert [rank.clock.method for rank in found.ranks if rank.clock] == ["reference"] + 3 * ["base_time"]
    assert found.origin_ns is not None


def without_time_of_day(member: Member[RankSummary], start: int) -> Member[RankSummary]:
    assert member.result is not None
    return replace(member, result=msgspec.structs.replace(member.result, base_ns=0, trace_start_ns=start))


def test_ranks_without_a_common_clock_are_aligned_by_collectives_alone() -> None:
    members = list(Job(4, ddp(4), straggler=1).members())
    members[3] = without_time_of_day(members[3], 123)
    found = build(Members(members), NoParams())
    clock = found.ranks[3].clock
    assert clock is not None and (clock.method, clock.offset_ns) == ("collective_ends", None)
    assert found.verdict.rank == 1


def test_a_rank_that_cannot_be_aligned_is_not_compared_by_time() -> None:
    members = list(Job(4, tensor_and_data_parallel(4, 2)[:6], straggler=1).members())  # two pairs that never meet
    members[2], members[3] = without_time_of_day(members[2], 5), without_time_of_day(members[3], 9)
    found = build(Members(members), NoParams())
    assert [rank.clock.method for rank in found.ranks if rank.clock] == ["reference", "base_time", "none", "none"]
    assert kinds(found) == ["clock", "clock"]
    assert found.verdict.rank == 1
    rows = build_collectives(Members(members), CollectivesParams(group=1)).rows
    assert all(row.skew_ns is None and row.waiting_ns is not None for row in rows)


def test_profilers_that_start_late_blame_nobody() -> None:
    found = view(Job(4, ddp(4), begins_late_us={2: 4_000.0}, straggler=None))
    assert found.start_skew_ns == pytest.approx(4e6, rel=0.5)
    assert found.verdict.kind == "balanced"


def test_the_wait_for_a_profiler_that_starts_late_is_named_and_blames_nobody() -> None:
    found = view(Job(4, ddp(4), joins_late_us={2: 8_000.0}))
    assert kinds(found) == ["start_skew"]
    assert found.problems[0].rank == 2
    assert found.start_skew_ns == pytest.approx(8e6, rel=0.01)
    assert found.verdict.kind == "balanced"
    assert found.stragglers[0].delay_ns < 1e6
