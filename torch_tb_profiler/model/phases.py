"""The phase of training in which an event runs: data, optimizer, backward, or forward for everything else."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.markers import is_data_loading, is_optimizer
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import build_call_tree, innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Bool, Int32, Trace, name_mask
from torch_tb_profiler.model.trainer import trainer_phases

PHASES = ("forward", "backward", "optimizer", "data")


@stored
def event_phases(trace: Trace) -> npt.NDArray[np.int8]:
    """Return the phase of every event, int8[n], as an index into PHASES.

    The innermost mark around an event decides: a backward pass that an optimizer runs (Lightning's closure) is
    backward, an optimizer that a backward hook runs is optimizer. Device work has the phase of its launch.
    """
    phase_of = np.zeros(len(trace), np.int8)
    marks = rows_of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    trainer = trainer_phases(trace)
    for phase, rows in (
        ("backward", backward_tasks(trace).rows),
        ("optimizer", marks[name_mask(trace.strings, is_optimizer)[trace.events.name[marks]]]),
        ("data", marks[name_mask(trace.strings, is_data_loading)[trace.events.name[marks]]]),
    ):
        phase_of[rows] = PHASES.index(phase)
    for number, phase in enumerate(PHASES):
        phase_of[trainer[phase]] = number
    marked = np.flatnonzero(phase_of).astype(np.int32)
    if len(marked):
        around = innermost_enclosing(trace, build_call_tree(trace, marked))
        inside = (phase_of == 0) & (around >= 0)
        phase_of[inside] = phase_of[around[inside]]
    links = device_links(trace)
    launched = links.launch >= 0
    phase_of[links.rows] = np.where(launched, phase_of[links.launch], 0)
    return phase_of


def phase_mask(trace: Trace, rows: Int32, phase: str) -> Bool:
    """Return which of the rows run in `phase` (one of PHASES), bool[k]."""
    inside: Bool = event_phases(trace)[rows] == PHASES.index(phase)
    return inside
