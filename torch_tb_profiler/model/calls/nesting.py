"""Nesting of intervals by time: which interval contains which, and which overlap without nesting.

    |-- a ---------------|
      |-- b --|  |-- c --|        parent(b) = parent(c) = a, depth 1
           |-- d --|              begins in b but outlasts it: doesn't fit

Intervals of several owners (threads, tracks) lie side by side on one axis. Order: begin, longer first, position.
An interval of length 0 is a child of the one that contains its instant, and contains nothing.

The definitions are in Python; a session may load faster functions in C (`use_compiled_functions`).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Bool, Int32, Int64

_MAX_ROUNDS = 5
"""Rounds of removing intervals that don't fit, before nesting falls back to a loop; real traces need 1 to 4."""


class CompiledFunctions(msgspec.Struct, frozen=True):
    """Functions in C with the results of those in Python.

    nest       `nest`
    tree       `calltree.build_call_tree`: (rows, start, end, thread of all events, number of threads) -> (rows,
               parent, depth, lane)
    changes    `calltree.running_slices`: (rows of one thread that nest, start, end, parent of all events) ->
               (times, the row that runs before each, and after the last)
    enclosing  `calltree.enclosing_operators`: (rows, parent, whether each event is an operator) -> row of the
               innermost operator around each event
    """

    nest: Callable[[Int64, Int64], tuple[Int64, Int64, Bool]]
    tree: Callable[[Int32, Int64, Int64, Int32, int], tuple[Int32, Int32, Int32, Int32]]
    changes: Callable[[Int32, Int64, Int64, Int32], tuple[Int64, Int32]]
    enclosing: Callable[[Int32, Int32, Bool], Int32]


_functions: CompiledFunctions | None = None


def use_compiled_functions(functions: CompiledFunctions | None) -> None:
    """Use these functions from now on, or those in Python if None."""
    global _functions
    _functions = functions


def active_functions() -> CompiledFunctions | None:
    """Return the functions in C that are in use, or None."""
    return _functions


def place_on_one_axis(start: Int64, end: Int64, owner: Int32) -> tuple[Int64, Int64]:
    """Return begins and ends on one axis on which the owners lie side by side, so that one sort serves all."""
    if len(start) == 0:
        return start, end
    base = int(start.min())
    span = int(end.max()) - base + 1
    if span * (int(owner.max()) + 1) > np.iinfo(np.int64).max:
        # Damaged times would overflow; nesting depends only on their order.
        ranks = np.unique(np.concatenate([start, end]), return_inverse=True)[1].ravel()
        start, end = np.split(ranks, 2)
        base, span = 0, len(ranks)
    shift = owner * np.int64(span) - base
    return start + shift, end + shift


def nesting_order(begin: Int64, finish: Int64) -> Int64:
    """Return positions in nesting order, int64[k]: by begin, longer first, position."""
    order = np.argsort(begin, kind="stable")
    # Sorting by one key is several times faster than by two; only equal begins need the finish.
    equal = np.diff(begin[order]) == 0
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        group = order[tied]
        order[tied] = group[np.lexsort((-finish[group], begin[group]))]
    return order


def nest(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
    """Return (parent, depth, fits) of intervals in nesting order; parents as positions, -1 for roots.

    `fits` is False for intervals that outlast the one they begin in; their parent and depth are undefined.
    """
    return _functions.nest(begin, finish) if _functions else _nest(begin, finish)


def _nest(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
    fits = np.ones(len(begin), np.bool_)
    parent, depth = _nest_by_sorting(begin, finish)
    misfits = _apparent_misfits(begin, finish, parent)
    if len(misfits) == 0:
        return parent, depth, fits
    fitting = np.arange(len(begin))
    for _ in range(_MAX_ROUNDS):
        fits[fitting[misfits]] = False
        fitting = np.flatnonzero(fits)
        inner = begin[fitting], finish[fitting]
        parent, depth = _nest_by_sorting(*inner)
        misfits = _apparent_misfits(*inner, parent)
        if len(misfits) == 0:
            break
    else:
        return _nest_in_loop(begin, finish)
    parents, depths = np.full(len(begin), -1, np.int64), np.zeros(len(begin), np.int64)
    parents[fitting], depths[fitting] = np.where(parent >= 0, fitting[parent], -1), depth
    if not _are_misfits(begin, finish, parents, fitting, np.flatnonzero(~fits)):
        return _nest_in_loop(begin, finish)
    return parents, depths, fits


def _nest_by_sorting(begin: Int64, finish: Int64) -> tuple[Int64, Int64]:
    """Return (parent, depth), which are right wherever intervals nest.

    The depth is the number of intervals, longer than 0, that began before and haven't ended; the parent is the
    last one before with depth - 1. Both come from sorting, without a loop over intervals.
    """
    lasting = finish > begin
    depth: Int64 = np.cumsum(lasting)
    depth -= lasting
    # Ends are nearly sorted, for which a stable sort is ten times faster than quicksort.
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


def _apparent_misfits(begin: Int64, finish: Int64, parent: Int64) -> list[int]:
    """Return positions of intervals that outlast a fitting parent; [] if all intervals nest.

    This is a guess, as misfits count as open intervals and so mislead the search for the parents inside them.
    """
    outlasting = np.flatnonzero((parent >= 0) & (finish > finish[np.maximum(parent, 0)]))
    around = parent[outlasting]
    overlaps = finish[around] > begin[outlasting]
    misfits: dict[int, None] = {}
    for position, outer in zip(outlasting[overlaps].tolist(), around[overlaps].tolist(), strict=True):
        if outer not in misfits:
            misfits[position] = None
    return list(misfits)


def _are_misfits(begin: Int64, finish: Int64, parent: Int64, fitting: Int64, misfits: Int64) -> bool:
    """Return whether each of `misfits` outlasts one of `fitting`, and so doesn't fit by definition.

    The fitting intervals nest. By induction over the order, they are then those that fit by definition.
    """
    around = np.append(-1, fitting)[np.searchsorted(fitting, misfits)]
    while (climbing := (around >= 0) & (finish[around] <= begin[misfits])).any():
        around[climbing] = parent[around[climbing]]
    return bool(((around >= 0) & (finish[around] < finish[misfits])).all())


def _nest_in_loop(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
    """Nest interval by interval, as defined: slower, but right whatever overlaps."""
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
