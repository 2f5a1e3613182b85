"""How long each rank works on its own between one arrival at a collective and the next, and what is typical.

    rank 0   |== works ==| all_reduce |... stalls ...|== works ====| all_reduce
             begins      arrives                                   arrives
                         |<---- window ------------------------>|      work = window - stalls

Waiting for others is not work, so a rank that is only held up works no longer than is typical. The typical work of
a window is the median of the other ranks in the same window: the n-th of steps that have begun with the same kinds
of collectives in the same order. If a rank is the only one with such a window (the first stage of a pipeline), its
entire step is compared with the median step. What other windows don't explain of the difference is assigned first
to windows in which it computes less of the time than is typical, then to those in which it computes longer than in
its other windows of that kind. Only each rank's own clock is needed.

A collective behind another one on its stream starts when that one ends, although its data may have been ready
before: when the kernels launched before it had ended. Where launches aren't recorded, when it was ready is taken
from the ranks that were not held up there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.matching import has_own_time
from torch_tb_profiler.analyses.distributed.medians import lower_medians, others_medians
from torch_tb_profiler.analyses.distributed.operations import map_kinds, select
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.analyses.shared.grouping import Groups, dense_codes, group, stable_order
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.compiled import column_functions
from torch_tb_profiler.base.intervals import Intervals, covered_time_before, merge
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int32, Int64

_MAX_QUEUE_GAP_NS = 20_000
"""A kernel that starts within this time of the end of the previous kernel on its stream was waiting for it."""


class WorkWindows(msgspec.Struct, frozen=True):
    """The windows before the m operations with a time, in the order of the job's table: by rank, then by start.

    rows      int64[m]  rows of the operations in the job's table
    work      int64[m]  ns of work since the rank's previous arrival, or since its first step began
    typical   int64[m]  median work of the other ranks in the same window; if no other rank has one, see the module
    stall     int64[m]  ns that the computation waited for the operation
    slack     int64[m]  ns that the operation was ready before it started, held up by its stream
    previous  int64[m]  index of the group's previous operation on the rank if that ended before, else NO_CODE
    window    int64[m]  number of the window, equal for the ranks that are compared
    """

    rows: Int64
    work: Int64
    typical: Int64
    stall: Int64
    slack: Int64
    previous: Int64
    window: Int64

    @property
    def excess(self) -> Int64:
        """Return int64[m]: ns more than typical, negative if the rank was faster."""
        return self.work - self.typical


def work_windows(job: DistributedJob) -> WorkWindows:
    """Return the windows of all operations with a time."""
    table = job.table
    rows = np.flatnonzero(has_own_time(job))
    member = select(table.member, rows).astype(np.int64)
    # Each rank gets its own range of one time line, so that one set of intervals serves all ranks.
    width = int(select(table.end, rows).max(initial=0)) + 1
    start, end = (select(times, rows) + member * width for times in (table.start, table.end))
    # A rank that is alone in its group waits for nobody, so its stalls are work.
    sizes = np.array([group_.size or 0 for group_ in job.groups] + [0])
    alone = map_kinds(lambda group_: sizes[group_] == 1, table.group)
    stall = np.where(select(alone, rows), 0, select(table.stall, rows))
    stalled = merge(end - stall, end)
    windows = _group_comparable_windows(job, rows)
    previous = previous_operations(select(table.group, rows), member, start, end)
    first = np.diff(member, prepend=-1) != 0
    begin = np.where(first, start - select(table.window, rows), np.roll(start, 1))
    queued = _waited_for_stream(select(table.issue, rows) + member * width, stall, start, end, previous) & ~first
    stalled_before = covered_time_before(stalled, start)
    stalled_first = covered_time_before(stalled, begin[first])
    stalls_within = _sum_stalls_within(stalled_before, first, stalled_first)
    latest_ready = start - np.where(queued, select(table.held, rows), 0)
    ready = _compute_ready_times(start, begin, stalls_within, stalled, queued, windows, latest_ready)
    sooner = np.flatnonzero(ready != start)
    stalled_before[sooner] = covered_time_before(stalled, ready[sooner])
    # A message may be ready before another one that starts sooner, on the stream of the other direction.
    begin = np.where(first, begin, np.roll(np.maximum.accumulate(ready), 1))
    work = np.maximum(ready - begin - _sum_stalls_within(stalled_before, first, stalled_first), 0)
    typical = _compute_typical_work(work, windows, job, rows)
    return WorkWindows(rows, work, typical, stall, start - ready, previous, windows.which)


def windows_of_ranks(job: DistributedJob, work: WorkWindows, members: Iterable[int]) -> Int64:
    """Return the ascending indices of the windows of some ranks; those of the others aren't looked at."""
    bounds = [np.searchsorted(job.table.member, [member, member + 1]) for member in sorted(members)]
    parts = [np.arange(*np.searchsorted(work.rows, each)) for each in bounds]
    return np.concatenate([np.empty(0, np.int64), *parts])


