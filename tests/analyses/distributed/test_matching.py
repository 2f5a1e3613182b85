"""Which operations of different ranks are one."""

from __future__ import annotations

from msgspec.structs import replace

from tests.support.jobs import Job, Op
from torch_tb_profiler.analyses.distributed.job import RankSource, build_job
from torch_tb_profiler.analyses.distributed.matching import MATCH_METHODS, Matching, match_collectives
from torch_tb_profiler.analyses.distributed.operations import pack_operations


def matched(job: Job) -> Matching:
    return match_collectives(
        build_job(
            [
                RankSource(each.worker, each.rank, None, each.result, each.details)
                for each in job.members()
                if each.result
            ]
        )
    )


def test_messages_to_several_receivers_count_by_receiver() -> None:
    """The second message of the sender is the first that its receiver gets, in a group of all three."""
    one_group = dict.fromkeys(((0, 0), (1, 0), (0, 1), (2, 1)), ("Process Group Ranks", "[0, 1, 2]"))
    program = (Op("send", (0, 1), "0"), Op("send", (0, 2), "0"))
    matching = matched(Job(3, program, steps=2, sequence=False, wrong=one_group))
    assert matching.sizes.tolist() == [2, 2, 2, 2]
    assert matching.compared.all() and matching.complete.all()
    assert {MATCH_METHODS[code] for code in matching.method.tolist()} == {"peers"}


def test_messages_of_two_groups_between_the_same_ranks_are_not_one() -> None:
    program = (Op("send", (0, 1), "a"), Op("send", (0, 1), "b"), Op("send", (0, 1), "a"))
    matching = matched(Job(2, program, steps=1, sequence=False))
    assert matching.sizes.tolist() == [2, 2, 2]


def test_an_operation_that_one_rank_alone_recorded_is_compared_with_nothing() -> None:
    matching = matched(Job(2, (Op("allreduce", (0, 1), "0"),) * 2, steps=3, lost=frozenset({(1, 0)})))
    assert sorted(matching.sizes.tolist()) == [1, 2, 2, 2, 2, 2]
    assert (~matching.compared).sum() == 1
    (mismatch,) = matching.mismatches
    assert (mismatch.what, mismatch.values) == ("missing", {"not recorded": [1]})


def test_numbers_that_are_recorded_out_of_turn_are_not_missing() -> None:
    """Of two streams the later number may start first."""
    program = (Op("allreduce", (0, 1), "0"),) * 3
    sources = [
        RankSource(each.worker, each.rank, None, each.result, each.details)
        for each in Job(2, program, steps=1).members()
        if each.result
    ]
    table = sources[0].summary.table().copy()
    table["sequence"][[0, 1]] = table["sequence"][[1, 0]]
    first = replace(sources[0], summary=replace(sources[0].summary, operations=pack_operations(table)))
    assert match_collectives(build_job([first, sources[1]])).mismatches == ()
    table["sequence"][2] += 1
    first = replace(sources[0], summary=replace(sources[0].summary, operations=pack_operations(table)))
    (mismatch,) = match_collectives(build_job([first, sources[1]])).mismatches
    assert (mismatch.what, mismatch.values) == ("missing", {"not recorded": [0]})
