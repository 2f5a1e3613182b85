"""The ranks of a job for the distributed view: who takes part, how their time is spent, what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.clocks import Clock as RankClock
from torch_tb_profiler.analyses.distributed.comparison import Comparison, compare
from torch_tb_profiler.analyses.distributed.job import Source, group_ranks
from torch_tb_profiler.analyses.distributed.matching import timed
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.sorting import natural_order
from torch_tb_profiler.base.units import format_duration
from torch_tb_profiler.model.communication.groups import MOST_RANKS, spell_ranks
from torch_tb_profiler.model.trace import derived
from torch_tb_profiler.view import Member, Members
from torch_tb_profiler.views.distributed.payload import (
    AverageTimes,
    Clock,
    DeviceEntry,
    Node,
    Problem,
    Process,
    Rank,
    StepTimes,
)

_HOST_AND_PROCESS = re.compile(r"^(?P<node>.*)_(?P<process>\d+)$", re.DOTALL)

_WORTH_TELLING_NS = 1_000_000
"""Corrections and errors of clocks above this are told; the others are in `ranks`."""


class Party(msgspec.Struct, frozen=True):
    """The members of a run, and how those that can be are compared.

    position  worker -> its place in the sources of `found.job`
    duplicates  worker -> the worker that has the same rank and is compared in its stead
    """

    members: Members[RankSummary]
    found: Comparison
    position: Mapping[str, int]
    duplicates: Mapping[str, str]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The ranks that are compared, in order of rank."""
        return self.found.job.sources


@derived
def party(members: Members[RankSummary]) -> Party:
    """Compare the members that are ready; of those with the same rank the first."""
    sources: list[Source] = []
    holder: dict[int, str] = {}
    duplicates: dict[str, str] = {}
    for member in sorted(members, key=lambda each: natural_order(each.worker)):
        if member.result is None:
            continue
        rank = rank_of(member)
        if rank is not None and rank in holder:
            duplicates[member.worker] = holder[rank]
            continue
        if rank is not None:
            holder[rank] = member.worker
        match = _HOST_AND_PROCESS.match(member.worker)
        host = member.result.host or (match["node"] if match else None)
        sources.append(Source(member.worker, rank, host, member.result))
    sources.sort(key=lambda each: (each.rank is None, each.rank or 0, natural_order(each.worker)))
    position = {source.worker: i for i, source in enumerate(sources)}
    return Party(members, compare(sources), position, duplicates)


def rank_of(member: Member[RankSummary]) -> int | None:
    """The rank that the file names, else the one of its name."""
    own = member.result.rank if member.result is not None else None
    return member.rank if own is None else own


# ---- ranks, nodes, steps --------------------------------------------------------------------------------


def ranks(who: Party) -> list[Rank]:
    """Every member of the run, by rank; those without one last."""
    rows = [_rank(who, member) for member in who.members]
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, natural_order(row.worker)))


def _rank(who: Party, member: Member[RankSummary]) -> Rank:
    summary, position = member.result, who.position.get(member.worker)
    clock = None if position is None else who.found.clocks.clocks[position]
    reason = member.reason
    if member.worker in who.duplicates:
        reason = f"{who.duplicates[member.worker]} has the same rank and is compared in its stead"
    return Rank(
        worker=member.worker,
        rank=rank_of(member),
        span=member.span,
        state=member.state,
        reason=reason,
        compared=position is not None,
        backend=summary.backend if summary else None,
        world_size=summary.world_size if summary else None,
        calls=len(summary.table()) if summary else None,
        recording_start_ns=clock.shift if clock else None,
        recording_duration_ns=summary.length if summary else None,
        clock=_clock(clock) if clock else None,
    )


def _clock(clock: RankClock) -> Clock:
    return Clock(clock.method, clock.offset, clock.residual, clock.ends, clock.shift)


