"""What the steps of a trace are made of, in ways whose parts sum to the step exactly, and how busy devices are."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import counted_steps
from torch_tb_profiler.analyses.diff.threads import autograd_threads
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, breakdown, role_intervals
from torch_tb_profiler.base.intervals import Intervals, covered, merge, union
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.devices import device_of
from torch_tb_profiler.model.kinds import DEVICE, Kind, ends, of_kind
from torch_tb_profiler.model.modules.modules import module_calls
from torch_tb_profiler.model.phases import PHASES, phases
from torch_tb_profiler.model.steps import has_host_events
from torch_tb_profiler.model.trace import Int32, Int64, Trace, derived, name_mask
from torch_tb_profiler.model.trainer.events import trainer_phases

PHASE_ORDER = ("data", "optimizer", "backward", "forward")
"""An instant counts for the first of these that runs then."""

Parts = dict[str, Int64]
"""Part -> int64[steps] ns; all parts of a step sum to its duration."""


def by_category(trace: Trace) -> Parts:
    """The overview's categories of the counted steps."""
    times = breakdown(trace).times
    return {name: times[name][counted_steps(trace).which] for name in CATEGORIES}


@derived
def by_phase(trace: Trace) -> Parts:
    """What the host does, and `device`: the rest of the step after the host is done."""
    steps = counted_steps(trace)
    edge = np.clip(steps.host_ends, steps.starts, steps.ends)
    parts: Parts = {}
    covering: list[Intervals] = []
    counted = np.zeros(len(steps), np.int64)
    for name in PHASE_ORDER:
        covering = [union(*covering, _host_time(trace, name))]
        reach = covered(covering[0], steps.starts, edge)
        parts[name] = reach - counted
        counted = reach
    parts["other"] = edge - steps.starts - counted
    parts["device"] = steps.ends - edge
    return parts


def _host_time(trace: Trace, phase: str) -> Intervals:
    if not has_host_events(trace):  # a trainer alone
        rows = trainer_phases(trace)[phase]
        return merge(trace.events.start[rows], ends(trace)[rows])
    rows = of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER)
    rows = rows[~name_mask(trace.strings, is_step)[trace.events.name[rows]]]
    if phase == "forward":
        rows = np.concatenate([rows, module_calls(trace)])
    phase_of = phases(trace)[rows]
    autograd = np.isin(trace.events.thread[rows], autograd_threads(trace))
    phase_of[(phase_of == 0) & autograd] = PHASES.index("backward")
    rows = rows[phase_of == PHASES.index(phase)]
    return merge(trace.events.start[rows], ends(trace)[rows])


def communication_times(trace: Trace) -> tuple[Int64, Int64]:
    """(any communication, the part that nothing on the device covers), int64[steps] ns each."""
    steps = counted_steps(trace)
    communicating = role_intervals(trace)["communication"]
    return covered(communicating, steps.starts, steps.ends), by_category(trace)["communication"]


def busy_times(trace: Trace, device: int) -> Int64:
    """int64[steps] ns in which a device runs a kernel, a memcpy or a memset."""
    steps = counted_steps(trace)
    rows: Int32 = of_kind(trace, *DEVICE)
    rows = rows[device_of(trace)[rows] == device]
    return covered(merge(trace.events.start[rows], ends(trace)[rows]), steps.starts, steps.ends)
