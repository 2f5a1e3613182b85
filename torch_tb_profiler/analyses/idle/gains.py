"""What the device's waits would bring if the host took no time in them: the schedule replayed without it."""

from __future__ import annotations

from torch_tb_profiler.analyses.idle.table import IdleTable
from torch_tb_profiler.analyses.schedule.causes import Cause
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans
from torch_tb_profiler.analyses.schedule.targets import time_target
from torch_tb_profiler.analyses.schedule.what_if import affordable, unexplained, without
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.model.schedule.clock import clock_shift_ns
from torch_tb_profiler.model.trace import Trace


def idle_gains(trace: Trace, table: IdleTable) -> dict[int, int]:
    """Row of the table -> ns by which all complete steps together would be shorter, at most the row's time.

    Of the largest rows for which the host is late: a device that starts late by itself has no part to take away,
    and none has a gain where the schedule does not explain the trace.
    """
    if unexplained(trace) is not None:
        return {}
    late = [row for row, cause in enumerate(table.cause.tolist()) if cause <= Cause.UNRECORDED]
    rows = late[: affordable(trace)]
    if not rows:
        return {}
    found, shift = table.segments, clock_shift_ns(trace)
    parts = []
    for row in rows:
        mine = table.members(row)
        parts.append(time_target(trace, merge(found.begin[mine] + shift, found.end[mine] + shift)))
    spans = recorded_spans(trace)
    saved = (spans.mean_ns[0] - without(trace, parts)) * spans.end.shape[1]
    return dict(zip(rows, saved.tolist(), strict=True))
