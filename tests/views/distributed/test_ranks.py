"""Ranks that are lost, broken, loading, or there twice."""

from __future__ import annotations

import json

from msgspec.structs import replace

from tests.support.job_views import kinds, view
from tests.support.jobs import Job, ddp, ready_member
from tests.support.traces import read_bytes
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.collectives import CollectivesParams, build_collectives


def test_no_rank_is_lost_while_traces_are_still_to_come() -> None:
    *members, last = Job(8, ddp(8)).members()
    payload = build(Members([*members, replace(last, rank=None, state="loading", result=None)]), NoParams())
    assert "missing_rank" not in kinds(payload)


def test_a_lost_rank_is_named_and_the_others_are_compared() -> None:
    payload = view(Job(8, ddp(8), straggler=2), only=[0, 1, 2, 3, 5, 6, 7])
    assert kinds(payload) == ["missing_rank"]
    assert payload.problems[0].rank == 4
    assert payload.groups[0].absent_ranks == [4]
    assert payload.verdict.rank == 2
    assert payload.collectives[0].lower_bound  # the lost one may be whom all waited for


def test_a_broken_and_a_loading_rank_are_listed() -> None:
    members = list(Job(4, ddp(4)).members())
    members[1] = Member(members[1].worker, 1, "1", "failed", "the file is cut off", None)
    members[3] = Member(members[3].worker, 3, "1", "loading", None, None)
    payload = build(Members(members), NoParams())
    assert kinds(payload) == ["loading", "broken_rank"]
    assert [(rank.rank, rank.state, rank.compared) for rank in payload.ranks] == [
        (0, "ready", True),
        (1, "failed", False),
        (2, "ready", True),
        (3, "loading", False),
    ]
    assert "cut off" in plain(payload.problems[1].text)


def test_of_two_files_of_one_rank_the_first_is_compared() -> None:
    members = list(Job(2, ddp(2)).members())
    members.append(replace(members[1], worker="host9_9"))
    payload = build(Members(members), NoParams())
    assert kinds(payload) == ["duplicate_rank"]
    assert [rank.compared for rank in payload.ranks] == [True, True, False]
    assert {row.worker for row in payload.overview} == {"host0_1000", "host0_1001"}


def test_one_rank_alone_shows_the_view_with_reasons() -> None:
    members = Job(4, ddp(4)).members(only=[1])
    payload = build(members, NoParams())
    assert payload.verdict.kind == "unknown"
    assert payload.heat_map is None and payload.start_skew_ns is None
    row = payload.collectives[0]
    assert row.transfer_ns is None and row.waiting_ns is None and row.latency_ns
    assert row.lower_bound and row.bus_bandwidth
    assert {"transfer_ns", "waiting_ns", "skew_ns", "heat_map", "lower_bound"} <= set(payload.reasons)
    assert payload.groups[0].matched_by is None
    assert build_collectives(members, CollectivesParams()).total == 9


def test_the_device_tree_has_nodes_processes_and_devices() -> None:
    payload = view(Job(16, ddp(16)))
    assert [(node.name, len(node.processes)) for node in payload.nodes] == [("host0", 8), ("host1", 8)]
    process = payload.nodes[1].processes[3]
    assert (process.name, process.rank, process.devices[0].id, process.devices[0].name) == (
        "1011",
        11,
        3,
        "Drawn GPU",
    )
    assert process.devices[0].memory_bytes == 2**34


def without_kernels(job: Job, rank: int) -> list[Member[RankSummary]]:
    """Return a job of which the file of one rank lacks the kernels, as one that is cut off does."""
    documents = {each: json.loads(content) for each, content in job.documents().items()}
    events = documents[rank]["traceEvents"]
    documents[rank]["traceEvents"] = [each for each in events if each.get("cat") != "kernel"]
    return [
        ready_member(f"w{each}", each, read_bytes(json.dumps(content).encode()))
        for each, content in documents.items()
    ]


def test_a_rank_whose_communication_has_no_time_takes_no_part_in_what_the_others_spend_on_it() -> None:
    """How long its launches take is no communication."""
    members = without_kernels(Job(4, ddp(4), straggler=2), 1)
    payload = build(Members(members), NoParams())
    others = build(Members([members[0], *members[2:]]), NoParams())
    assert "unmatched" in kinds(payload) and payload.verdict.rank == others.verdict.rank == 2
    assert plain(payload.explanation).startswith("Ranks 0 and 3 spend ")
    assert plain(payload.explanation).partition(".")[0] == plain(others.explanation).partition(".")[0]


def test_a_step_without_its_kernels_is_not_complete_and_in_no_average() -> None:
    """What its host does beside the launches is neither the computation of the device nor hidden by it."""
    payload = build(Members(without_kernels(Job(4, ddp(4)), 1)), NoParams())
    assert {row.rank for row in payload.overview if not row.complete} == {1}
    assert {row.rank for row in payload.overview} == {0, 1, 2, 3}
    assert [row.rank for row in payload.averages] == [0, 2, 3]
