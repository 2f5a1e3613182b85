"""In which operator most of the time of host operators passes."""

from __future__ import annotations

from torch_tb_profiler.analyses.overview.idle import Covering, step_windows
from torch_tb_profiler.analyses.overview.unrecorded import deepest
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.base.intervals import intersect, subtract, union
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.schedule.threads import main_thread
from torch_tb_profiler.model.trace import Trace


@derived
def main_operator(trace: Trace) -> Covering | None:
    """The deepest operator of the main thread that, with what it calls, covers half or more of the time that the
    complete steps spend in host operators; None if none does. Of two threads at once each would have all of it."""
    roles = dict(role_intervals(trace))
    time = intersect(step_windows(trace), roles.pop("cpu_exec"))
    rows = rows_of_kind(trace, Kind.CPU_OP)
    rows = rows[trace.events.thread[rows] == main_thread(trace)]
    return deepest(trace, subtract(time, union(*roles.values())), rows)
