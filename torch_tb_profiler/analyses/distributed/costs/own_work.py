"""How long each rank works of itself between one arrival at a collective and the next.

    rank 0   |== works ==| all_reduce |... stalls ...|== works ====| all_reduce
             begins      arrives                                   arrives
                         |<---- window ------------------------>|      work = window - stalls

Waiting for others is no work, so a rank that is only held up works no longer than usual. Each window is compared
with the same one (the n-th of its kind in the step) of the other ranks. No clock but the rank's own is needed.

A collective behind another one on its stream starts when that ends, although its data may have been ready before.
When it was ready is then taken from the ranks that were not held up there.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.costs.medians import sorted_within
from torch_tb_profiler.analyses.distributed.costs.usual import alike_windows, usual_work
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import timed
from torch_tb_profiler.analyses.shared.grouping import Groups, stable_order
from torch_tb_profiler.base.intervals import Intervals, covered_time_before, merge
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64

_QUEUED_NS = 20_000
"""A kernel that starts within this time of the end of the one before it on its stream was waiting for it."""


class OwnWork(msgspec.Struct, frozen=True):
    """Columns of the m operations with a time, in the order of the job's table: by rank, then by start.

    rows     int64[m]  their rows there
    work     int64[m]  ns of own work since the rank's previous arrival, or since its first step began
    usual    int64[m]  the median of the other ranks' work in the same window; where no other rank has one, its own
    stall    int64[m]  ns that the computation waited for it
    slack    int64[m]  ns that it was ready before it started, held up by its stream
    behind   int64[m]  position of the group's previous operation on the rank if it ended before, else NO_CODE
    window   int64[m]  number of the window, equal for the ranks that are compared
    """

    rows: Int64
    work: Int64
    usual: Int64
    stall: Int64
    slack: Int64
    behind: Int64
    window: Int64

    @property
    def excess(self) -> Int64:
        """int64[m] ns more than usual; negative where it was faster."""
        return self.work - self.usual


def own_work(job: Job) -> OwnWork:
    """Of all operations with a time."""
    table = job.table
    rows = np.flatnonzero(timed(job))
    member = table.member[rows].astype(np.int64)
    # One line for all ranks: their times do not overlap, so that one set of intervals answers for all.
    width = int(table.end[rows].max(initial=0)) + 1
    start, end = (times[rows] + member * width for times in (table.start, table.end))
    # A rank that is alone in its group waits for nobody: that is work.
    sizes = np.array([each.size or 0 for each in job.groups] + [0])
    stall = np.where(sizes[table.group[rows]] == 1, 0, table.stall[rows])
    stalled = merge(end - stall, end)
    windows = alike_windows(job, rows)
    behind = _behind(table.group[rows], member, start, end)
    first = np.diff(member, prepend=-1) != 0
    before = np.where(first, start - table.window[rows], np.roll(start, 1))
    queued = _queued(table.issue[rows] + member * width, stall, start, end, behind) & ~first
    stalled_before = covered_time_before(stalled, start)
    stalled_first = covered_time_before(stalled, before[first])
    ready = _ready(start, before, _within(stalled_before, first, stalled_first), stalled, queued, windows)
    sooner = np.flatnonzero(ready != start)
    stalled_before[sooner] = covered_time_before(stalled, ready[sooner])
    before = np.where(first, before, np.roll(ready, 1))
    work = np.maximum(ready - before - _within(stalled_before, first, stalled_first), 0)
    usual = usual_work(work, windows, member, table.step[rows], table.collective[rows])
    return OwnWork(rows, work, usual, stall, start - ready, behind, windows.which)


def _behind(groups: Int32, member: Int64, start: Int64, end: Int64) -> Int64:
    """int64[m]: the previous operation of the same group and rank, NO_CODE if it had not ended."""
    order = stable_order(groups)  # within a group by rank and start, as in the table
    same = (np.diff(groups[order]) == 0) & (np.diff(member[order]) == 0)
    ended = same & (end[order][:-1] <= start[order][1:])
    behind = np.full(len(start), NO_CODE, np.int64)
    behind[order[1:][ended]] = order[:-1][ended]
    return behind


def _queued(issue: Int64, stall: Int64, start: Int64, end: Int64, behind: Int64) -> Bool:
    """bool[m]: operations that only waited for their stream. If the computation waited for the one before as well,
    the host must have issued the operation before that ended: it did not wait."""
    ended = np.append(end, 0)[behind]
    waited = np.append(stall, 0)[behind] > 0
    queued: Bool = (behind >= 0) & (start - ended <= _QUEUED_NS) & (~waited | (issue < ended))
    return queued


def _within(stalled_before: Int64, first: Bool, stalled_first: Int64) -> Int64:
    """int64[m] ns of stalls in each window: up to its end without those up to its begin, where the one before
    ends; the first of each rank begins at a time of its own."""
    begins = np.roll(stalled_before, 1)
    begins[first] = stalled_first
    stalled: Int64 = np.maximum(stalled_before - begins, 0)
    return stalled


def _ready(start: Int64, before: Int64, inside: Int64, stalled: Intervals, queued: Bool, windows: Groups) -> Int64:
    """When each operation's data was ready: its start, or earlier if it was queued; `inside` ns of the window
    before it are stalls."""
    work = start - before - inside
    exact = ~queued & ~np.roll(queued, 1)
    typical = _medians(work[exact], windows.which[exact], len(windows))[windows.which]
    ready: Int64 = start.copy()
    rows = np.flatnonzero(queued & (typical != ABSENT)).tolist()
    begins, finishes = (times.tolist() if rows else [] for times in stalled)
    for i in rows:
        time, left = int(ready[i - 1]), int(typical[i])
        at = bisect_right(finishes, time)
        while at < len(begins) and begins[at] < time + left:  # it does not work while it stalls
            left -= max(begins[at] - time, 0)
            time = finishes[at]
            at += 1
        ready[i] = min(time + left, int(start[i]))
    return ready


def _medians(values: Int64, which: Int64, count: int) -> Int64:
    """int64[count]: the lower median of each, ABSENT without any."""
    order = sorted_within(which, values, count)
    counts = np.bincount(which, minlength=count)
    begins = np.cumsum(counts) - counts
    medians = np.full(count, ABSENT)
    some = counts > 0
    medians[some] = values[order[(begins + (counts - 1) // 2)[some]]]
    return medians
