"""Sentences of the Hangs tab."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_tb_profiler.analyses.hangs.groups import DEFAULT_GROUP, JobGroup
from torch_tb_profiler.analyses.hangs.timing import MIN_HANG_NS, DumpTiming
from torch_tb_profiler.analyses.hangs.verdict import HangDiagnosis, HangVerdict, Reason
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import agree, all_of, capitalize, join_words, plural
from torch_tb_profiler.model.flight_recorder import RecordedCall
from torch_tb_profiler.views._shared.text import Text, sentences, shorten_name, text

MAX_LISTED_RANKS = 4
"""Runs of ranks that a sentence names; more are counted."""

_MINUTE_NS, _HOUR_NS = 60 * 10**9, 3600 * 10**9

WHY: dict[Reason, str] = {
    "host": "A flight recorder shows that the rank is in no communication call, not what its host does instead.",
    "skipped_or_wrong": "A skipped call and a wrong call look the same here.",
    "overwritten": "Older calls are overwritten, so a skipped call and a wrong call look the same here.",
    "no_majority": "There is no majority, so either side may be wrong.",
    "no_file": "A killed process, a frozen one, and a lost file look the same.",
    "unreadable": "What the rank was doing is in the part of its dump that can't be read.",
    "below": "Every member is in the call, so the cause is below it: network, GPU, or just a slow transfer.",
    "lost_message": "A missing send and an extra receive look the same.",
    "lost_or_skipped": "A missing message and a skipped collective look the same.",
    "order_or_skipped": "Using the groups in opposite order and skipping a call look the same here.",
    "slow": "The pending calls are younger than an earlier pause of this job, so it may only be slow.",
    "unwritten_time": "Without the times of the dumps a slow job looks like a hung one.",
    "unrecorded_p2p": "The idle ranks may wait in a send or receive, which Gloo's recorder leaves out.",
    "unknown_members": "The dumps don't name the group's members, so an absent one would not be noticed.",
    "unknown_peer": "The dumps don't name the group's members, so the other side of a message is unknown.",
    "no_dumps": "No dump could be read.",
    "some_unread": "The ranks without a readable dump may be waiting.",
}


def list_ranks(ranks: Sequence[int]) -> str:
    """Return sorted ranks with runs joined: "0, 1, 3 to 7"."""
    parts: list[str] = []
    for begin, end in _find_runs(ranks):
        parts += [f"{begin} to {end}"] if end - begin > 1 else [str(rank) for rank in range(begin, end + 1)]
    return ", ".join(parts)


def _find_runs(ranks: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], rank
        else:
            runs.append((rank, rank))
    return runs


def name_ranks(ranks: Sequence[int]) -> str:
    """Return ranks as the subject of a sentence: "rank 2", "ranks 0 and 1", "ranks 0 to 7", "512 ranks"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    runs = _find_runs(ranks)
    if len(runs) > MAX_LISTED_RANKS:
        return plural(len(ranks), "rank")
    return f"ranks {join_words(list_ranks(ranks).split(', '))}"


def name_group(group: JobGroup) -> str:
    """Return a group as a sentence names it."""
    if group.description == DEFAULT_GROUP:
        return "the default group"
    return f"group {shorten_name(group.description or group.name)}"


def name_call(call: RecordedCall) -> str:
    """Return a call as a sentence names it: "all_reduce 418"."""
    return f"{shorten_name(call.operation)} {call.number:,}"


