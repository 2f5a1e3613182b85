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

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.costs.own_work import OwnWork
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


class _State(msgspec.Struct, frozen=True):
    """Columns of k moments, each on one rank: `member`, the rank; `stalls`, the place of its last stall, m for
    none; `since`, ns that are saved of its work after that if it works as long as usual."""

    member: Int64
    stalls: Int64
    since: Int64

    def part(self, rows: slice) -> _State:
        return _State(self.member[rows], self.stalls[rows], self.since[rows])


class _Wave(msgspec.Struct, frozen=True):
    """Operations that can be replayed at once.

    rows     their places
    first    which of them is the first of each collective; which: the collective of each, 0..; numbers: theirs
    alone    which of them the others of their collective wait for
    """

    rows: slice
    first: Int64
    which: Int64
    numbers: Int64
    alone: Int64


class _Changes:
    """Which ranks work as long as usual: all of them in some what-ifs, few of them in the others."""

    def __init__(self, usual: Bool) -> None:
        self._everyone = np.flatnonzero(usual.all(axis=0))
        few = usual.astype(np.int64)
        few[:, self._everyone] = 0
        changed: Bool = np.asarray(few.any(axis=1))
        self._few, self._changed = few, changed

    def moved(self, resumed: npt.NDArray[np.int64], state: _State) -> npt.NDArray[np.int64]:
        """int64[k, q] ns: how much earlier the computation is: since the last stall by what is saved of work."""
        moved = resumed.take(state.stalls, axis=0)
        if len(self._everyone):
            moved[:, self._everyone] += state.since[:, None]
        changed = np.flatnonzero(self._changed[state.member])
        moved[changed] += state.since[changed][:, None] * self._few[state.member[changed]]
        return moved


_NEVER = 2**60
"""ns; in place of a gap to the operation before where there is none."""


class _Replay:
    """Columns of the operations in the order in which they are replayed: what a wave reads, the ones before it
    have just written."""

    def __init__(self, job: Job, matching: Matching, split: Split, own: OwnWork) -> None:
        table, rows = job.table, own.rows
        member = table.member[rows].astype(np.int64)
        width = int(table.end[rows].max(initial=0)) + 1
        start, end = (times[rows] + member * width for times in (table.start, table.end))
        by_end = np.argsort(end, kind="stable")  # by rank, too: each has its stretch of the line
        # What was compared with no other rank is a collective of its own.
        compared = split.compared[rows]
        collective = np.where(compared, matching.instance[rows], len(matching) + np.arange(len(rows)))
        waves = [
            wave[np.argsort(collective[wave], kind="stable")] for wave in _in_order(member, collective, by_end)
        ]
        order = np.concatenate(waves) if waves else np.empty(0, np.int64)
        place = np.empty(len(rows) + 1, np.int64)
        place[order], place[NO_CODE] = np.arange(len(rows)), len(rows)

        saved = _cumulative(own.excess, member)
        started = np.searchsorted(start, end - own.stall, "right") - 1
        saved_at_stall = np.append(saved[started], 0)
        stalls = by_end[own.stall[by_end] > 0]
        last = _Last(member, end, stalls)

        def state(whose: Int64, stalls: Int64, saved: Int64) -> _State:
            since = saved - np.where(stalls >= 0, saved_at_stall[stalls], 0)
            return _State(whose, place[stalls], since)

        self._reached = state(member[order], last.before(start - own.slack)[order], saved[order])
        self._stalled = state(member[order], last.before(end - own.stall)[order], saved_at_stall[order])
        self._slack, self._stall = own.slack[order, None], own.stall[order, None]
        self._waited = np.where(compared, split.waiting[rows], 0)[order, None]
        self._behind = place[own.behind[order]]
        gap = np.where(own.behind >= 0, start - np.append(end, 0)[own.behind], _NEVER)
        self._gap = gap[order, None]
        self._waves = _waves(collective[order], self._waited[:, 0], [len(wave) for wave in waves])

        final, some = np.full(len(job.sources), NO_CODE, np.int64), np.unique(member)
        final[member[stalls]] = stalls
        at_the_end = saved[np.searchsorted(member, some, "right") - 1]
        self._ranks, self._end = len(job.sources), state(some, final[some], at_the_end)

    def run(self, what: WhatIf) -> Replayed:
        """Collective by collective."""
        changes, columns = _Changes(what.usual), what.usual.shape[1]
        resumed = np.zeros((len(self._behind) + 1, columns), np.int64)  # the last row: no stall yet
        ends = np.zeros_like(resumed)
        arrivals = np.zeros((self._ranks, columns), np.int64)
        for wave in self._waves:
            rows = wave.rows
            reached = changes.moved(resumed, self._reached.part(rows))
            reached += self._slack[rows]
            freed = ends.take(self._behind[rows], axis=0)
            freed += self._gap[rows]
            np.minimum(reached, freed, out=reached)
            arrivals[self._reached.member[rows][wave.alone]] += reached[wave.alone]
            reached += self._waited[rows]
            ended = np.minimum.reduceat(reached, wave.first, axis=0)
            if what.sooner is not None:
                compared = wave.numbers < len(what.sooner)
                ended[compared] += what.sooner[wave.numbers[compared]]
            ends[rows] = ended.take(wave.which, axis=0)
            before = changes.moved(resumed, self._stalled.part(rows))
            before += self._stall[rows]
            np.minimum(before, ends[rows], out=resumed[rows])
        earlier = np.zeros((self._ranks, columns), np.int64)
        earlier[self._end.member] = changes.moved(resumed, self._end)
        return Replayed(earlier, arrivals)