def nodes(who: Party) -> list[Node]:
    """Workers that are named `<host>_<process>` by host; others are a host of their own."""
    found: dict[str, list[Process]] = {}
    for source in who.sources:
        match = _HOST_AND_PROCESS.match(source.worker)
        process = (match["process"] if match else None) or source.summary.process or "0"
        devices = [
            DeviceEntry(each.id, each.kind, each.name, each.memory_bytes, each.compute_capability)
            for each in source.summary.devices
        ]
        entry = Process(process, source.worker, source.rank, devices)
        found.setdefault(match["node"] if match else source.worker, []).append(entry)
    return [
        Node(name, processes) for name, processes in sorted(found.items(), key=lambda row: natural_order(row[0]))
    ]


def step_times(who: Party) -> list[StepTimes]:
    """Every step of every rank."""
    return [
        StepTimes(
            source.worker,
            source.rank,
            step.name,
            step.start,
            step.complete,
            step.duration,
            step.computation,
            step.overlap,
            step.communication,
            step.other,
        )
        for source in who.sources
        for step in source.summary.steps
    ]


def averages(who: Party) -> list[AverageTimes]:
    """Means over the complete steps of every rank that has some."""
    rows = []
    for source in who.sources:
        steps = [step for step in source.summary.steps if step.complete]
        if steps:
            columns = ("duration", "computation", "overlap", "communication", "other")
            means = [float(np.mean([getattr(step, name) for step in steps])) for name in columns]
            rows.append(AverageTimes(source.worker, source.rank, len(steps), *means))
    return rows


# ---- what is missing or doubtful ------------------------------------------------------------------------


def problems(who: Party) -> list[Problem]:
    """What is missing, broken, doubled or cannot be compared."""
    return [*_of_members(who), *_absent(who), *_of_clocks(who), *_of_starts(who), *_of_matching(who)]


def _of_members(who: Party) -> Iterator[Problem]:
    loading = [member.worker for member in who.members if member.state in ("waiting", "loading")]
    if loading:
        yield Problem("loading", f"{len(loading)} of {len(who.members)} traces are still being read", None, None)
    for member in who.members:
        rank = rank_of(member)
        if member.state == "failed":
            text = f"{_name(rank, member.worker)} is missing: {member.reason or 'its trace cannot be read'}"
            yield Problem("broken_rank", text, member.worker, rank)
        elif member.state == "ready" and member.result is None:
            text = f"{_name(rank, member.worker)} is left out: {member.reason or 'it has nothing to compare'}"
            yield Problem("left_out", text, member.worker, rank)
        elif member.worker in who.duplicates:
            other = who.duplicates[member.worker]
            text = f"{member.worker} and {other} both claim to be rank {rank}; {other} is shown"
            yield Problem("duplicate_rank", text, member.worker, rank)


def _name(rank: int | None, worker: str) -> str:
    return worker if rank is None else f"Rank {rank} ({worker})"


def expected_ranks(who: Party) -> set[int]:
    """Ranks that the job must have: those of its groups and of its world."""
    worlds = {source.summary.world_size for source in who.sources}
    expected: set[int] = set()
    for group in who.found.job.groups:
        expected |= set(group_ranks(group) or ())
    if len(worlds) == 1:
        expected |= set(range(min(next(iter(worlds)) or 0, MOST_RANKS)))
    return expected


def _absent(who: Party) -> Iterator[Problem]:
    worlds = sorted({source.summary.world_size for source in who.sources if source.summary.world_size})
    if len(worlds) > 1:
        text = f"the traces disagree on how many ranks there are: {', '.join(map(str, worlds))}"
        yield Problem("world_size", f"{text}; are they of one job?", None, None)
    expected = expected_ranks(who)
    absent = expected - {rank for rank in map(rank_of, who.members) if rank is not None}
    coming = any(member.state in ("waiting", "loading") for member in who.members)
    if absent and not coming and any(source.rank is not None for source in who.sources):
        plural = "ranks" if len(absent) > 1 else "rank"
        text = f"no trace is here of {plural} {spell_ranks(sorted(absent))} ({len(absent)} of {len(expected)})"
        yield Problem("missing_rank", text, None, next(iter(absent)) if len(absent) == 1 else None)


