"""The host's call tree: per thread, by time nesting.

Order: start, longer first, file order. An event is the child of the innermost one that contains it; one
of no length is the child of what contains its instant.

    |-- aten::linear ---------------|
      |-- aten::t --|  |-- addmm --|        parent(addmm) = linear, depth 1
                           |-- late --|     sticks out of addmm: side lane 1 of the same thread

Overlap that does not nest goes to a side lane, where it nests only with its like.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.calls.compiled import active_functions
from torch_tb_profiler.model.calls.nesting import nest, nesting_order, place_on_one_axis
from torch_tb_profiler.model.kinds import HOST_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, derived


class CallTree(msgspec.Struct, frozen=True):
    """Host slices of all threads.

    rows    int32[k]  their rows in the trace, ordered by thread, lane, start, longer first
    parent  int32[n]  row of the parent, NO_CODE for roots and for all that is not in the tree
    depth   int32[n]  0 for roots; -1 for what is not in the tree
    lane    int32[n]  0 is the thread's own stack, 1.. are side lanes; -1 for what is not in the tree
    """

    rows: Int32
    parent: Int32
    depth: Int32
    lane: Int32

    @property
    def overlaps(self) -> int:
        """How many events did not nest in their thread."""
        return int((self.lane > 0).sum())


@derived
def call_tree(trace: Trace) -> CallTree:
    """The call tree of every thread; side lanes where events overlap without nesting."""
    return build_call_tree(trace, rows_of_kind(trace, *HOST_KINDS))


def build_call_tree(trace: Trace, rows: Int32) -> CallTree:
    """The call tree of these slices alone: of markers such as module calls, whatever else surrounds them."""
    events, count = trace.events, len(trace)
    if in_c := active_functions():
        return CallTree(*in_c.tree(rows, events.start, event_ends(trace), events.thread, len(trace.threads)))
    parent = np.full(count, NO_CODE, np.int32)
    depth = np.full(count, -1, np.int32)
    lane = np.full(count, -1, np.int32)
    finish = event_ends(trace)
    arranged: list[Int32] = []
    side = 0
    while len(rows):
        begin, end = place_on_one_axis(events.start[rows], finish[rows], events.thread[rows])
        order = nesting_order(begin, end)
        rows = rows[order]
        above, level, fits = nest(begin[order], end[order])
        nested = rows[fits]
        parent[nested] = np.where(above[fits] >= 0, rows[above[fits]], NO_CODE)
        depth[nested], lane[nested] = level[fits], side
        arranged.append(nested)
        rows, side = rows[~fits], side + 1
    return CallTree(np.concatenate(arranged) if arranged else rows, parent, depth, lane)


@derived
def enclosing_operators(trace: Trace) -> Int32:
    """int32[n]: the innermost operator that contains each event of the tree, itself excluded, by nesting."""
    tree = call_tree(trace)
    operator = event_kinds(trace) == Kind.CPU_OP
    if in_c := active_functions():
        return in_c.enclosing(tree.rows, tree.parent, operator)
    enclosing = np.full(len(trace), NO_CODE, np.int32)
    # Level by level, so that the parent's answer is there before its children ask.
    rows = tree.rows
    order = rows[np.argsort(tree.depth[rows].astype(np.int16), kind="stable")]
    bounds = np.searchsorted(tree.depth[order], np.arange(int(tree.depth.max(initial=0)) + 2))
    for low, high in zip(bounds[1:-1], bounds[2:], strict=True):
        members = order[low:high]
        above = tree.parent[members]
        enclosing[members] = np.where(operator[above], above, enclosing[above])
    return enclosing
