"""Which threads run the steps, and which run the backward pass for them."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import Kind, ends, of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, derived, name_mask


@derived
def main_thread(trace: Trace) -> int:
    """The thread of the steps, else the one whose outermost calls take the most time; NO_CODE without any."""
    marks = of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    marks = marks[name_mask(trace.strings, is_step)[trace.events.name[marks]]]
    if len(marks):
        return int(np.bincount(trace.events.thread[marks]).argmax())
    tree = call_tree(trace)
    top = tree.rows[tree.depth[tree.rows] == 0]
    if len(top) == 0:
        return NO_CODE
    return int(np.bincount(trace.events.thread[top], (ends(trace) - trace.events.start)[top]).argmax())


@derived
def autograd_threads(trace: Trace) -> Int32:
    """Threads other than the main one that run tasks of the backward pass: all of their work belongs to it.

    (Old files link only some of these tasks to their forward operators.)
    """
    threads = np.unique(trace.events.thread[backward_tasks(trace).rows])
    others: Int32 = threads[threads != main_thread(trace)].astype(np.int32)
    return others
