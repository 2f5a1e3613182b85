"""Where the time of each step goes on one device: compute, exposed communication, exposed copies, idle."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.schedule.gaps import Work, work_of
from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Bool, Int64, Trace, derived


class StepTimes(msgspec.Struct, frozen=True):
    """Columns of the s steps of the trace, ns; the four parts sum to the duration exactly.

    compute        kernels but communication
    communication  in which only communication kernels (and copies) run
    copies         in which only copies and memsets run
    idle           in which nothing runs
    complete       bool  the others are left out of every average
    """

    names: tuple[str, ...]
    start: Int64
    duration: Int64
    compute: Int64
    communication: Int64
    copies: Int64
    idle: Int64
    complete: Bool


@derived
def step_times(trace: Trace, device: int, stream: int | None = None) -> StepTimes:
    """Each part is what the union of it and those before covers, less what those before cover."""
    spans, work = steps(trace), work_of(trace, device, stream)
    kernel = event_kinds(trace)[work.row] == Kind.KERNEL
    busy = [_covered(work, which, spans.starts, spans.ends) for which in (work.compute, kernel, kernel | True)]
    return StepTimes(
        names=spans.names,
        start=spans.starts,
        duration=spans.ends - spans.starts,
        compute=busy[0],
        communication=busy[1] - busy[0],
        copies=busy[2] - busy[1],
        idle=spans.ends - spans.starts - busy[2],
        complete=spans.complete,
    )


def _covered(work: Work, which: Bool, begin: Int64, end: Int64) -> Int64:
    return covered_time(merge(work.start[which], work.end[which]), begin, end)
