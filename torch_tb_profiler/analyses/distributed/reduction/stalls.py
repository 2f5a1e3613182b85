"""Where a rank's computation waits for its communication.

    compute   |== backward ==|.................|== optimizer ==
    nccl         |------ all_reduce ----------|
                             |<--- stall ---->|

Communication that no computation covers, up to its end, held the computation up. Where a kernel begins before the
communication ends, the device was idle for another reason, and that is no stall.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.intervals import Intervals, merge, subtract
from torch_tb_profiler.model.communication.collectives import Collectives
from torch_tb_profiler.model.communication.events import communication_calls
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

_LAG = 20
"""On the host, the thread that communicates may note its end later than the thread that waited goes on: by this
part of the operation at most."""


def stalls(trace: Trace, operations: Collectives, computation: Intervals) -> Int64:
    """int64[k] ns: how long the computation waited for the end of each operation; 0 where it did not.

    Without a GPU the operators of the host are the computation.
    """
    timed = operations.start != ABSENT
    lag = np.zeros(len(timed), np.int64)
    if not len(rows_of_kind(trace, Kind.KERNEL)):
        rows = rows_of_kind(trace, Kind.CPU_OP)
        rows = rows[~communication_calls(trace)[rows]]
        computation = merge(trace.events.start[rows], event_ends(trace)[rows])
        lag = np.where(timed, operations.end - operations.start, 0) // _LAG
    bare = subtract(merge(operations.parts.starts, operations.parts.ends), computation)
    first = np.searchsorted(bare.ends, operations.end - lag, "left")
    last = np.searchsorted(bare.ends, operations.end, "right")
    stalled = np.flatnonzero(timed & (first < last))
    stall = np.zeros(len(timed), np.int64)
    taken: set[int] = set()
    for row in stalled.tolist():
        reach = slice(int(first[row]), int(last[row]))
        longest = reach.start + int(np.argmax(bare.ends[reach] - bare.starts[reach]))
        if longest not in taken:  # of operations that end together one stands for all
            taken.add(longest)
            stall[row] = operations.end[row] - bare.starts[longest]
    return stall
