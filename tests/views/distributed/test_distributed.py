"""Jobs whose truth is known: the view finds exactly what was planted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.jobs import (
    CULPRIT,
    Job,
    ddp,
    fsdp,
    kinds,
    view,
)
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.part_payloads import CollectiveParams, CollectivesParams
from torch_tb_profiler.views.distributed.parts import build_collective, build_collectives

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
