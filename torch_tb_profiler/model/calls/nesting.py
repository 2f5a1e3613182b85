"""Nesting of intervals by time: who contains whom, and what overlaps without nesting.

    |-- a ---------------|
      |-- b --|  |-- c --|        parent(b) = parent(c) = a, depth 1
           |-- d --|              sticks out of b, in which it begins: does not fit

Intervals of several owners (threads, tracks) lie side by side on one axis. Order: begin, longer first, position.
One of no length is the child of what contains its instant, and contains nothing.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.calls.compiled import active_functions
from torch_tb_profiler.model.trace import Bool, Int32, Int64

_ROUNDS = 5
"""How often what seems to stick out is taken out before all is nested one by one; real traces need 1 to 4."""


def place_on_one_axis(start: Int64, end: Int64, owner: Int32) -> tuple[Int64, Int64]:
    """Begins and finishes with the owners side by side, so that one sort serves all."""
    if len(start) == 0:
        return start, end
    base = int(start.min())
    span = int(end.max()) - base + 1
    if span * (int(owner.max()) + 1) > np.iinfo(np.int64).max:
        # Absurd times would overflow; nesting depends on their order alone.
        ranks = np.unique(np.concatenate([start, end]), return_inverse=True)[1].ravel()
        start, end = np.split(ranks, 2)
        base, span = 0, len(ranks)
    shift = owner * np.int64(span) - base
    return start + shift, end + shift


def nesting_order(begin: Int64, finish: Int64) -> Int64:
    """int64[k]: positions ordered by begin, longer first, position."""
    order = np.argsort(begin, kind="stable")
    # One key sorts several times faster than two; only equal begins then need the finish.
    equal = np.diff(begin[order]) == 0
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        group = order[tied]
        order[tied] = group[np.lexsort((-finish[group], begin[group]))]
    return order


def nest(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
    """(parent, depth, fits) of intervals in nesting order; parents as positions, -1 for roots.

    `fits` is False for what sticks out of the interval it begins in; its parent and depth mean nothing.
    """
    in_c = active_functions()
    return in_c.nest(begin, finish) if in_c else _nest(begin, finish)


def _nest(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
    fits = np.ones(len(begin), np.bool_)
    parent, depth = _by_sorting(begin, finish)
    out = _seem_to_stick_out(begin, finish, parent)
    if len(out) == 0:
        return parent, depth, fits
    kept = np.arange(len(begin))
    for _ in range(_ROUNDS):
        fits[kept[out]] = False
        kept = np.flatnonzero(fits)
        inner = begin[kept], finish[kept]
        parent, depth = _by_sorting(*inner)
        out = _seem_to_stick_out(*inner, parent)
        if len(out) == 0:
            break
    else:
        return _one_by_one(begin, finish)
    parents, depths = np.full(len(begin), -1, np.int64), np.zeros(len(begin), np.int64)
    parents[kept], depths[kept] = np.where(parent >= 0, kept[parent], -1), depth
    if not _all_stick_out(begin, finish, parents, kept, np.flatnonzero(~fits)):
        return _one_by_one(begin, finish)
    return parents, depths, fits


def _by_sorting(begin: Int64, finish: Int64) -> tuple[Int64, Int64]:
    """(parent, depth), right wherever intervals nest.

    depth = longer-than-zero intervals that began before and have not ended; the parent is the last of
    depth - 1 before. No loop over intervals: both come from sorting.
    """
    lasting = finish > begin
    depth: Int64 = np.cumsum(lasting)
    depth -= lasting
    # The ends are nearly sorted: a stable sort then is ten times faster than quicksort.
    ended = finish[lasting]
    ended.sort(kind="stable")
    depth -= np.searchsorted(ended, begin, "right")
    deepest = int(depth.max(initial=0))
    parent = np.full(len(begin), -1, np.int64)
    by_depth = np.argsort(depth.astype(np.int16 if deepest < 2**15 else np.int64), kind="stable")
    bounds = np.searchsorted(depth[by_depth], np.arange(deepest + 2))
    above = np.empty(0, np.int64)
    for level in range(deepest + 1):
        members = by_depth[bounds[level] : bounds[level + 1]]
        if level:
            parent[members] = above[np.searchsorted(above, members) - 1]
        above = members[lasting[members]]
    return parent, depth


def _seem_to_stick_out(begin: Int64, finish: Int64, parent: Int64) -> list[int]:
    """Positions that stick out of a parent that does not. None: all intervals nest.

    A guess: what sticks out counts among what is open and thus misleads the search for the parents inside it.
    """
    sticks = np.flatnonzero((parent >= 0) & (finish > finish[np.maximum(parent, 0)]))
    around = parent[sticks]
    overlaps = finish[around] > begin[sticks]
    out: dict[int, None] = {}
    for position, outer in zip(sticks[overlaps].tolist(), around[overlaps].tolist(), strict=True):
        if outer not in out:
            out[position] = None
    return list(out)


def _all_stick_out(begin: Int64, finish: Int64, parent: Int64, kept: Int64, out: Int64) -> bool:
    """True if each interval taken out sticks out of one that was kept, and so is out by definition.

    The intervals kept nest; then they are those that the definition keeps, by induction over the order.
    """
    around = np.append(-1, kept)[np.searchsorted(kept, out)]
    while (climbing := (around >= 0) & (finish[around] <= begin[out])).any():
        around[climbing] = parent[around[climbing]]
    return bool(((around >= 0) & (finish[around] < finish[out])).all())


def _one_by_one(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
    """The definition itself, interval by interval: slower, and right whatever overlaps."""
    parents, depths, fits = [], [], []
    open_ends, open_positions = [int(finish.max(initial=0)) + 1], [-1]
    for position, (start, end) in enumerate(zip(begin.tolist(), finish.tolist(), strict=True)):
        while open_ends[-1] <= start:
            open_ends.pop()
            open_positions.pop()
        fits.append(end <= open_ends[-1])
        parents.append(open_positions[-1])
        depths.append(len(open_ends) - 1)
        if start < end <= open_ends[-1]:
            open_ends.append(end)
            open_positions.append(position)
    return np.array(parents, np.int64), np.array(depths, np.int64), np.array(fits, np.bool_)
