"""Lateness that may not matter because a missing rank is later still: a rank works long, and then waits anyway.

    rank 0 (missing)  |====== forward =========| send
    rank 1            |== loads data ==|.. waits ..| receive    without the loading, it would only wait longer

When the missing rank arrives isn't recorded. But a transfer needs no longer than the fastest one of the same kind
that moves as much or more: what exceeds that by far is a wait for the missing rank. Whether that one is late on
its own, or because it waited for the late rank before, isn't recorded either.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.distributed.waiting import fastest_transfers
from torch_tb_profiler.analyses.distributed.work_windows import WorkWindows
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.arrays import lowest_by_number
from torch_tb_profiler.model.trace import ABSENT, Bool

_MIN_WAIT_RATIO = 1.5
"""An operation with a missing rank waits for it if it takes at least this many times as long as the fastest one
that moves as much. To make the missing rank a suspect takes more: this only casts doubt on another one."""


def without_hidden_lateness(job: DistributedJob, matching: Matching, work: WorkWindows) -> WorkWindows | None:
    """Return windows in which no rank is late that then waits for a missing one; None if no lateness is hidden."""
    late = (work.excess > 0) & ~matching.complete[select(matching.instance, work.rows)]
    if not late.any():
        return None
    hidden = late & _find_long_waits(job, matching, work)
    if not hidden.any():
        return None
    return msgspec.structs.replace(work, typical=np.where(hidden, work.work, work.typical))


def _find_long_waits(job: DistributedJob, matching: Matching, work: WorkWindows) -> Bool:
    """Return bool[m]: the operation after each window takes all ranks found longer than a transfer needs."""
    table, rows = job.table, work.rows
    message, instance = select(table.message, rows), select(matching.instance, rows)
    # The last of the ranks that are found waits for none of the others.
    shortest = lowest_by_number(instance, select(table.latency, rows), len(matching))[instance]
    parts = (table.group, table.collective, table.source, table.target)
    kinds = group(*(select(column, rows) for column in parts))
    fastest = fastest_transfers(kinds.which, message, shortest)
    waits: Bool = (message != ABSENT) & (shortest >= _MIN_WAIT_RATIO * fastest)
    return waits
