"""The job replayed with some of its work shortened: how much earlier does everything end?

What happened is a network: a rank arrives at a collective after its own work; the collective ends one transfer
after the last arrival; the rank's computation resumes after the end if it stalled for it. So if work becomes
shorter,

    a rank reaches an operation earlier by     what its computation is earlier by, plus the slack of the operation,
                                               but no more than its stream is free earlier
    a collective ends earlier by               the minimum of (earlier + waited) of its ranks: a rank that waited
    time the computation resumes earlier by         can be later; (earlier + stalled), but no more than the
    collective

All quantities are lengths or differences of times on one rank, so that no clocks are compared.

Operations are replayed in levels: all operations that one depends on are in lower levels.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.compiled import Replay, ReplayColumns, replay_function
from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.analyses.distributed.waiting import WaitingSplit
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.analyses.shared.grouping import dense_codes
from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64

_SCENARIOS_PER_BATCH = 8
"""Scenarios replayed at once, so that with 10,000 ranks the data of a level stays in the processor's cache."""

_NO_PREVIOUS_NS = 2**60
"""The gap to the previous operation where there is none."""


class ReplayScenarios(msgspec.Struct, frozen=True):
    """The changes to replay, one scenario in each of q columns.

    typical            bool[ranks, q]   these ranks work as long as is typical
    collective_saving  int64[c, q] ns   by how much collectives themselves end earlier; None if none does
    """

    typical: Bool
    collective_saving: Int64 | None = None


class ReplayResult(msgspec.Struct, frozen=True):
    """The effect of each scenario, int64[ranks, q] ns.

    earlier   how much earlier each rank's computation ends
    arrivals  how much earlier it reaches the collectives that wait for it alone, in total
    """

    earlier: Int64
    arrivals: Int64


def _select(scenarios: ReplayScenarios, part: slice) -> ReplayScenarios:
    saving = scenarios.collective_saving
    return ReplayScenarios(scenarios.typical[:, part], None if saving is None else saving[:, part])


class _Moments(msgspec.Struct, frozen=True):
    """Moments on ranks as columns of length k, those of a level together.

    member  int32[k]  the rank
    stalls  int32[k]  its last stall: a row among the replayed stalls, the last row for none
    until   int32[k]  the last operation before the moment; since: the last one before that stall, NO_CODE for none
    bounds  int64[levels + 1]  where the moments of each level begin
    """

    member: Int32
    stalls: Int32
    until: Int32
    since: Int32
    bounds: Int64

    def saved(self, excess: Int64) -> Int64:
        """Return int64[k], the ns of work saved since the last stall if the rank works as long as is typical.

        excess  int64[m + 1]  the sum of a rank's excess up to each operation, and a 0 for NO_CODE
        """
        saved: Int64 = excess[self.until]
        saved -= excess[self.since]
        return saved


class _Savings:
    """The work that scenarios save before moments: in some scenarios on all ranks, in the others on few ranks."""

    def __init__(self, typical: Bool, moments: _Moments, saved: Int64) -> None:
        everyone = typical.all(axis=0)
        self._everyone, self._saved = np.flatnonzero(everyone), saved[:, None]
        few = typical & ~everyone
        self._rows = np.flatnonzero(np.asarray(few.any(axis=1))[moments.member])
        self._amounts = self._saved[self._rows] * few[moments.member[self._rows]]
        self._bounds = np.searchsorted(self._rows, moments.bounds).tolist()
        self._begins = moments.bounds.tolist()

    def add_to(self, earlier: Int64, level: int) -> None:
        """Add the savings to int64[k, q] ns of the moments of a level."""
        begin, end = self._begins[level : level + 2]
        if len(self._everyone):
            earlier[:, self._everyone] += self._saved[begin:end]
        part = slice(*self._bounds[level : level + 2])
        earlier[self._rows[part] - begin] += self._amounts[part]


