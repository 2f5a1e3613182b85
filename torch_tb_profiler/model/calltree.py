"""The host's call tree: per thread, by time nesting.

Order: start, longer first, file order. An event is the child of the innermost one that contains it; one
of no length is the child of what contains its instant.

    |-- aten::linear ---------------|
      |-- aten::t --|  |-- addmm --|        parent(addmm) = linear, depth 1
                           |-- late --|     sticks out of addmm: side lane 1 of the same thread

Overlap that does not nest goes to a side lane, where it nests only with its like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.model.kinds import HOST, Kind, ends, kinds, of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, derived


@dataclass(frozen=True)
class CallTree:
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
    return tree_of(trace, of_kind(trace, *HOST))


def tree_of(trace: Trace, rows: Int32) -> CallTree:
    """The call tree of these slices alone: of markers such as module calls, whatever else surrounds them."""
    count = len(trace)
    parent = np.full(count, NO_CODE, np.int32)
    depth = np.full(count, -1, np.int32)
    lane = np.full(count, -1, np.int32)
    finish = ends(trace)
    arranged: list[Int32] = []
    level = 0
    while len(rows):
        rows = _arrange(trace, rows, finish)
        nested, left = _nest(trace, rows, finish, parent, depth)
        lane[nested] = level
        arranged.append(nested)
        rows, level = left, level + 1
    return CallTree(np.concatenate(arranged) if arranged else rows, parent, depth, lane)


def _arrange(trace: Trace, rows: Int32, finish: Int64) -> Int32:
    start, thread = trace.events.start[rows], trace.events.thread[rows]
    length = finish[rows] - start
    base = int(start.min())
    span = int(start.max()) - base + 1
    if span * (int(thread.max()) + 1) > np.iinfo(np.int64).max:
        return rows[np.lexsort((-length, start, thread))]
    # One key sorts several times faster than three; only equal starts then need the length.
    key = thread * np.int64(span) + (start - base)
    order = np.argsort(key, kind="stable")
    equal = np.diff(key[order]) == 0
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        group = order[tied]
        order[tied] = group[np.lexsort((-length[group], key[group]))]
    return rows[order]


def _nest(trace: Trace, rows: Int32, finish: Int64, parent: Int32, depth: Int32) -> tuple[Int32, Int32]:
    """Write parent and depth of arranged rows; returns (those that nest, those that do not)."""
    above, level, fits = nest(trace.events.start[rows], finish[rows], trace.events.thread[rows])
    kept = np.flatnonzero(fits)
    parent[rows[kept]] = np.where(above[kept] >= 0, rows[above[kept]], NO_CODE)
    depth[rows[kept]] = level[kept]
    return rows[kept], rows[~fits]


def nest(start: Int64, end: Int64, owner: Int32) -> tuple[Int64, Int64, Bool]:
    """(parent, depth, fits) of intervals ordered by owner, start, longer first; parents as positions.

    `fits` is False for what sticks out of the interval it begins in; its parent and depth mean nothing.
    """
    above, level = nest_intervals(start, end, owner)
    fits = np.ones(len(start), np.bool_)
    broken = _broken_groups(end, above, level)
    if broken.any():
        bad = np.flatnonzero(broken)
        above[bad], level[bad], fits[bad] = _stack(start[bad], end[bad], owner[bad], bad)
    return above, level, fits


def nest_intervals(start: Int64, end: Int64, thread: Int32) -> tuple[Int64, Int64]:
    """(parent, depth) of arranged intervals as positions, right wherever they nest.

    depth = longer-than-zero intervals that began before and have not ended; the parent is the last of
    depth - 1 before. No loop over events: both come from sorting.
    """
    count = len(start)
    if count == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # Threads lie side by side on one axis, so that one sort serves all.
    base = int(start.min())
    span = int(end.max()) - base + 1
    shift = thread.astype(np.int64) * span
    begin, finish = start - base + shift, end - base + shift
    lasting = finish > begin
    began: Int64 = np.cumsum(lasting) - lasting
    ended = np.searchsorted(np.sort(finish[lasting]), begin, "right")
    level = began - ended
    parent = np.full(count, -1, np.int64)
    by_level = np.argsort(level.astype(np.int16 if level.max() < 2**15 else np.int64), kind="stable")
    bounds = np.searchsorted(level[by_level], np.arange(int(level.max()) + 2))
    above = np.empty(0, np.int64)
    for depth in range(int(level.max()) + 1):
        members = by_level[bounds[depth] : bounds[depth + 1]]
        if depth:
            at = np.searchsorted(above, members) - 1
            parent[members] = np.where(at >= 0, above[at], -1)
        above = members[lasting[members]]
    return parent, level


def _broken_groups(end: Int64, parent: Int64, level: Int64) -> np.ndarray:
    """bool[k]: members of a root's group in which some event sticks out of its parent."""
    has_parent = parent >= 0
    broken = has_parent & (end > end[np.where(has_parent, parent, 0)])
    broken |= (level > 0) & ~has_parent
    broken |= level < 0
    if not broken.any():
        return broken
    group = np.cumsum(level <= 0)
    return np.isin(group, np.unique(group[broken]))


def _stack(start: Int64, end: Int64, thread: Int32, position: Int64) -> tuple[Int64, Int64, np.ndarray]:
    """The definition itself, event by event, for the groups where the sorted way cannot be trusted."""
    parent = np.full(len(start), -1, np.int64)
    level = np.zeros(len(start), np.int64)
    fits = np.ones(len(start), np.bool_)
    open_events: list[tuple[int, int]] = []  # (end, position)
    current = None
    for i, (begin, finish, owner) in enumerate(zip(start.tolist(), end.tolist(), thread.tolist(), strict=True)):
        if owner != current:
            current, open_events = owner, []
        while open_events and open_events[-1][0] <= begin:
            open_events.pop()
        if open_events and finish > open_events[-1][0]:
            fits[i] = False
            continue
        if open_events:
            parent[i] = open_events[-1][1]
        level[i] = len(open_events)
        if finish > begin:
            open_events.append((finish, int(position[i])))
    return parent, level, fits


@derived
def enclosing_operator(trace: Trace) -> Int32:
    """int32[n]: the innermost operator that contains each event of the tree, itself excluded, by nesting."""
    tree = call_tree(trace)
    operator = kinds(trace) == Kind.CPU_OP
    found = np.full(len(trace), NO_CODE, np.int32)
    # Level by level, so that the parent's answer is there before its children ask.
    rows = tree.rows
    order = rows[np.argsort(tree.depth[rows].astype(np.int16), kind="stable")]
    bounds = np.searchsorted(tree.depth[order], np.arange(int(tree.depth.max(initial=0)) + 2))
    for low, high in zip(bounds[1:-1], bounds[2:], strict=True):
        members = order[low:high]
        above = tree.parent[members]
        found[members] = np.where(operator[above], above, found[above])
    return found