def previous_operations(groups: Int32, member: Int64, start: Int64, end: Int64) -> Int64:
    """Return int64[m], of the operations of the same group and rank the last that had ended, NO_CODE for none.

    Messages in both directions run at once, each on a stream of its own.
    """
    order = stable_order(groups)  # within a group by rank and start, as in the table
    same = (np.diff(groups[order]) == 0) & (np.diff(member[order]) == 0)
    ended = same & (end[order][:-1] <= start[order][1:])
    previous = np.full(len(start), NO_CODE, np.int64)
    previous[order[1:][ended]] = order[:-1][ended]
    channel = np.append(0, np.cumsum(~same))[: len(start)]
    overlapping = np.zeros(len(start), np.bool_)
    overlapping[channel[1:][same & ~ended]] = True
    few = np.flatnonzero(overlapping[channel])
    previous[order[few]] = _find_last_ended(channel[few], order[few], start, end)
    return previous


def _find_last_ended(channel: Int64, rows: Int64, start: Int64, end: Int64) -> Int64:
    """Return which of the rows of the same channel ended last before each of them starts, NO_CODE for none."""
    count, ends, starts = len(rows), end[rows], start[rows]
    # At one instant work ends before other work starts; what takes no time ends after that, so not before itself.
    turn = np.append(np.where(ends > starts, 0, 2), np.full(count, 1))
    order = np.lexsort((turn, np.append(ends, starts), np.tile(channel, 2)))
    latest = np.maximum.accumulate(np.where(order < count, np.arange(2 * count), NO_CODE))[order >= count]
    before, queries = np.append(order, NO_CODE)[latest], order[order >= count] - count
    fits = (before >= 0) & (channel[before] == channel[queries])
    found = np.full(count, NO_CODE, np.int64)
    found[queries[fits]] = rows[before[fits]]
    return found


def _waited_for_stream(issue: Int64, stall: Int64, start: Int64, end: Int64, previous: Int64) -> Bool:
    """Return bool[m], True for operations that only waited for their stream.

    If the computation waited for the previous operation, too, the host must have issued the operation before that
    one ended, or the operation wasn't waiting.
    """
    ended = np.append(end, 0)[previous]
    stalled = np.append(stall, 0)[previous] > 0
    queued: Bool = (previous >= 0) & (start - ended <= _MAX_QUEUE_GAP_NS) & (~stalled | (issue < ended))
    return queued


def _sum_stalls_within(stalled_before: Int64, first: Bool, stalled_first: Int64) -> Int64:
    """Return int64[m], the ns of stalls in each window: those before its end less those before its start.

    stalled_before  ns of stalls before the end of each window, where the next one begins
    stalled_first   ns of stalls before the start of each rank's first window
    """
    before_begin = np.roll(np.maximum.accumulate(stalled_before), 1)
    before_begin[first] = stalled_first
    within: Int64 = np.maximum(stalled_before - before_begin, 0)
    return within


def _compute_ready_times(
    start: Int64,
    begin: Int64,
    stalls: Int64,
    stalled: Intervals,
    queued: Bool,
    windows: Groups,
    latest_ready: Int64,
) -> Int64:
    """Return when each operation's data was ready: at its start, or earlier if it was queued.

    begin, stalls  begin of its window, and ns of stalls within
    latest_ready   when it was ready at the latest
    """
    work = start - begin - stalls
    has_queued = np.zeros(len(windows), np.bool_)
    has_queued[windows.which[queued]] = True
    exact = ~queued & ~np.roll(queued, 1) & has_queued[windows.which]
    typical = lower_medians(work[exact], windows.which[exact], len(windows))[windows.which]
    ready: Int64 = latest_ready.copy()
    rows = np.flatnonzero(queued & (typical != ABSENT)).tolist()
    stall_starts, stall_ends = (times.tolist() if rows else [] for times in stalled)
    for i in rows:
        time, left = int(ready[i - 1]), int(typical[i])
        stall = bisect_right(stall_ends, time)
        while stall < len(stall_starts) and stall_starts[stall] < time + left:  # the rank doesn't work in a stall
            left -= max(stall_starts[stall] - time, 0)
            time = stall_ends[stall]
            stall += 1
        ready[i] = min(time + left, int(latest_ready[i]))
    return ready


# ---- typical work ---------------------------------------------------------------------------------------