class JobReplay:
    """Replays scenarios of a job, with what is typical in its windows or with another typical work.

    The operations are columns in the order of replay: what a level reads, the levels before it have just written.
    Ends are stored by run (see ReplayLevels) and resume times by stall, as most operations share a run and few
    stall the computation.
    """

    def __init__(self, job: DistributedJob, matching: Matching, split: WaitingSplit, work: WorkWindows) -> None:
        table, rows = job.table, work.rows
        member = table.member[rows]
        self.ranks, self._counts = len(job.sources), np.bincount(member, minlength=len(job.sources))
        # Each rank has its own range of one time line.
        base = np.repeat(np.arange(self.ranks) * (int(table.end[rows].max(initial=0)) + 1), self._counts)
        start, end = table.start[rows] + base, table.end[rows] + base
        del base
        by_end = np.argsort(end, kind="stable").astype(np.int32)  # by rank, too
        # An operation that was compared with no other rank is a collective of its own.
        compared = split.compared[rows]
        collective = np.where(compared, matching.instance[rows], len(matching) + np.arange(len(rows)))
        levels = replay_levels(member, collective, by_end)
        order = levels.order
        self._runs, self._previous = levels.runs, levels.run[work.previous[order]]
        self._numbers = np.minimum(collective[order[levels.runs]], len(matching))
        del collective
        self._waited = np.where(compared, split.waiting[rows], 0)[order][:, None]
        gap = start - end[work.previous]
        gap[work.previous < 0] = _NO_PREVIOUS_NS
        self._slack, self._gap = work.slack[order, None], gap[order, None]
        del gap
        sizes = np.diff(np.append(levels.runs, len(order)))
        self._last_arrivals = np.flatnonzero((self._waited[:, 0] == 0) & np.repeat(sizes > 1, sizes))

        stalls, stalled = np.flatnonzero(work.stall > 0), order[work.stall[order] > 0]
        stall_of = np.full(len(rows) + 1, len(stalled), np.int32)
        stall_of[stalled] = np.arange(len(stalled))
        self._stall, self._stall_run = work.stall[stalled, None], levels.run[stalled].astype(np.int64)
        stall_start = (end - work.stall)[stalls]
        before_stall = np.full(len(rows) + 1, NO_CODE, np.int32)
        before_stall[stalls] = (search_sorted(start, stall_start, "right") - 1) % max(len(rows), 1)
        last_stall = _LastStall(member, end, by_end[work.stall[by_end] > 0])
        del end, by_end
        stall_bounds = np.searchsorted(np.flatnonzero(work.stall[order] > 0), levels.bounds)

        def moments(of: Int32 | Int64, last: Int32, until: Int32, bounds: Int64) -> _Moments:
            return _Moments(member[of], stall_of[last], until, before_stall[last], bounds)

        start -= work.slack
        before = last_stall.before_times(member, start)
        del start
        self._reached = moments(order, before[order], order, levels.bounds)
        before[stalls] = last_stall.before_times(member[stalls], stall_start)
        self._stalled = moments(stalled, before[stalled], before_stall[stalled], stall_bounds)
        final = np.flatnonzero(np.diff(member, append=NO_CODE)).astype(np.int32)
        self._end = moments(final, last_stall.of_ranks(member[final]), final, np.array([0, len(final)]))

    def replay(self, scenarios: ReplayScenarios, work: WorkWindows) -> ReplayResult:
        """Replay all scenarios, a batch of them at once.

        What a replay without any change gains isn't due to the scenarios: work may start some µs later than all
        that it waits for allows.

        work  the windows that the job was made of, perhaps with another typical work
        """
        saved = self._saved(_cumulative_excess(work.excess, self._counts))
        starts = range(0, max(scenarios.typical.shape[1], 1), _SCENARIOS_PER_BATCH)
        parts = [
            self._run(_select(scenarios, slice(first, first + _SCENARIOS_PER_BATCH)), saved) for first in starts
        ]
        fields = ReplayResult.__struct_fields__
        return ReplayResult(
            *(
                np.concatenate([getattr(part, name) for part in parts], axis=1) - getattr(self._unchanged, name)
                for name in fields
            )
        )

    @cached_property
    def _unchanged(self) -> ReplayResult:
        """The replay in which no rank works as long as is typical, so that no excess counts."""
        nobody = ReplayScenarios(np.zeros((self.ranks, 1), np.bool_))
        moments = self._reached, self._stalled, self._end
        return self._run(nobody, [np.zeros(len(each.member), np.int64) for each in moments])

    def _saved(self, excess: Int64) -> list[Int64]:
        """Return the ns of work saved before each of the three kinds of moments."""
        return [moments.saved(excess) for moments in (self._reached, self._stalled, self._end)]

    @cached_property
    def _compiled(self) -> Replay | None:
        """The function in C for this job, None if Python replays it."""
        prepare = replay_function()
        if prepare is None:
            return None
        last_arrival = np.zeros(len(self._slack), np.bool_)
        last_arrival[self._last_arrivals] = True
        moments = self._reached, self._stalled, self._end
        columns = ReplayColumns(
            ranks=self.ranks,
            bounds=self._reached.bounds,
            stall_bounds=self._stalled.bounds,
            run_begins=self._runs,
            number=self._numbers,
            previous=self._previous,
            slack=self._slack[:, 0],
            gap=self._gap[:, 0],
            waited=self._waited[:, 0],
            last_arrival=last_arrival,
            stall_run=self._stall_run,
            stall_length=self._stall[:, 0],
            member=(moments[0].member, moments[1].member, moments[2].member),
            stalls=(moments[0].stalls, moments[1].stalls, moments[2].stalls),
        )
        return prepare(columns)

    def _run(self, scenarios: ReplayScenarios, saved: list[Int64]) -> ReplayResult:
        """Replay the scenarios level by level."""
        if self._compiled is not None:
            return ReplayResult(*self._compiled(scenarios.typical, scenarios.collective_saving, saved))
        columns = scenarios.typical.shape[1]
        kinds = zip((self._reached, self._stalled, self._end), saved, strict=True)
        reach, stall, end = (_Savings(scenarios.typical, moments, each) for moments, each in kinds)
        ends = np.zeros((len(self._runs) + 1, columns), np.int64)  # the last row: no previous operation
        resumed = np.zeros((len(self._stall) + 1, columns), np.int64)  # the last row: no stall yet
        arrivals = np.zeros((self.ranks, columns), np.int64)
        saving = None
        if scenarios.collective_saving is not None and scenarios.collective_saving.any():
            saving = np.concatenate([scenarios.collective_saving, np.zeros((1, columns), np.int64)])
        for level, (rows, runs, last_arrivals, stalled) in enumerate(self._level_slices):
            reached = resumed.take(self._reached.stalls[rows], axis=0)
            reach.add_to(reached, level)
            reached += self._slack[rows]
            freed = ends.take(self._previous[rows], axis=0)
            freed += self._gap[rows]
            np.minimum(reached, freed, out=reached)
            places = self._last_arrivals[last_arrivals]
            arrivals[self._reached.member[places]] += reached[places - rows.start]
            reached += self._waited[rows]
            ended = np.minimum.reduceat(reached, self._runs[runs] - rows.start, axis=0)
            if saving is not None:
                ended += saving.take(self._numbers[runs], axis=0)
            ends[runs] = ended
            before = resumed.take(self._stalled.stalls[stalled], axis=0)
            stall.add_to(before, level)
            before += self._stall[stalled]
            np.minimum(before, ended.take(self._stall_run[stalled] - runs.start, axis=0), out=resumed[stalled])
        earlier = np.zeros((self.ranks, columns), np.int64)
        at_the_end = resumed.take(self._end.stalls, axis=0)
        end.add_to(at_the_end, 0)
        earlier[self._end.member] = at_the_end
        return ReplayResult(earlier, arrivals)

    @cached_property
    def _level_slices(self) -> list[tuple[slice, slice, slice, slice]]:
        """For each level the slices of operations, runs, `_last_arrivals`, and stalls."""
        bounds = self._reached.bounds
        last_arrivals, runs = (np.searchsorted(places, bounds) for places in (self._last_arrivals, self._runs))
        parts = (_slices(part) for part in (bounds, runs, last_arrivals, self._stalled.bounds))
        return list(zip(*parts, strict=True))


