"""The role of each call in a step, and the threads that run the steps and their backward pass."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from torch_tb_profiler.base.markers import is_data_loading, is_optimizer, is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int8, Int32, Trace, name_mask


class PartRole(IntEnum):
    """What an element of the logical timeline is."""

    STEP = 0
    MODULE = 1
    BACKWARD = 2
    DATALOADER = 3
    OPTIMIZER = 4
    ANNOTATION = 5
    OPERATORS = 6
    THREADS = 7
    OPERATOR = 8
    RUNTIME = 9
    DEVICE = 10
    UNLINKED = 11


GROUP_NAMES = {
    PartRole.BACKWARD: "Backward",
    PartRole.OPERATORS: "Operators",
    PartRole.THREADS: "Other threads",
    PartRole.UNLINKED: "Device work without a launch",
}
"""Names of the parts that group calls of a step and aren't calls themselves."""


def part_roles(trace: Trace, rows: Int32) -> Int8:
    """Return the PartRole of each of these rows of host calls, int8[k]."""
    by_kind = np.full(len(Kind), PartRole.OPERATOR, np.int8)
    by_kind[Kind.ANNOTATION], by_kind[Kind.PYTHON] = PartRole.ANNOTATION, PartRole.MODULE
    by_kind[Kind.RUNTIME] = by_kind[Kind.DRIVER] = PartRole.RUNTIME
    role: Int8 = by_kind[event_kinds(trace)[rows]]
    may_be_marker = np.isin(role, (PartRole.ANNOTATION, PartRole.OPERATOR))
    for is_marked, marked_role in ((is_data_loading, PartRole.DATALOADER), (is_optimizer, PartRole.OPTIMIZER)):
        role[may_be_marker & name_mask(trace.strings, is_marked)[trace.events.name[rows]]] = marked_role
    return role


@derived
def step_thread(trace: Trace) -> int:
    """Return the thread that runs the steps.

    Without step markers it is the thread whose outermost calls take the most time; NO_CODE if no thread has calls.
    """
    markers = rows_of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    markers = markers[name_mask(trace.strings, is_step)[trace.events.name[markers]]]
    if len(markers):
        return int(np.bincount(trace.events.thread[markers]).argmax())
    tree = call_tree(trace)
    outermost = tree.rows[tree.depth[tree.rows] == 0]
    if len(outermost) == 0:
        return NO_CODE
    return int(
        np.bincount(trace.events.thread[outermost], (event_ends(trace) - trace.events.start)[outermost]).argmax()
    )


@derived
def autograd_threads(trace: Trace) -> Int32:
    """Return the threads other than the main one that run backward tasks.

    All of their work counts as backward: old files link only some of these tasks to their forward operators.
    """
    threads = np.unique(trace.events.thread[backward_tasks(trace).rows])
    others: Int32 = threads[threads != step_thread(trace)].astype(np.int32)
    return others