def _group_comparable_windows(job: DistributedJob, rows: Int64) -> Groups:
    """Group the windows that are compared: the n-th of steps in which ranks run the same collectives."""
    table = job.table
    group_members = zip(job.groups, job.members, strict=True)
    sizes = np.array([group_.size or len(members) for group_, members in group_members] + [0])

    def kinds(collective: Int32, group_: Int32, source: Int64, target: Int64) -> Int64:
        known = (source != ABSENT) & (target != ABSENT)
        return dense_codes(collective, sizes[group_], np.where(known, np.sign(target - source), 0))[0]

    kind = select(map_kinds(kinds, table.collective, table.group, table.source, table.target), rows)
    member, step = select(table.member, rows), select(table.step, rows)
    if functions := column_functions(len(rows)):
        return Groups(*functions.windows(member, step, kind, len(job.steps)))
    block = group(member, step)
    nth = ordinals(np.zeros(len(rows), np.bool_), block.which)
    return group(step, _match_beginnings(kind, block, nth))


def _match_beginnings(kind: Int64, block: Groups, nth: Int64) -> Int64:
    """Return int64[m], equal for windows up to which their blocks have the same kinds in the same order."""
    counts = block.counts
    begins = np.cumsum(counts) - counts
    ordered = np.empty(len(kind), np.int64)
    ordered[begins[block.which] + nth] = kind
    prefix = np.empty(len(kind), np.int64)
    codes: dict[tuple[int, int], int] = {}
    for length in np.unique(counts).tolist():
        blocks = np.flatnonzero(counts == length)
        kinds = np.ascontiguousarray(ordered[begins[blocks][:, None] + np.arange(length)])
        rows = kinds.view(np.dtype((np.void, kinds.itemsize * length)))
        _, first, which = np.unique(rows, return_index=True, return_inverse=True)
        distinct = []
        for sequence in kinds[first].tolist():
            beginning, numbers = NO_CODE, []
            for each in sequence:
                beginning = codes.setdefault((beginning, each), len(codes))
                numbers.append(beginning)
            distinct.append(numbers)
        prefix[begins[blocks][:, None] + np.arange(length)] = np.array(distinct)[which.reshape(-1)]
    common: Int64 = prefix[begins[block.which] + nth]
    return common


def _compute_typical_work(work: Int64, windows: Groups, job: DistributedJob, rows: Int64) -> Int64:
    """Return int64[m] ns; see WorkWindows.typical."""
    typical = others_medians(windows.which, work, len(windows))
    counts = windows.counts
    if (counts == 1).any():
        _set_typical_by_step(work, typical, counts[windows.which] == 1, job, rows)
    return typical


def _set_typical_by_step(work: Int64, typical: Int64, single: Bool, job: DistributedJob, rows: Int64) -> None:
    """Set the typical work in `single` windows, which no other rank has, such that steps take a typical time."""
    table = job.table
    member, step, kind = table.member[rows], table.step[rows], table.collective[rows]
    steps = group(member, step)
    totals, step_of = steps.sums(work), step[steps.first]
    computing = np.minimum(table.computed[rows], work)
    longer_idle = _excess_over_other_windows(work - computing, member, step)
    for number in np.unique(steps.which[single]).tolist():
        inside = steps.members(number)
        others = totals[(step_of == step_of[number]) & (np.arange(len(totals)) != number)]
        explained = max(int((work[inside] - typical[inside]).sum()), 0)
        excess = int(totals[number] - median(others)) - explained if len(others) else 0
        alone = inside[single[inside]]
        if excess <= 0:
            continue
        left, outlying = work[alone].astype(np.float64), np.zeros(len(alone))
        for code in np.unique(kind[alone]).tolist():
            same = kind[alone] == code
            times = computing[alone][same].astype(np.float64)
            outlying[same] = np.maximum(times - median(times), 0)
        for part in (longer_idle[alone], outlying, left):
            assigned = np.minimum(part, left)
            assigned = assigned * min(1.0, excess / max(assigned.sum(), 1.0))
            left, excess = left - assigned, excess - assigned.sum()
        typical[alone] = left.astype(np.int64)


def _excess_over_other_windows(times: Int64, member: Int32, step: Int32) -> Float64:
    """Return float64[m], the ns by which each window's time exceeds the median of all others in the same step.

    What precedes the first collective of a step, such as loading data, is compared among the first windows.
    """
    first = (np.diff(member, prepend=NO_CODE) != 0) | (np.diff(step, prepend=NO_CODE) != 0)
    same_step = group(step, first.astype(np.int64))
    beyond: Float64 = np.maximum(times - others_medians(same_step.which, times, len(same_step)), 0).astype(
        np.float64
    )
    return beyond