def _slices(bounds: Int64) -> list[slice]:
    return [slice(*pair) for pair in pairwise(bounds.tolist())]


def _cumulative_excess(excess: Int64, counts: Int64) -> Int64:
    """Return int64[m + 1], the sum of a rank's excess up to each operation, and 0.

    counts  int64[ranks]  operations of each rank
    """
    since = np.zeros(len(excess) + 1, np.int64)
    np.cumsum(excess, out=since[:-1])
    before = np.append(0, since[:-1])[np.cumsum(counts) - counts]
    since[:-1] -= np.repeat(before, counts)
    return since


class _LastStall:
    """Finds a rank's last stall before some time; `stalls` are the operations that stalled, in order of end."""

    def __init__(self, member: Int32, end: Int64, stalls: Int32) -> None:
        self._member, self._end, self._stalls = member[stalls], end[stalls], stalls

    def before_times(self, member: Int32, times: Int64) -> Int32:
        """Return int32[k], the last stall of each rank that had ended by its time, NO_CODE for none."""
        if len(self._stalls) == 0:
            return np.full(len(times), NO_CODE, np.int32)
        index = search_sorted(self._end, times, "right")
        index -= 1
        last = self._stalls[index]
        last[(index < 0) | (self._member[index] != member)] = NO_CODE
        return last

    def of_ranks(self, member: Int32) -> Int32:
        """Return int32[k], the last stall of each rank, NO_CODE for none."""
        final = np.full(int(member.max(initial=NO_CODE)) + 1, NO_CODE, np.int32)
        final[self._member] = self._stalls  # the last write wins
        return final[member]


