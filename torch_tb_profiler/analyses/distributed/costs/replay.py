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

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.costs.own_work import OwnWork
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import Matching
from torch_tb_profiler.analyses.distributed.waiting import Split
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int64

_MOST_CELLS = 2**25
"""Operations times what-ifs that are kept at once: 256 MB."""


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
    count = max(1, _MOST_CELLS // max(len(own.rows), 1))
    columns = what.usual.shape[1]
    parts = [
        _Replay(job, matching, split, own, _columns(what, slice(first, first + count))).run()
        for first in range(0, max(columns, 1), count)
    ]
    return Replayed(
        *(np.concatenate([getattr(part, name) for part in parts], axis=1) for name in Replayed.__struct_fields__)
    )


def _columns(what: WhatIf, part: slice) -> WhatIf:
    return WhatIf(what.usual[:, part], None if what.sooner is None else what.sooner[:, part])


class _Replay:
    def __init__(self, job: Job, matching: Matching, split: Split, own: OwnWork, what: WhatIf) -> None:
        table, rows = job.table, own.rows
        self._member = table.member[rows].astype(np.int64)
        self._ranks, self._columns = len(job.sources), what.usual.shape[1]
        # What was compared with no other rank is a collective of its own.
        compared = split.compared[rows]
        self._collective = np.where(compared, matching.instance[rows], len(matching) + np.arange(len(rows)))
        self._waited = np.where(compared, split.waiting[rows], 0)
        self._stall, self._slack, self._behind = own.stall, own.slack, own.behind
        self._usual, self._sooner = what.usual.astype(np.int64), what.sooner
        width = int(table.end[rows].max(initial=0)) + 1
        self._start, self._end = (times[rows] + self._member * width for times in (table.start, table.end))
        self._gap = np.where(own.behind >= 0, self._start - np.append(self._end, 0)[own.behind], 0)
        self._saved = self._cumulative(own.excess)
        self._by_end = np.lexsort((self._end, self._member))
        stalls = self._by_end[self._stall[self._by_end] > 0]
        self._stall_at_start = self._last_before(stalls, self._start - own.slack)
        self._stall_before = self._last_before(stalls, self._end - self._stall)
        started = np.searchsorted(self._start, self._end - self._stall, "right") - 1
        self._saved_at_stall = np.append(self._saved[started], 0) if len(rows) else np.zeros(1, np.int64)

    def _cumulative(self, excess: Int64) -> Int64:
        """int64[m]: the sum of the excess of a rank up to each operation."""
        total = np.cumsum(excess)
        first = np.searchsorted(self._member, np.arange(self._ranks), "left")
        base = np.append(0, total)[np.minimum(first, len(total))]
        since: Int64 = total - base[self._member]
        return since

    def _last_before(self, stalls: Int64, times: Int64) -> Int64:
        """int64[m]: the rank's last stall that ended by then, NO_CODE for none."""
        at = np.searchsorted(self._end[stalls], times, "right") - 1
        found = np.append(stalls, NO_CODE)[at] if len(stalls) else np.full(len(times), NO_CODE, np.int64)
        own = (at >= 0) & (np.append(self._member, NO_CODE)[found] == self._member)
        return np.where(own, found, NO_CODE)

    def run(self) -> Replayed:
        """Collective by collective."""
        resumed = np.zeros((len(self._member) + 1, self._columns), np.int64)  # the last row: no stall yet
        ends = np.zeros_like(resumed)
        arrivals = np.zeros((self._ranks, self._columns), np.int64)
        for rows in self._waves():
            member = self._member[rows]
            reached = self._moved(resumed, self._stall_at_start[rows], self._saved[rows], member)
            reached += self._slack[rows][:, None]
            behind = self._behind[rows]
            freed = ends[behind] + self._gap[rows][:, None]
            reached = np.where((behind >= 0)[:, None], np.minimum(reached, freed), reached)
            numbers, which = np.unique(self._collective[rows], return_inverse=True)
            ended = np.full((len(numbers), self._columns), np.iinfo(np.int64).max)
            np.minimum.at(ended, which.reshape(-1), reached + self._waited[rows][:, None])
            if self._sooner is not None:
                compared = numbers < len(self._sooner)
                ended[compared] += self._sooner[numbers[compared]]
            ends[rows] = ended[which.reshape(-1)]
            alone = (self._waited[rows] == 0) & (np.bincount(which.reshape(-1))[which.reshape(-1)] > 1)
            np.add.at(arrivals, member[alone], reached[alone])
            stall = self._stall[rows][:, None]
            before = self._moved(resumed, self._stall_before[rows], self._saved_at_stall[rows], member)
            resumed[rows] = np.minimum(before + stall, ends[rows])
        return Replayed(self._final(resumed), arrivals)

    def _moved(self, resumed: Int64, stalls: Int64, saved: Int64, member: Int64) -> npt.NDArray[np.int64]:
        """How much earlier the computation is: since the last stall by what is saved of the work."""
        since = saved - np.where(stalls >= 0, self._saved_at_stall[stalls], 0)
        moved: npt.NDArray[np.int64] = resumed[stalls] + since[:, None] * self._usual[member]
        return moved

    def _final(self, resumed: Int64) -> Int64:
        """At the end of each rank."""
        last = np.searchsorted(self._member, np.arange(self._ranks), "right") - 1
        earlier = np.zeros((self._ranks, self._columns), np.int64)
        some = np.flatnonzero((last >= 0) & (np.append(self._member, NO_CODE)[last] == np.arange(self._ranks)))
        if len(some):
            stalls = self._stalls_at_the_end()[some]
            earlier[some] = self._moved(resumed, stalls, self._saved[last[some]], some)
        return earlier

    def _stalls_at_the_end(self) -> Int64:
        final = np.full(self._ranks, NO_CODE, np.int64)
        stalls = self._by_end[self._stall[self._by_end] > 0]
        final[self._member[stalls]] = stalls
        return final

    def _waves(self) -> Iterator[Int64]:
        """Positions of operations, at most one per rank, so that all on which they depend come before.

        Each rank goes through its operations in order of their ends; a collective is due when all its ranks have
        come to it. If none is due (ranks disagree on the order), the one that ends first is taken as it is.
        """
        if len(self._member) == 0:
            return
        _, collective = np.unique(self._collective, return_inverse=True)
        collective = collective.reshape(-1)[self._by_end]
        missing = np.bincount(collective)
        at = np.searchsorted(self._member[self._by_end], np.arange(self._ranks), "left")
        finish = np.searchsorted(self._member[self._by_end], np.arange(self._ranks), "right")
        fresh = np.flatnonzero(at < finish)
        while True:
            np.subtract.at(missing, collective[at[fresh]], 1)
            active = np.flatnonzero(at < finish)
            if len(active) == 0:
                return
            due = active[missing[collective[at[active]]] <= 0]
            if len(due) == 0:
                due = active[:1]
            yield self._by_end[at[due]]
            at[due] += 1
            fresh = due[at[due] < finish[due]]
