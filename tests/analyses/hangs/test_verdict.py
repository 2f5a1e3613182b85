"""Who holds a job up: each verdict with the job that makes it, and the job that would make it false."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.dumps import DrawnJob, hung_job
from torch_tb_profiler.analyses.hangs.verdict import HangVerdict, diagnose
from torch_tb_profiler.model.flight_recorder import JobDumps, WatchdogTimeout


def verdict(job: DrawnJob | JobDumps) -> HangVerdict:
    return diagnose(job.dumps() if isinstance(job, DrawnJob) else job).verdict


def test_a_rank_in_no_call_is_the_culprit_and_the_others_wait_for_it() -> None:
    found = verdict(hung_job(culprit=1))
    assert (found.kind, found.culprits, found.waiting, found.direct) == ("not_joined", (1,), (0, 2, 3), (0, 2, 3))
    assert found.call is not None and (found.call.operation, found.call.number) == ("all_reduce", 4)
    assert found.line == "/job/train.py:88"


def test_calls_queued_behind_the_first_pending_one_do_not_move_the_verdict() -> None:
    job = hung_job(culprit=1)
    for _ in range(5):
        job.call("all_reduce", [0, 2, 3], done=False)
    found = verdict(job)
    assert found.culprits == (1,) and found.call is not None and found.call.number == 4


def test_who_waits_for_a_waiting_rank_is_a_victim_of_the_root() -> None:
    job = DrawnJob(6, {"a": [0, 1], "b": [1, 2], "c": [2, 3], "d": [4, 5]})
    for name in "abcd":
        job.call("all_reduce", group=name)
    job.call("all_reduce", [0], group="a", done=False)
    job.call("all_reduce", [1], group="b", done=False)
    job.call("all_reduce", [2], group="c", done=False)
    found = verdict(job)
    assert (found.kind, found.culprits, found.direct) == ("not_joined", (3,), (2,))
    assert found.waiting == (0, 1, 2)  # 4 and 5 wait for nobody
    assert [group.name for group in found.groups] == ["c"]


def test_no_pending_call_is_a_finished_job() -> None:
    assert verdict(DrawnJob(4).call("all_reduce")).kind == "finished"
    assert verdict(DrawnJob(4)).kind == "finished"


def test_young_calls_are_a_running_job_and_old_ones_are_not() -> None:
    assert verdict(hung_job().dumps(after_ns=900_000_000)).kind == "running"
    assert verdict(hung_job().dumps(after_ns=1_100_000_000)).kind == "not_joined"


def test_a_call_younger_than_an_earlier_pause_accuses_nobody() -> None:
    job = DrawnJob(4).call("all_reduce")
    job.time += 30 * 10**9
    job.call("all_reduce").call("all_reduce", [0, 1, 2], done=False)
    found = verdict(job.dumps(after_ns=20 * 10**9))
    assert (found.kind, found.culprits, found.reason) == ("unknown", (), "slow")
    assert verdict(job.dumps(after_ns=40 * 10**9)).culprits == (3,)


def test_without_times_of_the_files_the_verdict_says_that_it_may_be_slow() -> None:
    found = verdict(hung_job().dumps(after_ns=None))
    assert (found.kind, found.reason) == ("not_joined", "unwritten_time")


def test_of_two_dumps_the_same_pending_call_is_stuck_and_another_one_runs() -> None:
    job = hung_job()
    first = job.dumps(after_ns=100_000_000).files
    assert verdict(JobDumps(job.dumps(after_ns=2 * 10**9).files, first)).kind == "not_joined"
    assert (
        verdict(JobDumps(job.dumps(after_ns=200_000_000).files, first)).kind == "running"
    )  # too close to each other
    for entries in job.entries.values():
        for entry in entries:
            entry.update(state="completed", retired=True)
    job.call("all_reduce", [1]).call("all_reduce", [0], done=False)
    assert verdict(JobDumps(job.dumps(after_ns=900 * 10**9).files, first)).kind == "running"


def test_two_dumps_further_apart_than_any_earlier_pause_rule_out_a_slow_step() -> None:
    job = DrawnJob(4).call("all_reduce")
    job.time += 30 * 10**9
    job.call("all_reduce").call("all_reduce", [0, 1, 2], done=False)
    first = job.dumps(after_ns=10**9).files
    assert verdict(JobDumps(job.dumps(after_ns=20 * 10**9).files, first)).reason == "slow"
    longer = job.dumps(after_ns=45 * 10**9).files
    assert diagnose(JobDumps(longer, first)).timing.progress == "stuck"


def test_files_far_newer_than_the_timeout_were_copied_and_have_no_time_of_the_dump() -> None:
    found = diagnose(hung_job().dumps(after_ns=30 * 86_400 * 10**9))
    assert (found.timing.as_of_ns, found.timing.waited_ns, found.timing.progress) == (None, None, "unknown")
    assert (found.verdict.culprits, found.verdict.reason) == ((1,), "unwritten_time")
    assert diagnose(hung_job().dumps(after_ns=3000 * 10**9)).timing.copied_ns is None  # 40 min after the timeout


# ---- mismatches -----------------------------------------------------------------------------------------


def test_the_minority_called_something_else() -> None:
    job = DrawnJob(4).call("all_reduce")
    job.call("all_gather", [2], done=False, line=99).call("all_reduce", [0, 1, 3], done=False)
    found = verdict(job)
    assert (found.kind, found.culprits, found.waiting) == ("mismatch_op", (2,), (0, 1, 3))
    assert found.culprit_call is not None and found.culprit_call.operation == "all_gather"
    assert found.line == "/job/train.py:99"


def test_of_two_members_both_are_named() -> None:
    job = DrawnJob(2).call("all_gather", [0], done=False).call("all_reduce", [1], done=False)
    found = verdict(job)
    assert (found.kind, found.culprits, found.reason) == ("mismatch_op", (0, 1), "no_majority")


def test_sizes_must_agree_where_the_operation_needs_it() -> None:
    job = DrawnJob(4).call("all_reduce", [3], done=False, elements=48).call("all_reduce", [0, 1, 2], done=False)
    assert (verdict(job).kind, verdict(job).culprits) == ("mismatch_size", (3,))
    uneven = DrawnJob(4).call("all_to_all", [3], done=False, elements=48).call("all_to_all", [0, 1, 2], done=False)
    assert (verdict(uneven).kind, verdict(uneven).culprits) == ("all_joined", ())


def draw_swapped(then: list[str]) -> DrawnJob:
    job = DrawnJob(4)
    for name in ("all_gather", "all_reduce", *then):
        job.call(name, [0], done=False)
    for name in ("all_reduce", "all_gather", "all_reduce", "all_gather"):
        job.call(name, [1, 2, 3], done=False)
    return job


def test_exchanged_calls_are_a_mismatch_of_order() -> None:
    assert verdict(draw_swapped([])).kind == "mismatch_order"
    assert verdict(draw_swapped(["all_reduce", "all_gather"])).kind == "mismatch_order"


def test_a_skipped_call_of_a_repeating_pattern_is_not_a_swap() -> None:
    found = verdict(draw_swapped(["all_gather"]))  # gather reduce gather: one reduce was left out
    assert (found.kind, found.culprits) == ("mismatch_op", (0,))


def test_a_call_that_finished_on_a_member_counts_as_what_it_called() -> None:
    job = DrawnJob(4).call("broadcast", [0]).call("all_reduce", [1, 2, 3], done=False)
    assert (verdict(job).kind, verdict(job).culprits) == ("mismatch_op", (0,))


# ---- lost dumps and lost entries ------------------------------------------------------------------------


def test_a_rank_without_a_dump_is_waited_for() -> None:
    found = verdict(hung_job(culprit=2).dumps([0, 1, 3]))
    assert (found.kind, found.culprits) == ("no_dump", (2,))


def test_an_unreadable_dump_is_no_proof_against_a_rank_that_surely_is_in_no_call() -> None:
    assert verdict(hung_job(culprit=2).dumps(unreadable=[2])).kind == "unreadable_dump"
    found = verdict(hung_job(culprit=2).dumps(unreadable=[0]))
    assert (found.kind, found.culprits, found.waiting, found.unseen) == ("not_joined", (2,), (1, 3), (0,))


def test_no_readable_dump_is_unknown() -> None:
    assert verdict(hung_job().dumps(unreadable=range(4))).kind == "unknown"


def test_entries_that_the_ring_lost_are_not_missing_calls() -> None:
    job = DrawnJob(4)
    for _ in range(30):
        job.call("all_reduce")
    job.call("all_reduce", [0, 1, 2], done=False)
    for rank in range(4):
        job.lose(rank, 10 + rank)
    assert verdict(job).culprits == (3,)


# ---- messages -------------------------------------------------------------------------------------------


def test_a_receive_waits_for_the_rank_that_has_not_sent() -> None:
    job = DrawnJob(4, {"pp": [1, 3]}).call("all_reduce")
    job.message("send", 1, 3, group="pp").message("recv", 3, 1, group="pp")
    found = verdict(job.message("recv", 3, 1, group="pp", done=False))
    assert (found.kind, found.culprits, found.direct) == ("not_joined", (1,), (3,))
    assert found.call is not None and (found.call.operation, found.call.number) == ("recv", 2)


def test_a_posted_counterpart_accuses_nobody() -> None:
    job = DrawnJob(2).message("send", 0, 1, done=False).message("recv", 1, 0, done=False)
    assert (verdict(job).kind, verdict(job).culprits) == ("all_joined", ())


def test_receives_before_the_sends_are_a_cycle() -> None:
    job = DrawnJob(4)
    for rank in range(3):
        job.message("recv", rank, (rank + 1) % 3, done=False)
    job.call("all_reduce", [3], done=False)
    found = verdict(job)
    assert (found.kind, found.culprits, found.waiting) == ("p2p_cycle", (0, 1, 2), (0, 1, 2, 3))


def test_a_batch_has_the_state_of_its_closing_entry() -> None:
    job = DrawnJob(3)
    ring = {rank: [("send", (rank + 1) % 3), ("recv", (rank - 1) % 3)] for rank in range(3)}
    for rank in range(3):
        job.batch(rank, ring[rank])
    for rank in (0, 1):
        job.batch(rank, ring[rank], done=False)
    found = verdict(job)
    assert (found.kind, found.culprits) == ("not_joined", (2,))
    assert found.call is not None and (found.call.operation, found.call.number) == ("coalesced", 2)


def exchanges(steps: int) -> DrawnJob:
    """Return a job whose rank 2 sends to rank 1 before each all_reduce."""
    job = DrawnJob(3)
    for _ in range(steps):
        job.message("send", 2, 1).message("recv", 1, 2).call("all_reduce")
    return job


def test_a_missing_send_whose_rank_went_on_is_unmatched() -> None:
    job = exchanges(3).message("recv", 1, 2, done=False)
    found = verdict(job.call("all_reduce", [0, 2], done=False))
    assert (found.kind, found.culprits, found.direct, found.waiting) == ("unmatched_p2p", (2,), (1,), (0, 1))


def test_who_skips_a_collective_and_arrives_early_at_a_message_makes_no_culprit_of_its_sender() -> None:
    job = exchanges(3).message("send", 2, 1).message("recv", 1, 2)
    job.call("all_reduce", [0, 2], done=False).message("recv", 1, 2, done=False)  # 1 has left out all_reduce 4
    found = verdict(job)
    assert (found.kind, found.culprits, found.reason) == ("unknown", (), "lost_or_skipped")


def test_of_the_first_message_nobody_knows_who_sends_it() -> None:
    job = DrawnJob(3).call("all_reduce").message("recv", 1, 2, done=False)
    found = verdict(job.call("all_reduce", [0, 2], done=False))
    assert (found.kind, found.culprits, found.reason) == ("unknown", (), "lost_or_skipped")


def test_after_lost_entries_the_first_pending_messages_belong_together() -> None:
    job = DrawnJob(2)
    for _ in range(6):
        job.message("send", 0, 1).message("recv", 1, 0)
    job.message("recv", 1, 0, done=False).lose(1, 4)
    assert (verdict(job).kind, verdict(job).culprits) == ("not_joined", (0,))
    job.message("send", 0, 1, done=False)
    assert verdict(job).kind == "all_joined"


# ---- groups ---------------------------------------------------------------------------------------------


def test_groups_in_opposite_order_are_a_cycle() -> None:
    job = DrawnJob(4, {"g0": [0, 1, 2], "g1": [0, 1, 3]}).call("all_reduce")
    job.call("all_reduce", [0, 2], group="g0", done=False).call("all_reduce", [1, 3], group="g1", done=False)
    found = verdict(job)
    assert (found.kind, found.culprits, found.direct) == ("group_cycle", (0, 1), (0, 1))
    assert [group.name for group in found.groups] == ["g0", "g1"] and found.waiting == (0, 1, 2, 3)


def test_everyone_in_the_call_is_nobodys_fault() -> None:
    found = verdict(DrawnJob(4).call("all_reduce").call("all_reduce", done=False))
    assert (found.kind, found.culprits, found.waiting) == ("all_joined", (), (0, 1, 2, 3))


def test_one_name_may_mean_different_groups() -> None:
    job = DrawnJob(4, {"tp": [0, 1]}).call("all_reduce", group="tp", done=False)
    other = DrawnJob(4, {"tp": [2, 3]}).call("all_reduce", [2], group="tp", done=False)
    files = job.dumps([0, 1]).files + other.dumps([2, 3]).files
    found = diagnose(JobDumps(files)).verdict
    assert (found.kind, found.culprits, found.direct) == ("not_joined", (3,), (2,))


# ---- recorders ------------------------------------------------------------------------------------------


def test_retired_means_finished_for_gloo_and_timed_out_for_nccl() -> None:
    gloo = DrawnJob(2, backend="gloo").call("all_reduce").call("all_reduce", [0], done=False)
    assert (verdict(gloo).kind, verdict(gloo).culprits) == ("not_joined", (1,))
    nccl = DrawnJob(2).call("all_reduce").call("all_reduce", done=False)
    for entries in nccl.entries.values():
        entries[-1]["retired"] = True
    assert verdict(nccl).kind == "all_joined"


def test_a_gloo_rank_in_an_unrecorded_message_is_not_accused() -> None:
    job = DrawnJob(2, backend="gloo").call("all_reduce").call("all_reduce", [0], done=False)
    files = list(job.dumps().files)
    assert files[1].dump is not None
    files[1].dump.unrecorded = True
    found = verdict(JobDumps(tuple(files)))
    assert (found.kind, found.culprits, found.reason) == ("unknown", (), "unrecorded_p2p")


def test_members_that_no_dump_names_leave_the_culprit_unknown() -> None:
    job = DrawnJob(3, {"tp": [0, 1, 2]}, backend="gloo").call("all_reduce")
    job.call("all_reduce", [0, 1], group="tp", done=False)
    files = list(job.dumps().files)
    for file in files:
        assert file.dump is not None
        file.dump.members.pop("tp") if file.rank == 2 else None
        if file.rank != 2:
            group = file.dump.members["tp"]
            file.dump.members["tp"] = group._replace(ranks=())
    found = verdict(JobDumps(tuple(files)))
    assert (found.kind, found.culprits, found.reason) == ("unknown", (), "unknown_members")


@pytest.mark.parametrize("culprit", range(4))
def test_the_order_of_the_files_changes_nothing(culprit: int) -> None:
    files = hung_job(culprit=culprit).dumps().files
    for turn in range(4):
        assert verdict(JobDumps(files[turn:] + files[:turn])).culprits == (culprit,)


def gave_up(rank: int | None, number: int = 4, ran_s: int = 600, **fields: Any) -> WatchdogTimeout:
    found = WatchdogTimeout(rank, 0 if rank is None else rank, "0", number, "ALLREDUCE", ran_s * 10**9)
    return found._replace(**fields)


def test_the_watchdog_says_how_long_a_call_was_pending_where_files_do_not() -> None:
    job = hung_job().dumps(after_ns=None)
    assert diagnose(job).timing.as_of_ns is None
    timing = diagnose(replace(job, timeouts=(gave_up(0), gave_up(2, ran_s=601)))).timing
    assert (timing.progress, timing.waited_ns) == ("stuck", 601 * 10**9)
    assert [(each.rank, each.call.number) for each in timing.timeouts] == [(0, 4), (2, 4)]


@pytest.mark.parametrize(
    "other",
    [
        gave_up(1),  # it is in no call
        gave_up(0, number=3),
        gave_up(0, group="1"),
        gave_up(0, operation="BROADCAST"),
        gave_up(0, ran_s=599),  # less than the timeout of the call
    ],
)
def test_a_line_about_another_call_says_nothing(other: WatchdogTimeout) -> None:
    timing = diagnose(replace(hung_job().dumps(after_ns=None), timeouts=(other,))).timing
    assert timing.as_of_ns is None and not timing.timeouts


def test_without_a_global_rank_the_watchdog_counts_within_the_group() -> None:
    job = DrawnJob(4, {"a": [1, 3]}).call("all_reduce", group="a").call("all_reduce", [3], group="a", done=False)
    timeout = gave_up(None, number=2, position=1, group="a")
    (found,) = diagnose(replace(job.dumps(after_ns=None), timeouts=(timeout,))).timing.timeouts
    assert found.rank == 3


def test_the_time_that_a_dump_holds_counts_before_that_of_its_file() -> None:
    job = hung_job()
    job.dumped_ns = job.time + 20 * 10**9
    first = hung_job()
    first.dumped_ns = job.time + 5 * 10**9
    copied = job.dumps(after_ns=7200 * 10**9)
    timing = diagnose(replace(copied, earlier=first.dumps(after_ns=7200 * 10**9).files)).timing
    assert (timing.progress, timing.as_of_ns, timing.copied_ns) == ("stuck", job.dumped_ns, None)
    assert timing.between_ns == 15 * 10**9
