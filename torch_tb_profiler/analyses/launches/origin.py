"""Where in the program some device work comes from: the innermost slice around all of its launches."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace


def common_slice(trace: Trace, work: Int32) -> int:
    """Row of the innermost module, operator, annotation or frame that launched all of the work; NO_CODE if none.

    A call that launched all of it (a graph) is that slice itself. A step is no answer: it launches everything.
    """
    rows, launch = device_launches(trace)
    order = np.argsort(rows)
    calls = launch[order][np.searchsorted(rows[order], work)]
    if len(calls) == 0 or (calls < 0).any():
        return NO_CODE
    tree = call_tree(trace)
    around = _outward(tree.parent, int(calls[0]))
    for call in np.unique(calls[1:]).tolist():
        own = set(_outward(tree.parent, call))
        around = [row for row in around if row in own]
    while around and is_step(name_of(trace, around[0])):
        around = around[1:]
    return around[0] if around else NO_CODE


def _outward(parent: Int32, row: int) -> list[int]:
    """The slice and those around it, innermost first."""
    chain = []
    while row != NO_CODE:
        chain.append(row)
        row = int(parent[row])
    return chain
