"""The thread whose program the steps are."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.links import launches
from torch_tb_profiler.model.kinds import Kind, of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, derived, name_mask


@derived
def main_thread(trace: Trace) -> int:
    """Code of the thread of the steps; else the one that launches most and runs no autograd task; else the one
    with most operators. NO_CODE if the host was not recorded."""
    events = trace.events
    marks = of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    marks = marks[name_mask(trace.strings, is_step)[events.name[marks]]]
    if len(marks):
        return _most_common(events.thread[marks])
    calls = launches(trace)[1]
    launching = events.thread[calls[calls >= 0]]
    apart = launching[~np.isin(launching, events.thread[backward_tasks(trace).rows])]
    operators = events.thread[of_kind(trace, Kind.CPU_OP)]
    for threads in (apart, launching, operators):
        if len(threads):
            return _most_common(threads)
    return NO_CODE


def _most_common(threads: Int32) -> int:
    return int(np.argmax(np.bincount(threads)))
