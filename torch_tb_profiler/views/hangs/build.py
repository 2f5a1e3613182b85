"""Hangs: who waits for whom in a job that stands still."""

from __future__ import annotations

from collections import defaultdict

from torch_tb_profiler.analyses.hangs.groups import JobGroup
from torch_tb_profiler.analyses.hangs.verdict import HangDiagnosis, HangVerdict, diagnose, own_line
from torch_tb_profiler.analyses.hangs.waits import CollectiveState
from torch_tb_profiler.base.grammar import join_words
from torch_tb_profiler.model.flight_recorder import JobDumps, RankFile, RecordedCall, RecorderDump
from torch_tb_profiler.view import DumpsView, NoParams, Tab
from torch_tb_profiler.views._shared.availability import hangs_reason
from torch_tb_profiler.views.hangs import evidence, words
from torch_tb_profiler.views.hangs.payload import (
    HangCallRow,
    HangGroupRow,
    HangRankRow,
    HangsPayload,
    HangVerdictPayload,
    HangWait,
    Role,
)

MAX_DRAWN_CALLS = 14
"""Most collectives of the verdict's group that the page draws, a column each: more don't fit the page."""


def build(job: JobDumps, _: NoParams) -> HangsPayload:
    """Build the verdict on a hung job with its evidence."""
    found = diagnose(job)
    verdict = found.verdict
    return HangsPayload(
        headline=words.headline(found),
        explanation=words.explanation(found, any(rank in job.stacks for rank in verdict.culprits)),
        as_of_ns=found.timing.as_of_ns,
        verdict=_build_verdict(verdict),
        facts=evidence.facts(found),
        ruled_out=evidence.ruled_out(found, job),
        stacks=evidence.stacks(found, job),
        ranks=_build_rank_rows(found, job),
        groups=_group_rows(found),
        calls=_call_rows(found),
        problems=list(job.problems),
    )


def _build_verdict(verdict: HangVerdict) -> HangVerdictPayload:
    call, groups = verdict.call, verdict.groups
    other = verdict.culprit_call
    differs = call is not None and other is not None and other.operation != call.operation
    return HangVerdictPayload(
        verdict=verdict.kind,
        culprit_ranks=list(verdict.culprits),
        group=_one_or_list([group.name for group in groups]),
        group_desc=_one_or_list([group.description for group in groups]),
        collective_seq_id=None if call is None or call.p2p else call.number,
        p2p_seq_id=call.number if call is not None and call.p2p else None,
        profiling_name=None if call is None else call.operation,
        culprit_profiling_name=other.operation if differs and other is not None else None,
        waiting_ranks=list(verdict.waiting),
        unseen_waiting_ranks=list(verdict.unseen),
        directly_waiting_ranks=list(verdict.direct),
        line=verdict.line,
        alternatives=[
            HangWait(
                wait.group.name,
                wait.group.description,
                None if wait.call.p2p else wait.call.number,
                wait.call.number if wait.call.p2p else None,
                wait.call.operation,
                own_line(wait.call.frames),
            )
            for wait in verdict.others
        ],
        why_unknown=words.WHY[verdict.reason] if verdict.reason else None,
    )


def _one_or_list(names: list[str]) -> str | list[str] | None:
    return names if len(names) > 1 else names[0] if names else None


# ---- ranks ----------------------------------------------------------------------------------------------


def _build_rank_rows(found: HangDiagnosis, job: JobDumps) -> list[HangRankRow]:
    files = {file.rank: file for file in job.files}
    culprits, waiting = set(found.verdict.culprits), {*found.verdict.waiting, *found.verdict.direct}
    unseen = set(found.verdict.unseen)

    def role(rank: int) -> Role:
        if rank in culprits:
            return "culprit"
        if rank in waiting:
            return "waiting"
        if rank in unseen:
            return "unseen"
        if rank in found.dumps:
            return "idle"
        return "unreadable" if rank in files else "missing"

    return [_build_rank_row(rank, files.get(rank), role(rank), found) for rank in found.groups.ranks]


def _build_rank_row(rank: int, file: RankFile | None, role: Role, found: HangDiagnosis) -> HangRankRow:
    dump = file.dump if file is not None else None
    pending = first_pending(dump)
    last = max(dump.recent, key=lambda call: call.created_ns, default=None) if dump is not None else None
    as_of = found.timing.as_of_ns
    return HangRankRow(
        rank=rank,
        state="ready" if dump is not None else "missing" if file is None else "unreadable",
        role=role,
        group=None if pending is None else _group_label(found, rank, pending),
        pending_name=None if pending is None else pending.operation,
        pending_seq_id=None if pending is None else pending.number,
        waited_ns=None if pending is None or as_of is None else max(as_of - pending.created_ns, 0),
        line=None if pending is None else own_line(pending.frames),
        last_group=None if last is None else _group_label(found, rank, last),
        last_name=None if last is None else last.operation,
        last_seq_id=None if last is None else last.number,
        entries=None if dump is None else dump.entries,
        lost=dump is not None and dump.lost,
        file=None if file is None else file.name,
        problem=None if file is None else file.problem,
    )


def first_pending(dump: RecorderDump | None) -> RecordedCall | None:
    """Return the pending call that a rank made first."""
    return min(dump.pending, key=lambda call: call.created_ns, default=None) if dump is not None else None


def _group_label(found: HangDiagnosis, rank: int, call: RecordedCall) -> str:
    group = found.groups.find(rank, call.group)
    return group.description or group.name


# ---- groups ---------------------------------------------------------------------------------------------


