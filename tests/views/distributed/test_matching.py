"""Operations of different ranks are joined to the collectives that they were drawn as."""

from __future__ import annotations

import pytest

from tests.support.job_views import kinds, view
from tests.support.jobs import Job, JobOp, ddp, pipeline, ring_of_pairs, tensor_and_data_parallel
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.collectives import CollectivesParams, build_collectives


def test_groups_of_one_name_are_told_apart_by_their_ranks() -> None:
    payload = view(Job(6, ring_of_pairs(6)))
    assert sorted(tuple(group.ranks or ()) for group in payload.groups) == [
        (0, 1),
        (0, 5),
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 5),
    ]
    assert {group.name for group in payload.groups} == {"pair"}
    for group in payload.groups:
        assert group.matched_by == "sequence_number"
        assert [(each.collectives, each.compared, each.calls) for each in group.operations] == [(3, 3, 6)]


def test_without_sequence_numbers_order_joins() -> None:
    payload = view(Job(4, ddp(4), sequence=False, straggler=0))
    assert [group.matched_by for group in payload.groups] == ["order"]
    assert payload.groups[0].operations[0].compared == 9
    assert payload.verdict.rank == 0


def test_without_any_metadata_the_only_group_is_assumed() -> None:
    payload = view(Job(4, ddp(4), metadata=False, straggler=3))
    group = payload.groups[0]
    assert (group.name, group.ranks, group.assumed, group.matched_by) == ("0", [0, 1, 2, 3], True, "order")
    assert payload.verdict.rank == 3
    assert payload.collectives[0].bytes is None and "bytes" in payload.reasons


def test_groups_that_are_not_recorded_correct_no_clock() -> None:
    """Sixteen ranks in eight groups, of which the traces say nothing: ends of different groups prove nothing."""
    payload = view(Job(16, tensor_and_data_parallel(16, 4), metadata=False, straggler=9))
    assert [(group.name, group.ranks) for group in payload.groups] == [(None, None)]
    assert {rank.clock.method for rank in payload.ranks if rank.clock} == {"reference", "base_time"}
    assert {row.last for row in payload.stragglers} == {0}  # nothing is known of the error of their clocks
    assert payload.verdict.kind == "unknown"
    assert plain(payload.headline).startswith("The traces don't record which ranks communicate")
    assert "ranks" in payload.reasons


def test_what_several_groups_did_is_joined_by_name_and_size_where_counts_differ() -> None:
    """Ranks 0 and 1 also reduce among themselves; which group an operation is in is not recorded."""
    pair = JobOp("allreduce", (0, 1), "pair", elements=77)
    program = (*ddp(4), pair, JobOp("_allgather_base", (0, 1, 2, 3), "0"))
    members = Job(4, program, metadata=False).members()
    rows = build_collectives(members, CollectivesParams(step="2")).rows
    assert [(row.name, row.ranks) for row in rows] == [
        *3 * [("nccl:all_reduce", 4)],
        ("nccl:all_reduce", 2),
        ("nccl:all_gather", 4),
    ]
    assert [row.transfer_ns is not None for row in rows] == [False] * 4 + [True]  # ranks ran 4 or 3 of the first


def test_messages_are_joined_by_sender_and_receiver() -> None:
    payload = view(Job(4, pipeline(4)))
    assert {group.matched_by for group in payload.groups} == {"peers"}
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
    payload = view(job)
    assert {mismatch.what for mismatch in payload.mismatches} == what
    assert {mismatch.step for mismatch in payload.mismatches} == {"2"}
    wrong = {mismatch.collective for mismatch in payload.mismatches}
    assert len(wrong) == 1
    odd = [value for value in payload.mismatches[0].values if value.workers == ["host0_1002"]]
    assert len(odd) == 1
    rows = build_collectives(job.members(), CollectivesParams(mismatched=True)).rows
    assert [row.id for row in rows] == list(wrong)
    assert rows[0].transfer_ns is None and rows[0].skew_ns is None and rows[0].mismatch
    assert sum(operation.compared for group in payload.groups for operation in group.operations) == 8
    assert "mismatch" in kinds(payload)


def test_a_lost_operation_is_missed_by_its_number() -> None:
    payload = view(Job(4, ddp(4), lost=frozenset({(1, 1)})))
    assert [(mismatch.what, mismatch.values[0].workers) for mismatch in payload.mismatches] == [
        ("missing", ["host0_1001"])
    ]
    assert sum(operation.collectives for group in payload.groups for operation in group.operations) == 9


def test_a_lost_operation_without_numbers_spoils_only_its_step() -> None:
    job = Job(4, ddp(4), sequence=False, lost=frozenset({(1, 1)}))
    payload = view(job)
    assert kinds(payload) == ["unmatched"]
    rows = build_collectives(job.members(), CollectivesParams()).rows
    by_step = {step: [row.transfer_ns is not None for row in rows if row.step == step] for step in "123"}
    assert by_step["1"] == by_step["3"] == [True] * 3
    assert not any(by_step["2"])
