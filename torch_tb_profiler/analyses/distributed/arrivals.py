"""When each rank reached each collective, on the job's clock.

    rank 0  ......|-- waits -----------|== transfer ==|
    rank 1  ........|-- waits ---------|== transfer ==|
    rank 2  ...........................|== transfer ==|      late: from the others' median arrival to its own
                  ^ median of the others

Arrivals are the begins of kernels (or of the host's calls). A difference below the error of the clocks is none.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.clocks import Clocks
from torch_tb_profiler.analyses.distributed.costs.medians import median_of_others, order_within
from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import Matching
from torch_tb_profiler.analyses.distributed.waiting import Split
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int64


class Arrivals(msgspec.Struct, frozen=True):
    """Columns by operation of the job's table:

    lateness  int64[k]  ns after the median arrival of the other ranks, 0 for those before it; ABSENT as `first`
    middle    bool[k]   the rank in the middle

    and by collective:

    first     int64[c]  job time of the first arrival, ABSENT without two ranks on one clock
    skew      int64[c]  ns from the first to the last arrival, ABSENT likewise
    last      int64[c]  row of the last to arrive, NO_CODE where the clocks' error exceeds the difference
    cut       bool[c]   the last one had not yet begun to record when the others arrived
    """

    lateness: Int64
    middle: Bool
    first: Int64
    skew: Int64
    last: Int64
    cut: Bool

    @property
    def attributable(self) -> Bool:
        """bool[c]: it is known which rank arrived last, and its profiler was recording."""
        return (self.last >= 0) & ~self.cut


def arrivals(job: Job, matching: Matching, clocks: Clocks, split: Split) -> Arrivals:
    """Arrivals at all compared collectives."""
    table, count = job.table, len(matching)
    shift, aligned = clocks.shifts()
    rows = np.flatnonzero(split.compared & aligned[table.member])
    time = table.start[rows] + shift[table.member[rows]]
    several = np.bincount(matching.instance[rows], minlength=count)[matching.instance[rows]] > 1
    rows, time = rows[several], time[several]
    order = order_within(matching.instance[rows], time, count)
    rows, time = rows[order], time[order]
    instance = matching.instance[rows]
    sizes = np.bincount(instance, minlength=count)
    begin, size = (np.cumsum(sizes) - sizes)[instance], sizes[instance]
    position = np.arange(len(rows)) - begin

    lateness = np.full(len(table), ABSENT)
    lateness[rows] = np.maximum(time - median_of_others(time, begin, size, position), 0)
    middle = np.zeros(len(table), np.bool_)
    middle[rows[position == (size - 1) >> 1]] = True
    first, skew = np.full(count, ABSENT), np.full(count, ABSENT)
    final = np.flatnonzero(position == size - 1)
    which, at = instance[final], begin[final]
    first[which], skew[which] = time[at], time[final] - time[at]

    last, cut = np.full(count, NO_CODE), np.zeros(count, np.bool_)
    error = np.zeros(count, np.int64)
    np.maximum.at(error, instance, clocks.residuals()[table.member[rows]])
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, instance, split.waiting[rows])
    # No clock makes a rank later than the others waited.
    by_clock = lateness.copy()
    lateness[rows] = np.minimum(lateness[rows], longest[instance])
    apart = np.minimum(skew[which], longest[which])
    certain = apart // 2 > error[which]  # either clock may be off by that much, in opposite directions
    which, final = which[certain], final[certain]
    last[which] = rows[final]
    recording = shift[table.member[rows[final]]]
    cut[which] = recording > time[final] - by_clock[rows[final]]
    return Arrivals(lateness, middle, first, skew, last, cut)