def _group_rows(found: HangDiagnosis) -> list[HangGroupRow]:
    states: dict[JobGroup, CollectiveState] = {}
    for state in sorted(found.graph.collectives, key=lambda state: state.key.number, reverse=True):
        states[state.group] = state
    p2p: dict[JobGroup, list[int]] = defaultdict(list)
    for wait in found.graph.peer_waits:
        p2p[wait.group].append(wait.rank)
    culprits = set(found.verdict.culprits)
    reaching = found.graph.reaching(culprits) if culprits else set()
    rows = [
        _group_row(group, states.get(group), p2p.get(group, []), found, reaching) for group in found.groups.all
    ]
    return sorted(rows, key=lambda row: (not row.root, row.first_pending is None and not row.waiting))


def _group_row(
    group: JobGroup,
    state: CollectiveState | None,
    messages: list[int],
    found: HangDiagnosis,
    reaching: set[int],
) -> HangGroupRow:
    done = [
        history.done
        for rank in group.ranks
        if (dump := found.dumps.get(rank)) is not None and (history := dump.history.get(group.name)) is not None
    ]
    missing = [] if state is None else sorted({*state.missing, *state.unseen})
    waiting = sorted({*(() if state is None else state.waiters), *messages})
    culprits = set(found.verdict.culprits)
    absent = {*missing, *(state.behind if state is not None else ())}
    peers = {peer for wait in found.graph.peer_waits if wait.group is group for peer in wait.peers}
    direct = sorted(culprits & {*absent, *peers}) if waiting else []
    if state is not None and state.mismatch and group in found.verdict.groups:
        direct = sorted(culprits)
    if direct:
        waits_for = words.name_ranks(direct)
    elif culprits and reaching & set(waiting):
        waits_for = f"{words.name_ranks(sorted(culprits))}, in turn"
    elif waiting:
        waits_for = words.name_ranks(sorted({*absent, *peers})) if absent | peers else "its own members"
    else:
        waits_for = "nobody"
    return HangGroupRow(
        group=group.name,
        group_desc=group.description,
        ranks=sorted(group.ranks),
        last_finished=min(done, default=None) or None,
        first_pending=None if state is None else state.key.number,
        pending_name=join_words(sorted({call.operation for call in state.waiters.values()})) if state else None,
        waiting=waiting,
        missing=missing,
        waits_for=waits_for,
        root=group in found.verdict.groups,
    )


# ---- the last collectives of the group ------------------------------------------------------------------


def _call_rows(found: HangDiagnosis) -> list[HangCallRow]:
    group = _choose_shown_group(found)
    if group is None:
        return []
    dumps = {rank: dump for rank in group.ranks if (dump := found.dumps.get(rank)) is not None}
    last = max((dump.last_number(group.name) for dump in dumps.values()), default=0)
    frontier = min((state.key.number for state in found.graph.collectives if state.group is group), default=last)
    last = min(last, frontier + MAX_DRAWN_CALLS // 2)
    oldest = min(
        (dump.history[group.name].first for dump in dumps.values() if group.name in dump.history), default=1
    )
    unseen = sorted(set(group.ranks) - dumps.keys())
    return [
        _call_row(group, number, dumps, unseen, found)
        for number in range(max(oldest, last - MAX_DRAWN_CALLS + 1), last + 1)
    ]


def _choose_shown_group(found: HangDiagnosis) -> JobGroup | None:
    """Return the group of the verdict, or the one with the most calls if nobody waits."""
    if found.verdict.groups:
        return found.verdict.groups[0]
    counts: dict[JobGroup, int] = defaultdict(int)
    for rank, dump in found.dumps.items():
        for name, history in dump.history.items():
            counts[found.groups.find(rank, name)] += len(history.codes)
    return max(counts, key=lambda group: counts[group], default=None)


def _call_row(
    group: JobGroup, number: int, dumps: dict[int, RecorderDump], unseen: list[int], found: HangDiagnosis
) -> HangCallRow:
    votes: dict[tuple[str, tuple[int, ...] | None], list[int]] = defaultdict(list)
    waiting, pending, missing, unknown = [], [], [], []
    for rank, dump in dumps.items():
        history = dump.history.get(group.name)
        signature = None
        if history is not None and history.first <= number <= history.last:
            code = history.codes[number - history.first]
            signature = dump.signatures[code - 1] if code else None
        if signature is not None:
            votes[signature].append(rank)
        elif history is None or history.last < number:
            missing.append(rank)
            continue
        else:
            unknown.append(rank)
        call = next((call for call in dump.pending if call.group == group.name and not call.p2p), None)
        if call is not None and call.number == number:
            waiting.append(rank)
        elif call is not None and call.number < number:
            pending.append(rank)
    sides = sorted(votes.items(), key=lambda side: -len(side[1]))
    signature = sides[0][0] if sides else ("", None)
    odd = [(rank, its[0]) for its, ranks in sides[1:] for rank in ranks]
    return HangCallRow(
        group=group.name,
        collective_seq_id=number,
        profiling_name=signature[0],
        elements=None if signature[1] is None else list(signature[1]),
        waiting=sorted(waiting),
        pending=sorted(pending),
        missing=sorted(missing),
        different=[rank for rank, _ in odd],
        different_names=[name for _, name in odd],
        unseen=unseen,
        unknown=sorted(unknown),
    )


TAB = Tab(
    "Resources",
    DumpsView("hangs", "Hangs", NoParams, HangsPayload, build, rows="ranks"),
    hangs_reason,
    clocks=("epoch", "boot", "iteration", "local"),
)