def _cumulative(excess: Int64, member: Int64) -> Int64:
    """int64[m]: the sum of the excess of a rank up to each operation."""
    total = np.cumsum(excess)
    counts = np.bincount(member)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    since: Int64 = total - np.append(0, total)[first]
    return since


class _Last:
    """The last stall of a rank by some time."""

    def __init__(self, member: Int64, end: Int64, stalls: Int64) -> None:
        self._member, self._end, self._stalls = member, end[stalls], stalls

    def before(self, times: Int64) -> Int64:
        """int64[m]: which one had ended by then, NO_CODE for none."""
        if len(self._stalls) == 0:
            return np.full(len(times), NO_CODE, np.int64)
        at = np.searchsorted(self._end, times, "right") - 1
        stall = self._stalls[at]
        return np.where((at >= 0) & (self._member[stall] == self._member), stall, NO_CODE)


def _in_order(member: Int64, collective: Int64, by_end: Int64) -> Iterator[Int64]:
    """Positions of operations, at most one per rank, so that all on which they depend come before.

    Each rank goes through its operations in order of their ends; a collective is due when all its ranks have
    come to it. If none is due (ranks disagree on the order), the one that ends first is taken as it is.
    """
    ranks = np.arange(int(member.max(initial=NO_CODE)) + 1)
    _, collective = np.unique(collective, return_inverse=True)
    collective = collective.reshape(-1)[by_end]
    missing = np.bincount(collective)
    at, finish = (np.searchsorted(member[by_end], ranks, side) for side in ("left", "right"))
    fresh = np.flatnonzero(at < finish)
    while True:
        np.subtract.at(missing, collective[at[fresh]], 1)
        active = np.flatnonzero(at < finish)
        if len(active) == 0:
            return
        due = active[missing[collective[at[active]]] <= 0]
        if len(due) == 0:
            due = active[:1]
        yield by_end[at[due]]
        at[due] += 1
        fresh = due[at[due] < finish[due]]


def _waves(collective: Int64, waited: Int64, sizes: Sequence[int]) -> list[_Wave]:
    """Of operations in this order, so many each."""
    waves, begin = [], 0
    for size in sizes:
        rows = slice(begin, begin + size)
        first = np.flatnonzero(np.diff(collective[rows], prepend=-1))
        counts = np.diff(np.append(first, size))
        alone = np.flatnonzero((waited[rows] == 0) & np.repeat(counts > 1, counts))
        which = np.repeat(np.arange(len(first)), counts)
        waves.append(_Wave(rows, first, which, collective[rows][first], alone))
        begin += size
    return waves
