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
from torch_tb_profiler.model.kinds import Kind, ends, of_kind
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace


def stalls(trace: Trace, operations: Collectives, computation: Intervals) -> Int64:
    """int64[k] ns: how long the computation waited for the end of each operation; 0 where it did not.

    Without a GPU the operators of the host are the computation.
    """
    timed = operations.start != ABSENT
    if not len(of_kind(trace, Kind.KERNEL)):
        rows = of_kind(trace, Kind.CPU_OP)
        rows = rows[~communication_calls(trace)[rows]]
        computation = merge(trace.events.start[rows], ends(trace)[rows])
    bare = subtract(merge(operations.parts.starts, operations.parts.ends), computation)
    at = np.searchsorted(bare.ends, operations.end)
    found = timed & (np.append(bare.ends, ABSENT)[at] == operations.end)
    # Of operations that end together one stands for all.
    _, first = np.unique(np.where(found, operations.end, -1 - np.arange(len(found))), return_index=True)
    alone = np.zeros(len(found), np.bool_)
    alone[first] = True
    return np.where(found & alone, operations.end - np.append(bare.starts, 0)[at], 0)
