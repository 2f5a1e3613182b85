"""Evidence of the Hangs tab: facts of the verdict, what was ruled out, and the stacks of the ranks."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timezone

from torch_tb_profiler.analyses.hangs.groups import JobGroup
from torch_tb_profiler.analyses.hangs.timing import MIN_HANG_NS, DumpTiming
from torch_tb_profiler.analyses.hangs.verdict import HangDiagnosis, is_library
from torch_tb_profiler.base.grammar import agree, all_of, capitalize, plural
from torch_tb_profiler.model.flight_recorder import JobDumps, RecordedCall, RecordedFrame, RecorderDump
from torch_tb_profiler.views.hangs import words
from torch_tb_profiler.views.hangs.payload import HangFact, HangStack, HangStackFrame

MAX_STACKS = 12
"""Different stacks that the page shows."""


def facts(found: HangDiagnosis) -> list[HangFact]:
    """Return the verdict in a few words each."""
    verdict, timing = found.verdict, found.timing
    listed: list[HangFact] = []
    if verdict.culprits:
        many = len(verdict.culprits) > 1
        listed.append(HangFact("Culprits" if many else "Culprit", words.name_ranks(verdict.culprits)))
    if verdict.waiting:
        listed.append(HangFact("Waiting", words.name_ranks(verdict.waiting)))
    if verdict.unseen:
        listed.append(HangFact("Waiting, no dump", words.name_ranks(verdict.unseen)))
    call = verdict.call
    if call is not None:
        listed.append(HangFact("Since", _format_time(call.created_ns)))
        if call.timeout_ns is not None:
            listed.append(HangFact("Timeout", words.format_wait(call.timeout_ns)))
    if timing.timeouts:
        listed.append(HangFact("Watchdog", _watchdog_text(timing)))
    listed.append(HangFact("As of", _format_dump_time(timing)))
    if verdict.groups and call is not None and not call.p2p:
        listed += _build_agreement_facts(found, verdict.groups[0], call)
    return listed


def _format_dump_time(timing: DumpTiming) -> str:
    if timing.copied_ns is not None:
        return f"unknown: the files are of {_format_time(timing.copied_ns)}, long after the timeout"
    return "unknown" if timing.as_of_ns is None else _format_time(timing.as_of_ns)


def _watchdog_text(timing: DumpTiming) -> str:
    """Return what the watchdogs gave up: "gave up all_reduce 418 after 10 min on ranks 0 and 1"."""
    first = min(timing.timeouts, key=lambda each: each.call.created_ns)
    ranks = sorted(each.rank for each in timing.timeouts if each.call.key == first.call.key)
    name, where = words.name_call(first.call), words.name_ranks(ranks)
    return f"gave up {name} after {words.format_wait(first.ran_ns)} on {where}"


def _build_agreement_facts(found: HangDiagnosis, group: JobGroup, call: RecordedCall) -> list[HangFact]:
    votes = next(
        (state.votes for state in found.graph.collectives if state.group is group and state.key == call.key), {}
    )
    if not votes:
        return []
    sizes = {elements for _, elements in votes}
    names = {name for name, _ in votes}
    same_sizes = "different" if len(names) == 1 and len(sizes) > 1 else "all agree" if len(names) == 1 else "–"
    return [HangFact("Sizes", same_sizes), HangFact("Operation", "all agree" if len(names) == 1 else "different")]


def _format_time(ns: int) -> str:
    moment = datetime.fromtimestamp(ns / 1e9, timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 100_000} UTC"


# ---- what was ruled out ---------------------------------------------------------------------------------


def ruled_out(found: HangDiagnosis, job: JobDumps) -> list[HangFact]:
    """Return other explanations that the dumps exclude, with the evidence."""
    verdict = found.verdict
    if verdict.kind in ("finished", "running", "unknown") or not verdict.groups:
        return []
    listed = []
    group = verdict.groups[0]
    compared, differ = _compare_histories(found, group)
    lost = [rank for rank in group.ranks if rank not in found.dumps]
    if compared and not differ and not verdict.kind.startswith("mismatch"):
        listed.append(
            HangFact(
                "Different program paths",
                f"The last {plural(compared, 'collective')} of {words.name_group(group)} "
                f"{agree(compared, 'is', 'are')} the same on all its ranks"
                f"{' with a readable dump' if lost else ''}",
            )
        )
    if not lost:
        ranks = capitalize(all_of(len(group.ranks), "rank"))
        listed.append(HangFact("A lost rank", f"{ranks} of the group wrote a readable dump"))
    timing = found.timing
    if timing.progress == "stuck" and timing.waited_ns is not None:
        evidence = f"The longest earlier pause between two calls was {words.format_wait(timing.gap_ns)}"
        if timing.between_ns is not None and timing.between_ns >= max(timing.gap_ns, MIN_HANG_NS):
            apart = words.format_wait(timing.between_ns)
            evidence = f"The same calls are pending in two dumps, {apart} apart"
        listed.append(HangFact("A slow step", evidence))
    if verdict.kind in ("not_joined", "p2p_cycle", "group_cycle") and not lost:
        listed.append(HangFact("Slow network", "The call can't start: not every member is in it"))
    return listed


def _compare_histories(found: HangDiagnosis, group: JobGroup) -> tuple[int, bool]:
    """Return how many of the last collectives all members have in their dumps, and whether any differs."""
    dumps = [found.dumps[rank] for rank in group.ranks if rank in found.dumps]
    histories = [dump.history.get(group.name) for dump in dumps]
    known = [history for history in histories if history is not None]
    if len(known) < len(dumps) or len(known) < 2:
        return 0, False
    first, last = max(history.first for history in known), min(history.last for history in known)
    if last < first:
        return 0, False
    reference = _signatures(dumps[0], group.name, first, last)
    return last - first + 1, any(_signatures(dump, group.name, first, last) != reference for dump in dumps[1:])


def _signatures(
    dump: RecorderDump, group: str, first: int, last: int
) -> list[tuple[str, tuple[int, ...] | None] | None]:
    history = dump.history[group]
    codes = history.codes[first - history.first : last - history.first + 1]
    return [dump.signatures[code - 1] if code else None for code in codes]


# ---- stacks ---------------------------------------------------------------------------------------------


def stacks(found: HangDiagnosis, job: JobDumps) -> list[HangStack]:
    """Return where the ranks are, those that have the same stack together: the waiters, then the culprits."""
    culprits = set(found.verdict.culprits)
    waiting: dict[tuple[str, tuple[RecordedFrame, ...]], list[int]] = defaultdict(list)
    held: dict[tuple[str, tuple[RecordedFrame, ...]], list[int]] = defaultdict(list)
    for rank in sorted(found.dumps):
        dump = found.dumps[rank]
        call = min(dump.pending, key=lambda each: each.created_ns, default=None)
        if call is not None:
            side = held if rank in culprits else waiting
            side[words.name_call(call), call.frames].append(rank)
    listed = [
        _stack(f"{words.name_ranks(ranks)} {agree(len(ranks), 'waits', 'wait')} in {name}", ranks, frames, rank_is)
        for side, rank_is in ((waiting, False), (held, True))
        for (name, frames), ranks in sorted(side.items(), key=lambda each: -len(each[1]))[: MAX_STACKS // 2]
    ]
    for rank in sorted(culprits)[: MAX_STACKS // 2]:
        listed += _build_culprit_stacks(found, job, rank)
    return [stack for stack in listed if stack.frames or stack.note]


def _stack(title: str, ranks: list[int], frames: tuple[RecordedFrame, ...], culprit: bool) -> HangStack:
    return HangStack(capitalize(title), ranks, "flight recorder", culprit, _frames(frames), None)


def _frames(frames: tuple[RecordedFrame, ...]) -> list[HangStackFrame]:
    return [HangStackFrame(frame.file, frame.line, frame.function, is_library(frame)) for frame in frames]


def _build_culprit_stacks(found: HangDiagnosis, job: JobDumps, rank: int) -> list[HangStack]:
    """Return where a culprit is, from its stack dump, or else what it called last."""
    dumped = job.stacks.get(rank)
    if dumped is not None and dumped.threads:
        title = f"Rank {rank} is here, by {dumped.source}"
        return [HangStack(title, [rank], dumped.source, True, _frames(dumped.threads[0]), None)]
    dump = found.dumps.get(rank)
    if dump is None or dump.pending:
        return []
    how = (
        "A flight recorder doesn't say where a rank is between calls. Run `py-spy dump --pid <pid> > "
        f"rank{rank}.stack.txt` on its node, and put the file beside the dumps."
    )
    last = max(dump.recent, key=lambda call: call.created_ns, default=None)
    if last is None:
        return [HangStack(f"Rank {rank} has made no calls", [rank], "flight recorder", True, [], how)]
    title = f"Rank {rank} last called {words.name_call(last)}, finished"
    since = found.timing.as_of_ns
    if since is not None:
        how = f"Nothing for {words.format_wait(since - last.created_ns)}. {how}"
    return [HangStack(title, [rank], "flight recorder", True, _frames(last.frames), how)]
