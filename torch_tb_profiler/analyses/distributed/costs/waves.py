"""The operations of a job in waves: all on which an operation depends are in waves before its own."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import codes
from torch_tb_profiler.model.trace import NO_CODE, Int64


class Waves(msgspec.Struct, frozen=True):
    """Of m operations, at most one of each rank in a wave; those of one collective in a wave are a run.

    order   int64[m]  the operations by wave, then by collective
    bounds  int64[waves + 1]  where each wave begins in it
    runs    int64[r]  where each run begins in it
    run     int64[m + 1]  the run of each operation; r in the last cell, which answers for NO_CODE
    """

    order: Int64
    bounds: Int64
    runs: Int64
    run: Int64


def in_waves(member: Int64, collective: Int64, by_end: Int64) -> Waves:
    """Each rank goes through its operations in order of their ends; a collective is due when all its ranks have
    come to it. If none is due (ranks disagree on the order), the one that ends first is taken as it is.

    member, collective  int64[m] of each operation; by_end: their order by rank and end
    """
    order, bounds = _order(member, codes(collective)[0], by_end)
    first = np.diff(collective[order], prepend=NO_CODE) != 0
    first[bounds[:-1]] = True
    run = np.full(len(order) + 1, np.count_nonzero(first), np.int64)
    run[order] = np.cumsum(first) - 1
    return Waves(order, bounds, np.flatnonzero(first), run)


def _order(member: Int64, collective: Int64, by_end: Int64) -> tuple[Int64, Int64]:
    ranks = np.arange(int(member.max(initial=NO_CODE)) + 1)
    which, missing = collective[by_end], np.bincount(collective)
    at, finish = (np.searchsorted(member[by_end], ranks, side) for side in ("left", "right"))
    fresh = np.flatnonzero(at < finish)
    waves = []
    while True:
        np.subtract.at(missing, which[at[fresh]], 1)
        active = np.flatnonzero(at < finish)
        if len(active) == 0:
            break
        due = active[missing[which[at[active]]] <= 0]
        if len(due) == 0:
            due = active[:1]
        waves.append(by_end[at[due]][np.argsort(which[at[due]], kind="stable")])
        at[due] += 1
        fresh = due[at[due] < finish[due]]
    return np.concatenate([np.empty(0, np.int64), *waves]), np.cumsum([0, *map(len, waves)])
