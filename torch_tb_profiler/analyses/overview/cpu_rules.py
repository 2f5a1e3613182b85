"""Rules about a training on the CPU: what its operators do that fewer would do as well."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import MIN_PARAMETERS
from torch_tb_profiler.base.intervals import Intervals, subtract
from torch_tb_profiler.base.markers import is_optimizer_step
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_intervals, rows_of_kind
from torch_tb_profiler.model.trace import Int32, Trace, name_mask

FUSED_ON_CPU = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of PyTorch with `fused=True` for parameters on the CPU (from 2.4 on)."""


def find_optimizer_on_cpu(trace: Trace) -> Iterator[Finding]:
    """Find optimizers that call operators parameter by parameter on the CPU.

    One pass over the parameters is needed in any case. The operator with the most time stands for it, as the
    others could run in the same pass.
    """
    if len(rows_of_kind(trace, *DEVICE_KINDS)):
        return
    marks = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    marks = marks[name_mask(trace.strings, is_optimizer_step)[trace.events.name[marks]]]
    if len(marks) == 0:
        return
    during = event_intervals(trace, marks)
    operators = _operators_below(trace, marks, during)
    names = trace.events.name[operators]
    if len(names) == 0 or np.bincount(names).max() < MIN_PARAMETERS * len(marks):
        return
    codes = np.unique(names)
    times = [int(trace.events.duration[operators[names == code]].sum()) for code in codes]
    longest = operators[names == codes[int(np.argmax(times))]]
    mark = int(marks[np.argmax(trace.events.duration[marks])])
    optimizer = trace.strings[trace.events.name[mark]].partition("#")[2]
    if "fused" in optimizer.lower():
        return  # of a library that runs on GPUs, whose work isn't in the file
    fused = optimizer.partition(".")[0] in FUSED_ON_CPU
    yield Finding(
        "optimizer_on_cpu",
        subtract(during, event_intervals(trace, longest)),
        case="fused" if fused else "other",
        subject=optimizer,
        value=int(np.bincount(names).max() // len(marks)),
        event=mark,
    )


def _operators_below(trace: Trace, marks: Int32, during: Intervals) -> Int32:
    """Return the operators that begin while an optimizer steps, in no other operator."""
    rows = np.setdiff1d(rows_of_kind(trace, Kind.CPU_OP), marks)
    at = np.searchsorted(during.starts, trace.events.start[rows], "right") - 1
    inside = (at >= 0) & (trace.events.start[rows] < during.ends[np.maximum(at, 0)])
    around = enclosing_operators(trace)[rows]
    below: Int32 = rows[inside & ((around < 0) | np.isin(around, marks))]
    return below
