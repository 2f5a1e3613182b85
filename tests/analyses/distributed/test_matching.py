"""Which operations of different ranks are matched to one collective."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tests.support.jobs import Job, JobOp
from torch_tb_profiler.analyses.distributed.job import RankSource, build_job
from torch_tb_profiler.analyses.distributed.matching import MATCH_METHODS, Matching, match_collectives
from torch_tb_profiler.analyses.distributed.operations import pack_operations
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.model.trace import ABSENT


def match_job(job: Job) -> Matching:
    members = [member for member in job.members() if member.result]
    return match_collectives(
        build_job([RankSource(m.worker, m.rank, None, m.result, m.details) for m in members if m.result])
    )


def test_messages_to_several_receivers_count_by_receiver() -> None:
    """In a group of all three ranks, the second message of the sender is the first for its receiver."""
    one_group = dict.fromkeys(((0, 0), (1, 0), (0, 1), (2, 1)), ("Process Group Ranks", "[0, 1, 2]"))
    program = (JobOp("send", (0, 1), "0"), JobOp("send", (0, 2), "0"))
    matching = match_job(Job(3, program, steps=2, sequence=False, wrong=one_group))
    assert matching.sizes.tolist() == [2, 2, 2, 2]
    assert matching.compared.all() and matching.complete.all()
    assert {MATCH_METHODS[code] for code in matching.method.tolist()} == {"peers"}


def test_messages_in_different_groups_between_the_same_ranks_are_not_matched() -> None:
    program = (JobOp("send", (0, 1), "a"), JobOp("send", (0, 1), "b"), JobOp("send", (0, 1), "a"))
    matching = match_job(Job(2, program, steps=1, sequence=False))
    assert matching.sizes.tolist() == [2, 2, 2]


def test_an_operation_that_only_one_rank_recorded_is_not_compared() -> None:
    matching = match_job(Job(2, (JobOp("allreduce", (0, 1), "0"),) * 2, steps=3, lost=frozenset({(1, 0)})))
    assert sorted(matching.sizes.tolist()) == [1, 2, 2, 2, 2, 2]
    assert (~matching.compared).sum() == 1
    (mismatch,) = matching.mismatches
    assert (mismatch.what, mismatch.values) == ("missing", {"not recorded": [1]})


def test_sequence_numbers_recorded_out_of_order_are_not_missing() -> None:
    """With two streams, the operation with the later number may start first."""
    program = (JobOp("allreduce", (0, 1), "0"),) * 3
    sources = [
        RankSource(member.worker, member.rank, None, member.result, member.details)
        for member in Job(2, program, steps=1).members()
        if member.result
    ]
    table = sources[0].summary.table().copy()
    table["sequence"][[0, 1]] = table["sequence"][[1, 0]]
    first = replace(sources[0], summary=replace(sources[0].summary, operations=pack_operations(table)))
    assert match_collectives(build_job([first, sources[1]])).mismatches == ()
    table["sequence"][2] += 1
    first = replace(sources[0], summary=replace(sources[0].summary, operations=pack_operations(table)))
    (mismatch,) = match_collectives(build_job([first, sources[1]])).mismatches
    assert (mismatch.what, mismatch.values) == ("missing", {"not recorded": [0]})


def test_ordinals_count_equal_keys_in_their_order() -> None:
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 4, 300), np.where(rng.random(300) < 0.3, ABSENT, rng.integers(0, 3, 300))
    backwards = rng.random(300) < 0.5
    pairs = list(zip(*(key.tolist() for key in keys), strict=True))
    expected = [pairs[:i].count(pair) - (pairs.count(pair) if backwards[i] else 0) for i, pair in enumerate(pairs)]
    assert ordinals(backwards, *keys).tolist() == expected
    distinct = np.arange(5)
    assert ordinals(np.array([True, False, True, False, False]), distinct).tolist() == [-1, 0, -1, 0, 0]