def format_wait(ns: float) -> str:
    """Return how long somebody has waited: "2.5 s", "10 min", "3 h 20 min"."""
    if ns < 2 * _MINUTE_NS:
        return format_duration(ns)
    if ns < _HOUR_NS:
        return f"{round(ns / _MINUTE_NS)} min"
    hours, minutes = divmod(round(ns / _MINUTE_NS), 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def headline(found: HangDiagnosis) -> Text:
    """Return who holds the job up, in which call, and who waits."""
    verdict, timing = found.verdict, found.timing
    call, group = verdict.call, verdict.groups[0] if verdict.groups else None
    culprits = capitalize(name_ranks(verdict.culprits)) if verdict.culprits else ""
    match verdict.kind:
        case "finished":
            return text("No rank is waiting: every recorded call has finished.")
        case "running":
            return text("The job was running when the dumps were written; no call is stuck.")
        case "unknown":
            return _unknown_sentence(verdict)
        case "not_joined" if call is not None and call.p2p:
            return text(
                "{culprit} never joined {peer}'s {operation} in {group}; {waiters}.",
                culprit=culprits,
                peer=_name_first(verdict.direct),
                operation=shorten_name(call.operation),
                group=name_group(group) if group else "",
                waiters=_waiters_text(verdict, timing),
            )
        case "not_joined" if call is not None:
            return text(
                "{culprit} never called {call}; {waiters}.",
                culprit=culprits,
                call=name_call(call),
                waiters=_waiters_text(verdict, timing),
            )
        case "no_dump" if call is not None:
            return text(
                "{culprit} left no flight recorder; {waiters} in {call}.",
                culprit=culprits,
                waiters=_waiters_text(verdict, timing),
                call=name_call(call),
            )
        case "unreadable_dump" if call is not None:
            return text(
                "The {dump} of {culprit} can't be read; {waiters} in {call}.",
                dump=agree(len(verdict.culprits), "dump", "dumps"),
                culprit=name_ranks(verdict.culprits),
                waiters=_waiters_text(verdict, timing),
                call=name_call(call),
            )
        case "mismatch_op" | "mismatch_size" | "mismatch_order" if call is not None and group is not None:
            return _mismatch_sentence(verdict, call, group)
        case "p2p_cycle" if call is not None and group is not None:
            return text(
                "{ranks} wait for each other in {group}: each is in {operation}, and none can proceed.",
                ranks=culprits,
                group=name_group(group),
                operation=shorten_name(call.operation),
            )
        case "group_cycle":
            return text(
                "{ranks} wait for each other: they use {groups} in opposite order.",
                ranks=culprits,
                groups=f"groups {_join_groups(verdict.groups)}" if len(verdict.groups) > 1 else "their calls",
            )
        case "unmatched_p2p" if call is not None:
            other = verdict.culprit_call
            return text(
                "{waiter} waits in {operation} for {culprit}, which {rest}.",
                waiter=capitalize(name_ranks(verdict.direct)),
                operation=shorten_name(call.operation),
                culprit=name_ranks(verdict.culprits),
                rest=f"has gone on to {name_call(other)}" if other is not None else "has gone on",
            )
        case _:
            count = len(group.ranks) if group else 0
            return text(
                "{ranks} of {group} {are} in {call}, and it doesn't finish. {rest}",
                ranks=capitalize(all_of(count, "rank")),
                are=agree(count, "is", "are"),
                group=name_group(group) if group else "",
                call=name_call(call) if call else "",
                rest="Suspect the network or a GPU.",
            )


def _join_groups(groups: Iterable[JobGroup]) -> str:
    return join_words([shorten_name(group.description or group.name) for group in groups][:MAX_LISTED_RANKS])


def _name_first(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if ranks else "its peer"


def _unknown_sentence(verdict: HangVerdict) -> Text:
    if verdict.reason == "no_dumps":
        return text("No flight recorder can be read, so who holds the job up is unknown.")
    if verdict.call is None:
        return text("Who holds the job up is unknown.")
    waiting = len(verdict.waiting)
    if verdict.reason == "slow":
        return text(
            "{ranks} in {call}, but the job may only be slow.",
            ranks=f"{plural(waiting, 'rank')} {agree(waiting, 'is', 'are')} waiting",
            call=name_call(verdict.call),
        )
    return text(
        "{ranks} in {call}; these dumps don't show for whom.",
        ranks=f"{plural(waiting, 'rank')} {agree(waiting, 'waits', 'wait')}",
        call=name_call(verdict.call),
    )


def _waiters_text(verdict: HangVerdict, timing: DumpTiming) -> str:
    """Return who waits, and how long: "the other 7 ranks have waited 10 min for it".

    Where dumps show some wait, those without a dump are left out: whether they have come so far isn't known.
    """
    ranks = verdict.waiting or verdict.unseen
    count, other = len(ranks), "" if len(ranks) < len({*verdict.waiting, *verdict.unseen}) else "the other "
    others = f"{other}{count:,} ranks" if count > MAX_LISTED_RANKS else name_ranks(sorted(ranks))
    one = count == 1
    object_ = agree(len(verdict.culprits), "it", "them")
    if verdict.call is None or timing.as_of_ns is None:
        return f"{others} {'waits' if one else 'wait'} for {object_}"
    waited = format_wait(timing.as_of_ns - verdict.call.created_ns)
    return f"{others} {'has' if one else 'have'} waited {waited} for {object_}"


def _mismatch_sentence(verdict: HangVerdict, call: RecordedCall, group: JobGroup) -> Text:
    (majority, most), (odd, few) = verdict.votes[0], verdict.votes[1]
    tie = verdict.reason == "no_majority"
    ranks = capitalize(name_ranks(few if tie else verdict.culprits))
    rest = name_ranks(most) if tie or len(most) == 1 else f"the other {plural(len(most), 'rank')}"
    if verdict.kind == "mismatch_size":
        return text(
            "{ranks} passed {odd} to {call} of {group}, {rest} {majority}.",
            ranks=ranks,
            odd=_elements_text(odd[1]),
            call=name_call(call),
            group=name_group(group),
            rest=rest,
            majority=_elements_text(majority[1]),
        )
    if verdict.kind == "mismatch_order":
        return text(
            "{ranks} called {odd} before {majority}, {rest} the other way around (call {number} of {group}).",
            ranks=ranks,
            odd=shorten_name(odd[0]),
            majority=shorten_name(majority[0]),
            rest=rest,
            number=f"{call.number:,}",
            group=name_group(group),
        )
    return text(
        "{ranks} called {odd} where {rest} called {majority} (call {number} of {group}).",
        ranks=ranks,
        odd=shorten_name(odd[0]),
        rest=rest,
        majority=shorten_name(majority[0]),
        number=f"{call.number:,}",
        group=name_group(group),
    )


def _elements_text(elements: tuple[int, ...] | None) -> str:
    if not elements:
        return "no elements"
    if len(elements) == 1:
        return plural(elements[0], "element")
    return f"{sum(elements):,} elements in {plural(len(elements), 'tensor')}"


def explanation(found: HangDiagnosis, stacked: bool) -> Text:
    """Return what is known about the culprit, and what would tell more.

    stacked  a stack dump of a culprit is there
    """
    verdict, timing = found.verdict, found.timing
    why = text(WHY[verdict.reason]) if verdict.reason else ()
    if verdict.kind == "running":
        return text(
            "The oldest pending call was {age} old, less than {limit}."
            if timing.between_ns is None
            else "The calls that were pending in the first dump had finished by the second.",
            age=format_duration(timing.waited_ns),
            limit=format_duration(MIN_HANG_NS),
        )
    if verdict.kind == "not_joined":
        last = _find_last_finished(found, verdict.culprits[0])
        done = (
            text(
                "{rank} last called {call} of {group}, which finished.",
                rank=capitalize(name_ranks(verdict.culprits[:1])),
                call=name_call(last),
                group=name_group(found.groups.find(verdict.culprits[0], last.group)),
            )
            if last is not None
            else text("{rank} has made no calls.", rank=capitalize(name_ranks(verdict.culprits[:1])))
        )
        look = () if stacked else text("To see where it is, dump its stack: `py-spy dump --pid <pid>`.")
        reason_shown = () if verdict.reason == "host" else why
        return sentences(done, reason_shown, look)
    if verdict.kind == "unknown" and verdict.reason == "slow":
        return sentences(why, text("Dump a second time a minute later, into the same folder."))
    waiting = len(verdict.waiting)
    if verdict.kind.startswith("mismatch") and waiting:
        held = text(
            "{ranks} {verb} held up by it.", ranks=plural(waiting, "rank"), verb=agree(waiting, "is", "are")
        )
        return sentences(held, why)
    return why


def _find_last_finished(found: HangDiagnosis, rank: int) -> RecordedCall | None:
    dump = found.dumps.get(rank)
    if dump is None or not dump.recent:
        return None
    return max(dump.recent, key=lambda call: call.created_ns)
