"""Nesting of intervals by time: who contains whom, and what overlaps without nesting.

    |-- a ---------------|
      |-- b --|  |-- c --|        parent(b) = parent(c) = a, depth 1
           |-- d --|              sticks out of b, in which it begins: does not fit

Intervals of several owners (threads, tracks) lie side by side on one axis. Order: begin, longer first, position.
One of no length is the child of what contains its instant, and contains nothing.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import Bool, Int32, Int64

_ONE_BY_ONE = 0.1
"""This share may be nested one by one, which is slow; before more are, what surely sticks out goes first."""

_ROUNDS = 4
"""How often that is tried: a chain of intervals that each overlap the next would take a round per link."""


def one_axis(start: Int64, end: Int64, owner: Int32) -> tuple[Int64, Int64]:
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
    count, kept = len(begin), np.arange(len(begin))
    everything = begin, finish
    for turn in range(_ROUNDS + 1):
        parent, depth = _by_sorting(begin, finish)
        heads, doubtful = _sticking_out(begin, finish, parent)
        if doubtful <= _ONE_BY_ONE * count or turn == _ROUNDS:
            break
        kept = np.delete(kept, heads)
        begin, finish = everything[0][kept], everything[1][kept]
    inside = np.ones(len(kept), np.bool_)
    done = 0
    for first in heads.tolist():
        if first >= done:
            done = _one_by_one(begin, finish, first, parent, depth, inside)
    if len(kept) == count:
        return parent, depth, inside
    parents, depths, fits = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    parents[kept], depths[kept], fits[kept] = np.where(parent >= 0, kept[parent], -1), depth, inside
    return parents, depths, fits


def _by_sorting(begin: Int64, finish: Int64) -> tuple[Int64, Int64]:
    """(parent, depth), right wherever intervals nest.

    depth = longer-than-zero intervals that began before and have not ended; the parent is the last of
    depth - 1 before. No loop over intervals: both come from sorting.
    """
    lasting = finish > begin
    began: Int64 = np.cumsum(lasting) - lasting
    ended = np.searchsorted(np.sort(finish[lasting]), begin, "right")
    depth = began - ended
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


def _sticking_out(begin: Int64, finish: Int64, parent: Int64) -> tuple[Int64, int]:
    """(positions that stick out while nothing else that does is open, how many intervals begin while one is)."""
    sticks = np.flatnonzero((parent >= 0) & (finish > finish[np.maximum(parent, 0)]))
    if len(sticks) == 0:
        return sticks, 0
    reach = np.maximum.accumulate(finish[sticks])
    first = np.flatnonzero(np.append(True, begin[sticks[1:]] >= reach[:-1]))
    until = reach[np.append(first[1:], len(sticks)) - 1]
    heads = sticks[first]
    return heads, int((np.searchsorted(begin, until, "left") - heads).sum())


def _one_by_one(begin: Int64, finish: Int64, first: int, parent: Int64, depth: Int64, fits: Bool) -> int:
    """The definition itself, interval by interval, for as long as something that sticks out is open.

    Only there can sorting be wrong: it counts what sticks out among what is open. Begins at `first`, which sticks
    out while nothing before does; writes parent, depth and fits; returns where it stopped.
    """
    open_intervals: list[tuple[int, int]] = []  # (finish, position), innermost last
    ancestor = int(parent[first])
    while ancestor >= 0:
        open_intervals.append((int(finish[ancestor]), ancestor))
        ancestor = int(parent[ancestor])
    open_intervals.reverse()
    at, reach = first, int(finish[first])
    while at < len(begin) and begin[at] < reach:
        stop = int(np.searchsorted(begin, reach, "left"))
        for start, end in zip(begin[at:stop].tolist(), finish[at:stop].tolist(), strict=True):
            while open_intervals and open_intervals[-1][0] <= start:
                open_intervals.pop()
            if open_intervals and end > open_intervals[-1][0]:
                fits[at] = False
                reach = max(reach, end)
            else:
                parent[at] = open_intervals[-1][1] if open_intervals else -1
                if depth[at] != len(open_intervals):
                    depth[at] = len(open_intervals)
                    reach = max(reach, end)  # what lies inside looked for its parent at another depth
                if end > start:
                    open_intervals.append((end, at))
            at += 1
    return at
