"""What a host that no longer waits for the device saves at most, from recorded times alone: nothing is replayed.

host    |launch|---- waits ----|- prepares -|launch|   without it, the host is ahead by as long as it waited, and
device         [    kernel     ]    idle           [   the device is idle for that much less, now or later
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.overview.idle import host_late_times
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds, typical_windows
from torch_tb_profiler.base.intervals import covered_time, intersect, total
from torch_tb_profiler.model.kinds import event_intervals
from torch_tb_profiler.model.trace import Int32, Trace


def most_saved_without_waits(trace: Trace, calls: Int32) -> float:
    """Return by how much less devices are idle at most without the waits in these calls, mean ns per typical step.

    The lead that the host has in one gap it keeps for the next ones, as far as that gap didn't use it up, whatever
    the host does in it: what it waits for besides doesn't count, as that may be done sooner as well. Before the
    first step it may be ahead by as much as a mean step waits.
    """
    gaps, windows = host_late_times(trace), typical_windows(trace)
    waits = intersect(event_intervals(trace, calls), windows)
    if not len(gaps.starts) or not len(waits.starts):
        return 0.0
    count = len(windows.starts)
    before = covered_time(waits, np.full(len(gaps.starts), windows.starts[0]), gaps.starts)
    lead, idle = before + total(waits) // count, np.cumsum(gaps.ends - gaps.starts)
    saved = idle[-1] + min(int((lead - idle).min()), 0)
    return float(saved) / max(int(step_kinds(trace).typical.sum()), 1)
