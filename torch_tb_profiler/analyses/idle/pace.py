"""How fast the host launches work and how fast the device gets through it."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import LAUNCH_BOUND
from torch_tb_profiler.analyses.schedule.gaps import windows, work_of
from torch_tb_profiler.analyses.schedule.segments import segments
from torch_tb_profiler.base.intervals import covered_time
from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace, derived, distinct_codes


class Pace(msgspec.Struct, frozen=True):
    """Medians in the complete steps, ns; None where nothing is launched.

    launch_ns     from one launch call to the next one on its thread
    item_ns       duration of a kernel, copy or memset
    launch_bound  most idle time is the host's launching, and no call had emptied the queue before
    """

    launch_ns: float | None
    item_ns: float | None
    launch_bound: bool


@derived
def pace(trace: Trace, device: int) -> Pace:
    """Of one device."""
    work, idle = work_of(trace, device), segments(trace, device)
    inside = covered_time(windows(steps(trace)), work.start, work.start + 1) > 0
    calls = distinct_codes(work.call[inside])
    thread, start = trace.events.thread[calls], trace.events.start[calls]
    order = np.lexsort((start, thread))
    between = np.diff(start[order])[np.diff(thread[order]) == 0]
    length = (work.end - work.start)[inside]
    own = np.isin(idle.cause, LAUNCH_BOUND) & (idle.gaps.emptied_by[idle.gap] < 0)
    return Pace(
        launch_ns=median(between) if len(between) else None,
        item_ns=median(length) if len(length) else None,
        launch_bound=bool(2 * idle.length[own].sum() > idle.length.sum()),
    )
