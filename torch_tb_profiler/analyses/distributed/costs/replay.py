"""The job once more, with some of the work shorter: how much earlier would everything be?

What happened is a network: a rank arrives at a collective after its own work; the collective ends a transfer
after the last arrival; the rank's computation goes on after the end if it stalled for it. So if work becomes
shorter,

    a rank reaches an operation earlier by     what its computation is earlier by, plus what it was ready before,
                                               but no more than its stream is free earlier
    a collective ends earlier by               the least of (earlier + waited) of its ranks: one that waited has
    time the computation resumes earlier by         (earlier + stalled), but no more than the collective

Everything is a difference of times of one rank, or a length, so that no clocks are compared.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.costs.own_work import OwnWork
from torch_tb_profiler.analyses.distributed.costs.waves import in_waves
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import Matching
from torch_tb_profiler.analyses.distributed.waiting import Split
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int64

_AT_ONCE = 8
"""So many what-ifs are replayed at once: of 10,000 ranks what a step of it touches stays near the processor."""


class WhatIf(msgspec.Struct, frozen=True):
    """Changes to replay, in q columns.

    usual   bool[ranks, q]   these ranks work as long as usual
    sooner  int64[c, q] ns   by how much collectives end sooner of themselves; None: none does
    """

    usual: Bool
    sooner: Int64 | None = None


class Replayed(msgspec.Struct, frozen=True):
    """earlier  int64[ranks, q] ns: how much earlier each rank's computation ends
    arrivals  int64[ranks, q] ns: how much earlier it reaches the collectives that wait for it alone, in total
    """

    earlier: Int64
    arrivals: Int64


def replay(job: Job, matching: Matching, split: Split, own: OwnWork, what: WhatIf) -> Replayed:
    """All columns at once, as many as memory allows."""
    network = _Replay(job, matching, split, own)
    starts = range(0, max(what.usual.shape[1], 1), _AT_ONCE)
    parts = [network.run(_columns(what, slice(first, first + _AT_ONCE))) for first in starts]
    return Replayed(
        *(np.concatenate([getattr(part, name) for part in parts], axis=1) for name in Replayed.__struct_fields__)
    )


def _columns(what: WhatIf, part: slice) -> WhatIf:
    return WhatIf(what.usual[:, part], None if what.sooner is None else what.sooner[:, part])


class _Moments(msgspec.Struct, frozen=True):
    """Columns of k moments, each on one rank, those of a wave together.

    member  int64[k]  the rank
    stalls  int64[k]  its last stall: a row of what is replayed, the last one for none
    since   int64[k]  ns that are saved of its work after that if it works as long as usual
    bounds  int64[waves + 1]  where those of each wave begin
    """

    member: Int64
    stalls: Int64
    since: Int64
    bounds: Int64


class _Shorter:
    """By how much what-ifs shorten the work before moments: of all ranks in some, of few of them in the others."""

    def __init__(self, usual: Bool, moments: _Moments) -> None:
        everyone = usual.all(axis=0)
        self._everyone, self._since = np.flatnonzero(everyone), moments.since[:, None]
        few = usual & ~everyone
        self._rows = np.flatnonzero(np.asarray(few.any(axis=1))[moments.member])
        self._amounts = self._since[self._rows] * few[moments.member[self._rows]]
        self._bounds = np.searchsorted(self._rows, moments.bounds).tolist()
        self._begins = moments.bounds.tolist()

    def move(self, moved: Int64, wave: int) -> None:
        """Add them to int64[k, q] ns, the moments of a wave."""
        begin, end = self._begins[wave : wave + 2]
        if len(self._everyone):
            moved[:, self._everyone] += self._since[begin:end]
        some = slice(*self._bounds[wave : wave + 2])
        moved[self._rows[some] - begin] += self._amounts[some]


_NEVER = 2**60
"""ns; in place of a gap to the operation before where there is none."""


class _Replay:
    """Columns of the operations in the order in which they are replayed: what a wave reads, the ones before it
    have just written.

    Ends are kept by run (see `Waves`), and when the computation resumes by stall: most operations are one of
    several, and most stall nobody.
    """

    def __init__(self, job: Job, matching: Matching, split: Split, own: OwnWork) -> None:
        table, rows = job.table, own.rows
        member = table.member[rows].astype(np.int64)
        width = int(table.end[rows].max(initial=0)) + 1
        start, end = (times[rows] + member * width for times in (table.start, table.end))
        by_end = np.argsort(end, kind="stable")  # by rank, too: each has its stretch of the line
        # What was compared with no other rank is a collective of its own.
        compared = split.compared[rows]
        collective = np.where(compared, matching.instance[rows], len(matching) + np.arange(len(rows)))
        waves = in_waves(member, collective, by_end)
        order = waves.order
        waited = np.where(compared, split.waiting[rows], 0)[order]
        gap = np.where(own.behind >= 0, start - np.append(end, 0)[own.behind], _NEVER)
        self._slack, self._waited, self._gap = own.slack[order, None], waited[:, None], gap[order, None]
        self._runs, self._behind = waves.runs, waves.run[own.behind[order]]
        self._numbers = np.minimum(collective[order][waves.runs], len(matching))
        sizes = np.diff(np.append(waves.runs, len(order)))
        self._alone = np.flatnonzero((waited == 0) & np.repeat(sizes > 1, sizes))

        stalls, stalled = np.flatnonzero(own.stall > 0), order[own.stall[order] > 0]
        stall_of = np.full(len(rows) + 1, len(stalled), np.int64)
        stall_of[stalled] = np.arange(len(stalled))
        self._stall, self._ended = own.stall[stalled, None], waves.run[stalled]
        began, saved = (end - own.stall)[stalls], _cumulative(own.excess, member)
        saved_at_stall = np.zeros(len(rows) + 1, np.int64)
        saved_at_stall[stalls] = saved[np.searchsorted(start, began, "right") - 1]
        last = _Last(member, end, by_end[own.stall[by_end] > 0])

        def moments(of: Int64, last_stall: Int64, saved: Int64, bounds: Int64) -> _Moments:
            since = saved - np.where(last_stall >= 0, saved_at_stall[last_stall], 0)
            return _Moments(member[of], stall_of[last_stall], since, bounds)

        before = last.before(member, start - own.slack)
        self._reached = moments(order, before[order], saved[order], waves.bounds)
        before[stalls] = last.before(member[stalls], began)
        of_waves = np.searchsorted(np.flatnonzero(own.stall[order] > 0), waves.bounds)
        self._stalled = moments(stalled, before[stalled], saved_at_stall[stalled], of_waves)
        final = np.flatnonzero(np.diff(member, append=NO_CODE))
        self._end = moments(final, last.of(member[final]), saved[final], np.array([0, len(final)]))
        self._ranks = len(job.sources)

    def run(self, what: WhatIf) -> Replayed:
        """Wave by wave."""
        columns = what.usual.shape[1]
        reach, stall, end = (_Shorter(what.usual, each) for each in (self._reached, self._stalled, self._end))
        ends = np.zeros((len(self._runs) + 1, columns), np.int64)  # the last row: no operation before
        resumed = np.zeros((len(self._stall) + 1, columns), np.int64)  # the last row: no stall yet
        arrivals = np.zeros((self._ranks, columns), np.int64)
        sooner = None
        if what.sooner is not None and what.sooner.any():
            sooner = np.concatenate([what.sooner, np.zeros((1, columns), np.int64)])
        for wave, (rows, runs, alone, stalled) in enumerate(self._waves):
            reached = resumed.take(self._reached.stalls[rows], axis=0)
            reach.move(reached, wave)
            reached += self._slack[rows]
            freed = ends.take(self._behind[rows], axis=0)
            freed += self._gap[rows]
            np.minimum(reached, freed, out=reached)
            places = self._alone[alone]
            arrivals[self._reached.member[places]] += reached[places - rows.start]
            reached += self._waited[rows]
            ended = np.minimum.reduceat(reached, self._runs[runs] - rows.start, axis=0)
            if sooner is not None:
                ended += sooner.take(self._numbers[runs], axis=0)
            ends[runs] = ended
            before = resumed.take(self._stalled.stalls[stalled], axis=0)
            stall.move(before, wave)
            before += self._stall[stalled]
            np.minimum(before, ended.take(self._ended[stalled] - runs.start, axis=0), out=resumed[stalled])
        earlier = np.zeros((self._ranks, columns), np.int64)
        at_the_end = resumed.take(self._end.stalls, axis=0)
        end.move(at_the_end, 0)
        earlier[self._end.member] = at_the_end
        return Replayed(earlier, arrivals)

    @cached_property
    def _waves(self) -> list[tuple[slice, slice, slice, slice]]:
        """Of each wave its operations, runs, places in `_alone`, and stalls."""
        bounds = self._reached.bounds
        alone, runs = (np.searchsorted(places, bounds) for places in (self._alone, self._runs))
        parts = (_slices(each) for each in (bounds, runs, alone, self._stalled.bounds))
        return list(zip(*parts, strict=True))


def _slices(bounds: Int64) -> list[slice]:
    return [slice(*pair) for pair in pairwise(bounds.tolist())]


def _cumulative(excess: Int64, member: Int64) -> Int64:
    """int64[m]: the sum of the excess of a rank up to each operation."""
    since: Int64 = np.cumsum(excess)
    counts = np.bincount(member)
    before = np.append(0, since)[np.cumsum(counts) - counts]
    since -= np.repeat(before, counts)
    return since


class _Last:
    """The last stall of a rank by some time; `stalls`: all of them by their ends."""

    def __init__(self, member: Int64, end: Int64, stalls: Int64) -> None:
        self._member, self._end, self._stalls = member[stalls], end[stalls], stalls

    def before(self, member: Int64, times: Int64) -> Int64:
        """int64[k]: which one of these ranks had ended by then, NO_CODE for none."""
        if len(self._stalls) == 0:
            return np.full(len(times), NO_CODE, np.int64)
        at = np.searchsorted(self._end, times, "right") - 1
        return np.where((at >= 0) & (self._member[at] == member), self._stalls[at], NO_CODE)

    def of(self, member: Int64) -> Int64:
        """int64[k]: the last one of each of these ranks, NO_CODE for none."""
        final = np.full(int(member.max(initial=NO_CODE)) + 1, NO_CODE, np.int64)
        final[self._member] = self._stalls  # the last write wins
        return final[member]
