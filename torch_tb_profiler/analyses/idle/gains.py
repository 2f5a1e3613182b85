"""What the device's waits would bring if the host took no time in them: the schedule replayed without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.idle.table import IdleTable
from torch_tb_profiler.analyses.schedule.causes import Cause
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans
from torch_tb_profiler.analyses.schedule.targets import Target, time_target
from torch_tb_profiler.analyses.schedule.what_if import affordable, unexplained, without
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.model.schedule.items import clock_shift_ns
from torch_tb_profiler.model.trace import Trace


class IdleGains(msgspec.Struct, frozen=True):
    """ns by which all complete steps together would be shorter: by row of the table, and by Cause."""

    rows: Mapping[int, int]
    causes: Mapping[int, int]


def idle_gains(trace: Trace, table: IdleTable) -> IdleGains:
    """Of the largest rows for which the host is late, and of the causes of those rows as a whole.

    At most the idle time in question. A device that starts late by itself has no part to take away, and none has a
    gain where the schedule does not explain the trace.
    """
    if unexplained(trace) is not None:
        return IdleGains({}, {})
    late = [row for row, cause in enumerate(table.cause.tolist()) if cause <= Cause.UNRECORDED]
    rows = late[: affordable(trace)]
    if not rows:
        return IdleGains({}, {})
    causes: dict[int, list[int]] = {}
    for row in late:
        causes.setdefault(int(table.cause[row]), []).append(row)
    named = list(dict.fromkeys(int(table.cause[row]) for row in rows))
    several = [cause for cause in named if len(causes[cause]) > 1]
    parts = [_part(trace, table, [row]) for row in rows]
    parts += [_part(trace, table, causes[cause]) for cause in several]
    spans = recorded_spans(trace)
    saved = ((spans.mean_ns[0] - without(trace, parts)) * spans.end.shape[1]).tolist()
    of_rows = dict(zip(rows, saved[: len(rows)], strict=True))
    of_causes = dict(zip(several, saved[len(rows) :], strict=True))
    alone = {cause: of_rows[causes[cause][0]] for cause in named if cause not in of_causes}
    return IdleGains(of_rows, of_causes | alone)


def _part(trace: Trace, table: IdleTable, rows: Sequence[int]) -> Target:
    idle, shift = table.segments, clock_shift_ns(trace)
    mine = np.concatenate([table.members(row) for row in rows])
    return time_target(trace, merge(idle.begin[mine] + shift, idle.end[mine] + shift))
