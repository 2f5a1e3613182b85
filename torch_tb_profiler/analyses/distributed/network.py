"""The network that is replayed: the operations of a job in levels, and what each of them waits for.

All operations that one depends on are in lower levels, so that a level reads what those before it have just
written. Operations of one collective in a level are a run. Most operations share a run, and few stall the
computation: ends are stored by run, and times at which it resumes by stall.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.compiled import RecordedOperations, ReplayColumns, replay_functions
from torch_tb_profiler.analyses.shared.grouping import dense_codes
from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64

_NO_PREVIOUS_NS = 2**60
"""The gap to the previous operation where there is none."""


def build_network(operations: RecordedOperations) -> ReplayColumns:
    """Return what is replayed of the recorded operations."""
    functions = replay_functions()
    # Times before the first event of a trace are in no order that both would find.
    if functions is not None and min(operations.start.min(initial=0), operations.end.min(initial=0)) >= 0:
        return functions.network(operations)
    count, compared, stall = len(operations.member), operations.compared, operations.stall
    # Each rank has its own range of one time line.
    base = operations.member.astype(np.int64) * (int(operations.end.max(initial=0)) + 1)
    start, end = operations.start + base, operations.end + base
    by_end = np.argsort(end, kind="stable").astype(np.int32)  # by rank, too
    # An operation that was compared with no other rank is a collective of its own.
    collective = np.where(compared, operations.instance, operations.collectives + np.arange(count))
    levels = replay_levels(operations.member, collective, by_end)
    order, bounds = levels.order, levels.bounds
    gap = start - np.append(end, 0)[operations.previous]
    gap[operations.previous < 0] = _NO_PREVIOUS_NS
    waited = np.where(compared, operations.waiting, 0)[order]
    sizes = np.diff(np.append(levels.runs, count))

    stalls, stalled = np.flatnonzero(stall > 0), order[stall[order] > 0]
    stall_of = np.full(count + 1, len(stalled), np.int32)
    stall_of[stalled] = np.arange(len(stalled))
    stall_start = (end - stall)[stalls]
    before_stall = np.full(count + 1, NO_CODE, np.int32)
    before_stall[stalls] = (search_sorted(start, stall_start, "right") - 1) % max(count, 1)
    last_stall = _LastStall(operations.member, end, by_end[stall[by_end] > 0])
    before = last_stall.before_times(operations.member, start - operations.slack)
    stalled_before = before.copy()
    stalled_before[stalls] = last_stall.before_times(operations.member[stalls], stall_start)
    final = np.flatnonzero(np.diff(operations.member, append=NO_CODE)).astype(np.int32)
    moments = (
        (order, before[order], order),
        (stalled, stalled_before[stalled], before_stall[stalled]),
        (final, last_stall.of_ranks(operations.member[final]), final),
    )
    member, stall_codes, until, since = zip(
        *((operations.member[of], stall_of[last], last_of, before_stall[last]) for of, last, last_of in moments),
        strict=True,
    )
    return ReplayColumns(
        ranks=operations.ranks,
        bounds=bounds,
        stall_bounds=np.searchsorted(np.flatnonzero(stall[order] > 0), bounds),
        run_begins=levels.runs,
        number=np.minimum(collective[order[levels.runs]], operations.collectives),
        previous=levels.run[operations.previous[order]],
        slack=operations.slack[order],
        gap=gap[order],
        waited=waited,
        last_arrival=(waited == 0) & np.repeat(sizes > 1, sizes),
        stall_run=levels.run[stalled].astype(np.int64),
        stall_length=stall[stalled],
        member=member,
        stalls=stall_codes,
        until=until,
        since=since,
    )


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
    """The m operations in levels, at most one of each rank per level.

    Those of one collective in a level are a run.

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
    order, bounds = _compute_level_order(member, dense_codes(collective)[0], by_end)
    first = np.diff(collective[order], prepend=NO_CODE) != 0
    first[bounds[:-1]] = True
    run = np.full(len(order) + 1, np.count_nonzero(first), np.int32)
    run[order] = np.cumsum(first, dtype=np.int32) - 1
    return ReplayLevels(order, bounds, np.flatnonzero(first), run)


def _compute_level_order(member: Int32, collective: Int64, by_end: Int32) -> tuple[Int32, Int64]:
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