# ---- levels ---------------------------------------------------------------------------------------------


class ReplayLevels(msgspec.Struct, frozen=True):
    """The m operations in levels, at most one of each rank per level; those of one collective in a level are a
    run.

    order   int32[m]  the operations by level, then by collective
    bounds  int64[levels + 1]  where each level begins in `order`
    runs    int64[r]  where each run begins in `order`
    run     int32[m + 1]  the run of each operation; the last cell is r, for NO_CODE
    """

    order: Int32
    bounds: Int64
    runs: Int64
    run: Int32


def replay_levels(member: Int32, collective: Int64, by_end: Int32) -> ReplayLevels:
    """Assign operations to levels such that all operations that one depends on are in lower levels.

    Each rank goes through its operations in order of their ends; a collective is due when all its ranks have come
    to it. If none is due (ranks disagree on the order), the operation of the first such rank is taken alone.

    member, collective  int32[m], int64[m] of each operation; by_end: int32[m], their order by rank and end
    """
    order, bounds = _level_order(member, dense_codes(collective)[0], by_end)
    first = np.diff(collective[order], prepend=NO_CODE) != 0
    first[bounds[:-1]] = True
    run = np.full(len(order) + 1, np.count_nonzero(first), np.int32)
    run[order] = np.cumsum(first, dtype=np.int32) - 1
    return ReplayLevels(order, bounds, np.flatnonzero(first), run)


def _level_order(member: Int32, collective: Int64, by_end: Int32) -> tuple[Int32, Int64]:
    ranks = np.arange(int(member.max(initial=NO_CODE)) + 1)
    which, missing = collective[by_end], np.bincount(collective)
    head, finish = (np.searchsorted(member[by_end], ranks, side) for side in ("left", "right"))
    fresh = np.flatnonzero(head < finish)
    levels = []
    while True:
        np.subtract.at(missing, which[head[fresh]], 1)
        active = np.flatnonzero(head < finish)
        if len(active) == 0:
            break
        due = active[missing[which[head[active]]] <= 0]
        if len(due) == 0:
            due = active[:1]
        levels.append(by_end[head[due]][np.argsort(which[head[due]], kind="stable")])
        head[due] += 1
        fresh = due[head[due] < finish[due]]
    return np.concatenate([np.empty(0, np.int32), *levels]), np.cumsum([0, *map(len, levels)])
