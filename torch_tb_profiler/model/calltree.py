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
    begin, end = _one_axis(trace.events.start[rows], finish[rows], trace.events.thread[rows])
    order = np.argsort(begin, kind="stable")
    # One key sorts several times faster than three; only equal starts then need the length.
    equal = np.diff(begin[order]) == 0
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        group = order[tied]
        order[tied] = group[np.lexsort((-end[group], begin[group]))]
    return rows[order]


def _one_axis(start: Int64, end: Int64, owner: Int32) -> tuple[Int64, Int64]:
    """Starts and ends with the owners side by side on one axis, so that one sort serves all."""
    base = int(start.min())
    span = int(end.max()) - base + 1
    if span * (int(owner.max()) + 1) > np.iinfo(np.int64).max:
        # Absurd times would overflow; nesting depends on their order alone.
        ranks = np.unique(np.concatenate([start, end]), return_inverse=True)[1]
        start, end = np.split(ranks, 2)
        base, span = 0, len(ranks)
    shift = owner * np.int64(span) - base
    return start + shift, end + shift


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
    if len(start) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    begin, finish = _one_axis(start, end, owner)
    above, level = _nest_sorted(begin, finish)
    fits = np.ones(len(start), np.bool_)
    broken = _broken_groups(finish, above, level)
    if broken.any():
        bad = np.flatnonzero(broken)
        above[bad], level[bad], fits[bad] = _stack(begin[bad], finish[bad], bad)
    return above, level, fits


def _nest_sorted(begin: Int64, finish: Int64) -> tuple[Int64, Int64]:
    """(parent, depth) of arranged intervals as positions, right wherever they nest.

    depth = longer-than-zero intervals that began before and have not ended; the parent is the last of
    depth - 1 before. No loop over events: both come from sorting.
    """
    lasting = finish > begin
    began: Int64 = np.cumsum(lasting) - lasting
    ended = np.searchsorted(np.sort(finish[lasting]), begin, "right")
    level = began - ended
    deepest = int(level.max())
    parent = np.full(len(begin), -1, np.int64)
    by_level = np.argsort(level.astype(np.int16 if deepest < 2**15 else np.int64), kind="stable")
    bounds = np.searchsorted(level[by_level], np.arange(deepest + 2))
    above = np.empty(0, np.int64)
    for depth in range(deepest + 1):
        members = by_level[bounds[depth] : bounds[depth + 1]]
        if depth:
            at = np.searchsorted(above, members) - 1
            parent[members] = np.where(at >= 0, above[at], -1)
        above = members[lasting[members]]
    return parent, level


def _broken_groups(end: Int64, parent: Int64, level: Int64) -> Bool:
    """bool[k]: members of a root's group in which some event sticks out of its parent."""
    has_parent = parent >= 0
    broken = has_parent & (end > end[np.where(has_parent, parent, 0)])
    broken |= (level > 0) & ~has_parent
    broken |= level < 0
    if not broken.any():
        return broken
    group = np.cumsum(level <= 0)
    hit = np.zeros(int(group[-1]) + 1, np.bool_)
    hit[group[broken]] = True
    return hit[group]


def _stack(begin: Int64, finish: Int64, position: Int64) -> tuple[Int64, Int64, Bool]:
    """The definition itself, event by event, for the groups where the sorted way cannot be trusted.

    Returns (parent as a position, depth, whether it nests) of intervals on one axis.
    """
    parents, levels, fits = [], [], []
    open_ends, open_positions = [int(finish.max()) + 1], [-1]
    for start, end, place in zip(begin.tolist(), finish.tolist(), position.tolist(), strict=True):
        while open_ends[-1] <= start:
            open_ends.pop()
            open_positions.pop()
        fits.append(end <= open_ends[-1])
        parents.append(open_positions[-1])
        levels.append(len(open_ends) - 1)
        if start < end <= open_ends[-1]:
            open_ends.append(end)
            open_positions.append(place)
    return np.array(parents, np.int64), np.array(levels, np.int64), np.array(fits, np.bool_)


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
