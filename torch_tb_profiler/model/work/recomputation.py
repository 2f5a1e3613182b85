"""Forward operators that run a second time inside the backward pass (activation checkpointing).

    evaluate_function: CheckpointFunctionBackward ----|
      aten::conv2d --|    aten::convolution_backward --|
      again: its sequence number is no backward's         Fwd thread id is not 0

No stacks are needed: of the operator and those around it, the nearest with a `Sequence number` has the thread of a
forward operator (`Fwd thread id`) if it is part of backward, and 0 if it is forward.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import build_call_tree, enclosing_operators, innermost_enclosing
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Trace


def recomputed(trace: Trace, calls: Int32) -> Bool:
    """bool[k]: which of these operators compute again, inside a backward task, what forward computed."""
    tasks = backward_tasks(trace).rows
    again = np.zeros(len(calls), np.bool_)
    if len(tasks) == 0:
        return again
    sequence, origin = trace.arg_int("Sequence number"), trace.arg_int("Fwd thread id")
    around = enclosing_operators(trace)
    is_task = np.zeros(len(trace), np.bool_)
    is_task[tasks] = True
    within = innermost_enclosing(trace, build_call_tree(trace, tasks), among=calls)[calls] >= 0
    at = calls.copy()
    # Up to the nearest operator with a number, which the task itself has too.
    while (climbing := (at >= 0) & (sequence[at] == ABSENT)).any():
        at[climbing] = around[at[climbing]]
    known = within & (at >= 0)
    again[known] = ~is_task[at[known]] & (origin[at[known]] == 0)
    return again
