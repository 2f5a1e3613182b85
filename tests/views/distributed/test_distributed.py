"""Jobs whose truth is known: the view finds exactly what was planted."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.support.jobs import CULPRIT, Job, Op, ddp, fsdp, pipeline, ring_of_pairs, tensor_and_data_parallel
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.part_payloads import CollectiveParams, CollectivesParams
from torch_tb_profiler.views.distributed.parts import build_collective, build_collectives
from torch_tb_profiler.views.distributed.payload import Distributed


def view(job: Job, only: list[int] | None = None) -> Distributed:
    return build(job.members(only), NoParams())


def kinds(found: Distributed) -> list[str]:
    return [problem.kind for problem in found.problems]


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


# ---- who is there ---------------------------------------------------------------------------------------


def test_no_rank_is_lost_while_traces_are_still_to_come() -> None:
    *members, last = Job(8, ddp(8)).members()
    found = build(Members([*members, replace(last, rank=None, state="loading", result=None)]), NoParams())
    assert "missing_rank" not in kinds(found)


def test_a_lost_rank_is_named_and_the_others_are_compared() -> None:
    found = view(Job(8, ddp(8), straggler=2), only=[0, 1, 2, 3, 5, 6, 7])
    assert kinds(found) == ["missing_rank"]
    assert found.problems[0].rank == 4
    assert found.groups[0].absent_ranks == [4]
    assert found.verdict.rank == 2
    assert found.collectives[0].lower_bound  # the lost one may be whom all waited for


def test_a_broken_and_a_loading_rank_are_listed() -> None:
    members = list(Job(4, ddp(4)).members())
    members[1] = Member(members[1].worker, 1, "1", "failed", "the file is cut off", None)
    members[3] = Member(members[3].worker, 3, "1", "loading", None, None)
    found = build(Members(members), NoParams())
    assert kinds(found) == ["loading", "broken_rank"]
    assert [(rank.rank, rank.state, rank.compared) for rank in found.ranks] == [
        (0, "ready", True),
        (1, "failed", False),
        (2, "ready", True),
        (3, "loading", False),
    ]
    assert "cut off" in found.problems[1].text


def test_of_two_files_of_one_rank_the_first_is_compared() -> None:
    members = list(Job(2, ddp(2)).members())
    members.append(replace(members[1], worker="host9_9"))
    found = build(Members(members), NoParams())
    assert kinds(found) == ["duplicate_rank"]
    assert [rank.compared for rank in found.ranks] == [True, True, False]
    assert {row.worker for row in found.overview} == {"host0_1000", "host0_1001"}


def test_one_rank_alone_shows_the_view_with_reasons() -> None:
    members = Job(4, ddp(4)).members(only=[1])
    found = build(members, NoParams())
    assert found.verdict.kind == "unknown"
    assert found.heat_map is None and found.start_skew_ns is None
    row = found.collectives[0]
    assert row.transfer_ns is None and row.synchronizing_ns is None and row.latency_ns
    assert row.lower_bound and row.bus_bandwidth
    assert {"transfer_ns", "synchronizing_ns", "skew_ns", "heat_map", "lower_bound"} <= set(found.reasons)
    assert found.groups[0].matched_by is None
    assert build_collectives(members, CollectivesParams()).total == 9


def test_the_device_tree_has_nodes_processes_and_devices() -> None:
    found = view(Job(16, ddp(16)))
    assert [(node.name, len(node.processes)) for node in found.nodes] == [("host0", 8), ("host1", 8)]
    process = found.nodes[1].processes[3]
    assert (process.name, process.rank, process.devices[0].id, process.devices[0].name) == (
        "1011",
        11,
        3,
        "Drawn GPU",
    )
    assert process.devices[0].memory_bytes == 2**34


# ---- matching -------------------------------------------------------------------------------------------


def test_groups_of_one_name_are_told_apart_by_their_ranks() -> None:
    found = view(Job(6, ring_of_pairs(6)))
    assert sorted(tuple(group.ranks or ()) for group in found.groups) == [
        (0, 1),
        (0, 5),
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 5),
    ]
    assert {group.name for group in found.groups} == {"pair"}
    for group in found.groups:
        assert group.matched_by == "sequence_number"
        assert [(each.operations, each.compared, each.calls) for each in group.operations] == [(3, 3, 6)]


def test_without_sequence_numbers_order_joins() -> None:
    found = view(Job(4, ddp(4), sequence=False, straggler=0))
    assert [group.matched_by for group in found.groups] == ["order"]
    assert found.groups[0].operations[0].compared == 9
    assert found.verdict.rank == 0


def test_without_any_metadata_the_only_group_is_assumed() -> None:
    found = view(Job(4, ddp(4), metadata=False, straggler=3))
    group = found.groups[0]
    assert (group.name, group.ranks, group.assumed, group.matched_by) == ("0", [0, 1, 2, 3], True, "order")
    assert found.verdict.rank == 3
    assert found.collectives[0].bytes is None and "bytes" in found.reasons


def test_groups_that_are_not_recorded_correct_no_clock() -> None:
    """Sixteen ranks in eight groups, of which the traces say nothing: ends of different groups prove nothing."""
    found = view(Job(16, tensor_and_data_parallel(16, 4), metadata=False, straggler=9))
    assert [(group.name, group.ranks) for group in found.groups] == [(None, None)]
    assert {rank.clock.method for rank in found.ranks if rank.clock} == {"reference", "base_time"}
    assert found.stragglers[0].rank == 9
    assert "ranks" in found.reasons


def test_what_several_groups_did_is_joined_by_name_and_size_where_counts_differ() -> None:
    """Ranks 0 and 1 also reduce among themselves; which group an operation is in is not recorded."""
    pair = Op("allreduce", (0, 1), "pair", elements=77)
    program = (*ddp(4), pair, Op("_allgather_base", (0, 1, 2, 3), "0"))
    members = Job(4, program, metadata=False).members()
    rows = build_collectives(members, CollectivesParams(step="2")).rows
    assert [(row.name, row.ranks) for row in rows] == [
        *3 * [("nccl:all_reduce", 4)],
        ("nccl:all_reduce", 2),
        ("nccl:all_gather", 4),
    ]
    assert [row.transfer_ns is not None for row in rows] == [False] * 4 + [True]  # ranks ran 4 or 3 of the first


def test_messages_are_joined_by_sender_and_receiver() -> None:
    found = view(Job(4, pipeline(4)))
    assert {group.matched_by for group in found.groups} == {"peers"}
    rows = build_collectives(Job(4, pipeline(4)).members(), CollectivesParams()).rows
    assert len(rows) == 3 * 4 * 3
    assert all(row.ranks == 2 and row.mismatch is None and row.transfer_ns for row in rows)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("dtype", "BFloat16", {"size", "dtype"}),
        ("In msg nelems", 7, {"size"}),
        ("Collective name", "broadcast", {"name"}),
    ],
)
def test_ranks_that_disagree_are_reported_and_not_averaged(key: str, value: object, what: set[str]) -> None:
    job = Job(4, ddp(4), wrong={(2, 1): (key, value)})
    found = view(job)
    assert {mismatch.what for mismatch in found.mismatches} == what
    assert {mismatch.step for mismatch in found.mismatches} == {"2"}
    wrong = {mismatch.collective for mismatch in found.mismatches}
    assert len(wrong) == 1
    odd = [value for value in found.mismatches[0].values if value.workers == ["host0_1002"]]
    assert len(odd) == 1
    rows = build_collectives(job.members(), CollectivesParams(mismatched=True)).rows
    assert [row.id for row in rows] == list(wrong)
    assert rows[0].transfer_ns is None and rows[0].skew_ns is None and rows[0].mismatch
    assert sum(operation.compared for group in found.groups for operation in group.operations) == 8
    assert "mismatch" in kinds(found)


def test_a_lost_operation_is_missed_by_its_number() -> None:
    found = view(Job(4, ddp(4), lost=frozenset({(1, 1)})))
    assert [(mismatch.what, mismatch.values[0].workers) for mismatch in found.mismatches] == [
        ("missing", ["host0_1001"])
    ]
    assert sum(operation.operations for group in found.groups for operation in group.operations) == 9


def test_a_lost_operation_without_numbers_spoils_only_its_step() -> None:
    job = Job(4, ddp(4), sequence=False, lost=frozenset({(1, 1)}))
    found = view(job)
    assert kinds(found) == ["unmatched"]
    rows = build_collectives(job.members(), CollectivesParams()).rows
    by_step = {step: [row.transfer_ns is not None for row in rows if row.step == step] for step in "123"}
    assert by_step["1"] == by_step["3"] == [True] * 3
    assert not any(by_step["2"])


# ---- times ----------------------------------------------------------------------------------------------


def test_steps_add_up_and_waiting_and_transfer_are_the_communication() -> None:
    found = view(Job(4, ddp(4), straggler=1))
    for row in found.overview:
        assert row.duration_ns == row.computation_ns + row.overlap_ns + row.communication_ns + row.other_ns
    steps = {(row.worker, row.step): row for row in found.overview}
    for wait in found.waiting:
        assert wait.step is not None and wait.transfer_ns is not None and wait.synchronizing_ns is not None
        step = steps[wait.worker, wait.step]
        assert wait.transfer_ns + wait.synchronizing_ns == step.communication_ns + step.overlap_ns
        assert wait.transfer_ns == pytest.approx(150_000, abs=5_000)
    late = [wait.synchronizing_ns for wait in found.waiting if wait.rank == 1]
    assert max(late) < 30_000  # type: ignore[type-var,operator]


def test_bandwidth_is_that_of_the_transfer() -> None:
    found = view(Job(4, ddp(4, 1), straggler=1))
    for row in found.collectives:
        assert (row.name, row.calls, row.bytes, row.lower_bound) == ("nccl:all_reduce", 3, 3 * 400_000, False)
        assert row.algorithm_bandwidth == pytest.approx(400_000 / 50e-6, rel=0.03)
        assert row.algorithm_bandwidth is not None
        assert row.bus_bandwidth == pytest.approx(row.algorithm_bandwidth * 1.5)


@pytest.mark.parametrize(
    ("position", "name", "message", "factor"),
    [(0, "nccl:all_gather", 8_000_000, 7 / 8), (2, "nccl:reduce_scatter", 1_000_000, 7 / 8)],
)
def test_message_sizes_follow_the_conventions_of_nccl(
    position: int, name: str, message: int, factor: float
) -> None:
    rows = build_collectives(Job(8, fsdp(8), steps=1).members(), CollectivesParams()).rows
    row = rows[position]
    assert (row.name, row.bytes) == (name, message)
    assert row.bus_bandwidth is not None and row.algorithm_bandwidth is not None
    assert row.bus_bandwidth / row.algorithm_bandwidth == pytest.approx(factor)


# ---- parts ----------------------------------------------------------------------------------------------


def test_the_table_is_filtered_sorted_and_cut_into_pages() -> None:
    members = Job(4, ddp(4), straggler=2).members()
    everything = build_collectives(members, CollectivesParams())
    assert [row.id for row in everything.rows] == list(range(9)) and everything.total == 9
    late = build_collectives(members, CollectivesParams(sort="skew", descending=True, limit=3))
    assert late.total == 9 and {row.late_rank for row in late.rows} == {2}
    assert [row.skew_ns for row in late.rows] == sorted((row.skew_ns for row in late.rows), reverse=True)  # type: ignore[type-var]
    assert len(build_collectives(members, CollectivesParams(step="2", name="nccl:all_reduce")).rows) == 3
    assert {row.late_worker for row in build_collectives(members, CollectivesParams(late="host0_1002")).rows} == {
        "host0_1002"
    }
    page = build_collectives(members, CollectivesParams(first=8, limit=3))
    assert [row.id for row in page.rows] == [8]


def test_what_cannot_be_is_refused_with_what_can() -> None:
    members = Job(2, ddp(2)).members()
    for params in (CollectivesParams(group=7), CollectivesParams(step="99"), CollectivesParams(late="nobody")):
        with pytest.raises(NotFoundError):
            build_collectives(members, params)
    with pytest.raises(NotFoundError, match="no collective 99"):
        build_collective(members, CollectiveParams(99))


def test_one_collective_shows_every_rank_and_what_it_did_before() -> None:
    members = Job(4, ddp(4), straggler=2).members()
    first_of_step_2 = build_collectives(members, CollectivesParams(step="2")).rows[0]
    found = build_collective(members, CollectiveParams(first_of_step_2.id))
    assert [each.rank for each in found.participants] == [0, 1, 2, 3]
    late = found.participants[2]
    assert late.late_ns == found.instance.skew_ns and late.before is not None
    assert late.before.host[0].name == CULPRIT
    assert late.before.window_ns == sum(share.ns for share in late.before.categories)
    assert late.synchronizing_ns is not None and late.synchronizing_ns < 1_000
    others = [each for each in found.participants if each.rank != 2]
    assert all(each.latency_ns == each.transfer_ns + each.synchronizing_ns for each in others)  # type: ignore[operator]
    assert found.median_worker in {each.worker for each in others}
    assert all(each.event >= 0 and each.call is not None for each in found.participants)
