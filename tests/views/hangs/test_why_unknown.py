"""Why a verdict leaves something open: each reason is given where it holds, not where one thing differs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.dumps import DrawnJob, hung_job
from torch_tb_profiler.analyses.hangs.verdict import Reason
from torch_tb_profiler.model.flight_recorder import JobDumps
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.hangs.build import build
from torch_tb_profiler.views.hangs.words import WHY

SECOND = 10**9


def odd_call(rank_calls: str = "all_gather", *, ranks: int = 4, lost: bool = False) -> JobDumps:
    """Let rank 1 make that call where the others call an all_reduce."""
    job = DrawnJob(ranks).call("all_reduce").call("all_reduce").call(rank_calls, [1], done=False)
    job.call("all_reduce", [rank for rank in range(ranks) if rank != 1], done=False)
    return (job.lose(1, 1) if lost else job).dumps()


def first_message(*, earlier: bool) -> JobDumps:
    """Let rank 1 receive from rank 2, which has gone on; messages may have been exchanged before."""
    job = DrawnJob(3)
    for _ in range(3 * earlier):
        job.message("send", 2, 1).message("recv", 1, 2).call("all_reduce")
    return job.message("recv", 1, 2, done=False).call("all_reduce", [0, 2], done=False).dumps()


def crossing(*second: int) -> JobDumps:
    job = (
        DrawnJob(4, {"g0": [0, 1, 2], "g1": [0, 1, 3]})
        .call("all_reduce")
        .call("all_reduce", [0, 2], group="g0", done=False)
    )
    return job.call("all_reduce", second, group="g1", done=False).dumps()


def paused(after: int) -> JobDumps:
    job = DrawnJob(4).call("all_reduce")
    job.time += 30 * SECOND
    return job.call("all_reduce").call("all_reduce", [0, 1, 2], done=False).dumps(after_ns=after * SECOND)


def in_messages(unrecorded: bool) -> JobDumps:
    dumps = DrawnJob(2, backend="gloo").call("all_reduce").call("all_reduce", [0], done=False).dumps()
    assert dumps.files[1].dump is not None
    dumps.files[1].dump.unrecorded = unrecorded
    return dumps


def members(job: DrawnJob, group: str, ranks: Sequence[int], named: bool) -> JobDumps:
    """Return the dumps of a job, which may not name the members of a group."""
    dumps = job.dumps()
    for file in dumps.files:
        assert file.dump is not None
        if not named and file.rank in ranks:
            file.dump.members[group] = file.dump.members[group]._replace(ranks=())
        elif not named:
            file.dump.members.pop(group, None)
    return dumps


def absent_member(named: bool) -> JobDumps:
    job = DrawnJob(3, {"tp": [0, 1, 2]}, backend="gloo").call("all_reduce")
    return members(job.call("all_reduce", [0, 1], group="tp", done=False), "tp", (0, 1), named)


def unknown_peer(named: bool) -> JobDumps:
    job = DrawnJob(3, {"pp": [1, 2]}).call("all_reduce").message("recv", 1, 2, group="pp", done=False)
    return members(job, "pp", (1,), named)


def finished() -> DrawnJob:
    return DrawnJob(4).call("all_reduce")


REASONS: dict[Reason, tuple[JobDumps, str, JobDumps]] = {
    "host": (hung_job().dumps(), "its rank calls something else", odd_call()),
    "skipped_or_wrong": (odd_call(), "it calls the same", odd_call("all_reduce")),
    "overwritten": (odd_call(lost=True), "its older calls are there", odd_call()),
    "no_majority": (odd_call(ranks=2), "two others call the same", odd_call(ranks=3)),
    "no_file": (hung_job().dumps([0, 2, 3]), "its rank left one", hung_job().dumps()),
    "unreadable": (hung_job().dumps(unreadable=[1]), "it can be read", hung_job().dumps()),
    "below": (odd_call("all_reduce"), "one rank isn't in the call", hung_job().dumps()),
    "lost_message": (first_message(earlier=True), "no message shows the rhythm", first_message(earlier=False)),
    "lost_or_skipped": (first_message(earlier=False), "earlier ones show it", first_message(earlier=True)),
    "order_or_skipped": (crossing(1, 3), "one of them is in no call", crossing(3)),
    "slow": (paused(20), "they wait for longer than it ever paused", paused(40)),
    "unwritten_time": (hung_job().dumps(after_ns=None), "the files have times", hung_job().dumps()),
    "unrecorded_p2p": (in_messages(True), "the rank has no such messages", in_messages(False)),
    "unknown_members": (absent_member(named=False), "the dumps name them", absent_member(named=True)),
    "unknown_peer": (unknown_peer(named=False), "the dumps name them", unknown_peer(named=True)),
    "no_dumps": (hung_job().dumps(unreadable=range(4)), "one can be read", hung_job().dumps(unreadable=range(3))),
    "some_unread": (finished().dumps(unreadable=[2]), "all can be read", finished().dumps()),
}
"""Reason -> (dumps where it holds, what is different in the others, those)."""


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_is_given_where_it_holds(reason: Reason) -> None:
    holds, different, other = REASONS[reason]
    assert build(holds, NoParams()).verdict.why_unknown == WHY[reason]
    assert build(other, NoParams()).verdict.why_unknown != WHY[reason], different


def test_each_reason_has_dumps_that_make_it_false() -> None:
    assert REASONS.keys() == WHY.keys()