def _of_clocks(who: Party) -> Iterator[Problem]:
    for source, clock in zip(who.sources, who.found.clocks.clocks, strict=True):
        name = _name(source.rank, source.worker)
        if clock.method == "none":
            text = f"{name} is not compared by time: its file does not tell the time of day, and no collective is "
            yield Problem("clock", f"{text}shared with the other ranks", source.worker, source.rank)
        elif clock.method == "collective_ends" and abs(clock.offset or 0) > _WORTH_TELLING_NS:
            off, agreed = format_duration(abs(clock.offset or 0)), format_duration(clock.residual)
            where = "behind" if (clock.offset or 0) > 0 else "ahead"
            text = (
                f"the clock of {name} is {off} {where}; it is corrected by the ends of {clock.ends} shared "
                f"collectives, which then agree to {agreed}"
            )
            yield Problem("clock", text, source.worker, source.rank)
        elif clock.residual is not None and clock.residual > _WORTH_TELLING_NS and clock.method != "reference":
            text = f"arrivals of {name} are only known to {format_duration(clock.residual)}"
            yield Problem("clock", text, source.worker, source.rank)


def start_skew(who: Party) -> int | None:
    """ns from the first to the last rank to begin recording; None without two ranks on one clock."""
    shifts = [clock.shift for clock in who.found.clocks.clocks if clock.shift is not None]
    return max(shifts) - min(shifts) if len(shifts) > 1 else None


def _of_starts(who: Party) -> Iterator[Problem]:
    cut = np.flatnonzero(who.found.arrivals.cut)
    if len(cut) == 0:
        return
    table = who.found.job.table
    late = np.unique(table.member[who.found.arrivals.last[cut]]).tolist()
    skew = start_skew(who)
    names, waits = join_ranks([who.sources[each] for each in late]), format_duration(skew)
    collectives = "1 collective" if len(cut) == 1 else f"{len(cut)} collectives"
    text = (
        f"{names} began to record up to {waits} after the first, when others already waited in {collectives}; "
        "that wait is the profiler's and blames nobody"
    )
    one = who.sources[late[0]] if len(late) == 1 else None
    yield Problem("start_skew", text, one.worker if one else None, one.rank if one else None)


def _of_matching(who: Party) -> Iterator[Problem]:
    matching = who.found.matching
    wrong = {difference.instance for difference in matching.differences if difference.what != "missing"}
    if wrong:
        text = f"{_collectives(len(wrong))} not compared: the ranks differ in name, size or dtype"
        yield Problem("mismatch", text, None, None)
    told = timed(who.found.job)
    member = who.found.job.table.member
    for position, source in enumerate(who.sources):
        own = member == position
        if own.any() and not told[own].any():
            text = "records no device time of its operations and is not compared by time"
            yield Problem("unmatched", f"{_name(source.rank, source.worker)} {text}", source.worker, source.rank)
    lonely = int(matching.lonely.sum())
    if lonely:
        text = f"{lonely} messages are not compared: the traces do not record from whom to whom they go"
        yield Problem("unmatched", f"{text} (`record_shapes=True` does)", None, None)
    left = told & ~matching.compared & (matching.sizes > 1)[matching.instance]
    left[np.isin(matching.instance, list(wrong))] = False
    count = len(np.unique(matching.instance[left]))
    if count:
        text = f"{_collectives(count)} not compared: the ranks ran different numbers of them within a step"
        yield Problem("unmatched", text, None, None)


def _collectives(count: int) -> str:
    return "1 collective is" if count == 1 else f"{count} collectives are"


def join_ranks(sources: Sequence[Source]) -> str:
    """Ranks 0, 1 and 3."""
    if all(source.rank is not None for source in sources) and len(sources) > 5:
        return f"Ranks {spell_ranks([source.rank for source in sources if source.rank is not None])}"
    names = [source.worker if source.rank is None else str(source.rank) for source in sources]
    told = all(source.rank is not None for source in sources)
    head = ("Rank " if len(names) == 1 else "Ranks ") if told else ""
    if len(names) > 5:
        return f"{len(names)} workers"
    return head + (names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}")
