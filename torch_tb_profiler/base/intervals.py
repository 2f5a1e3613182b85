"""The interval engine: every total of time in every view comes from here.

A set of intervals is a pair of int64 arrays `(starts, ends)`, ends exclusive. *Merged* means sorted, disjoint, and
without empty intervals; functions that need merged input say so. All arithmetic is on integers, so sums are exact
to the nanosecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import distinct, sums_by_number
from torch_tb_profiler.base.compiled import column_functions

Int64 = npt.NDArray[np.int64]


class Intervals(NamedTuple):
    """Merged intervals: `starts[i] < ends[i] < starts[i + 1]`."""

    starts: Int64
    ends: Int64


_FEW_TIMES = 4
"""A set of more than this many intervals for each time is added up without a column of sums."""

NO_INTERVALS = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def merge(starts: Int64, ends: Int64) -> Intervals:
    """Return the union of arbitrary intervals; those with end <= start cover nothing."""
    if functions := column_functions(len(starts)):
        merged = functions.merge(starts, ends)
        if merged is None:
            order = np.argsort(starts, kind="stable")
            merged = functions.merge(starts[order], ends[order])
        assert merged is not None  # they are in order now
        return Intervals(*merged)
    nonempty = ends > starts
    if not nonempty.all():
        starts, ends = starts[nonempty], ends[nonempty]
    if len(starts) == 0:
        return NO_INTERVALS
    if not (starts[1:] >= starts[:-1]).all():  # most are in order already
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    # A merged interval begins where a start lies beyond all ends before it.
    first = np.empty(len(starts), np.bool_)
    first[0] = True
    np.greater(starts[1:], reach[:-1], out=first[1:])
    begin = np.flatnonzero(first)
    last = np.append(begin[1:], len(starts)) - 1
    return Intervals(starts[begin], reach[last])


def union(*sets: Intervals) -> Intervals:
    """Return the union of merged sets."""
    sets = tuple(each for each in sets if len(each.starts))
    if len(sets) < 2:
        return sets[0] if sets else NO_INTERVALS
    if functions := column_functions(sum(len(s.starts) for s in sets)):
        united = sets[0]
        for each in sets[1:]:
            united = Intervals(*functions.combine("union", united, each))
        return united
    return merge(np.concatenate([s.starts for s in sets]), np.concatenate([s.ends for s in sets]))


def total(merged: Intervals) -> int:
    """Return the covered length in ns."""
    return int((merged.ends - merged.starts).sum())


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Return the time covered by both merged sets."""
    if len(a.starts) == 0 or len(b.starts) == 0:
        return NO_INTERVALS
    if functions := column_functions(len(a.starts) + len(b.starts)):
        return Intervals(*functions.combine("intersection", a, b))
    # Interval i of `a` meets intervals lo[i]..hi[i]-1 of `b`.
    lo = np.searchsorted(b.ends, a.starts, "right")
    hi = np.searchsorted(b.starts, a.ends, "left")
    counts = np.maximum(hi - lo, 0)
    if not counts.any():
        return NO_INTERVALS
    of_a = np.repeat(np.arange(len(counts)), counts)
    offset = np.cumsum(counts) - counts
    of_b = np.arange(len(of_a)) - np.repeat(offset, counts) + np.repeat(lo, counts)
    return Intervals(np.maximum(a.starts[of_a], b.starts[of_b]), np.minimum(a.ends[of_a], b.ends[of_b]))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Return the time covered by merged `a` and not by merged `b`."""
    if len(a.starts) == 0 or len(b.starts) == 0:
        return a
    if functions := column_functions(len(a.starts) + len(b.starts)):
        return Intervals(*functions.combine("difference", a, b))
    return intersect(a, _complement(b, int(a.starts[0]), int(a.ends[-1])))


def _complement(merged: Intervals, begin: int, end: int) -> Intervals:
    starts = np.concatenate(([begin], merged.ends))
    ends = np.concatenate((merged.starts, [end]))
    nonempty = ends > starts
    return Intervals(starts[nonempty], ends[nonempty])


def covered_time_between(merged: Intervals, times: Int64) -> Int64:
    """Return the ns that a merged set covers between consecutive times, int64[k - 1].

    The k >= 1 times ascend; they may repeat.
    """
    if functions := column_functions(len(times)):
        return np.diff(functions.covered(merged.starts, merged.ends, times))
    # Intervals are searched among times, not times among intervals, because there are fewer intervals.
    first = np.searchsorted(times, merged.starts, "left")
    started = np.cumsum(np.bincount(first, minlength=len(times) + 1))[: len(times)]
    return np.diff(_covered_before(merged, times, started))


def covered_time(merged: Intervals, begins: Int64, ends: Int64) -> Int64:
    """Return the ns that a merged set covers in each window [begins[i], ends[i]), int64[k].

    Windows may overlap and come in any order; in one with end <= begin, 0 ns are covered.
    """
    ends = np.maximum(begins, ends)
    if _FEW_TIMES * len(begins) < len(merged.starts):  # the intervals are then added up once for both
        before = covered_time_before(merged, np.concatenate((begins, ends)))
        return before[len(begins) :] - before[: len(begins)]
    return covered_time_before(merged, ends) - covered_time_before(merged, begins)


def covered_time_before(merged: Intervals, times: Int64) -> Int64:
    """Return the ns that a merged set covers before each time, int64[k]."""
    if functions := column_functions(len(times)):
        return functions.covered(merged.starts, merged.ends, times)
    return _covered_before(merged, times, np.searchsorted(merged.starts, times, "right"))


def _covered_before(merged: Intervals, times: Int64, started: Int64) -> Int64:
    """Return the ns covered in (-inf, time), int64[k], given how many intervals have started at each time."""
    if len(merged.starts) == 0 or len(times) == 0:
        return np.zeros(len(times), np.int64)
    # The last interval that started may end after the time. Before the first one none does.
    excess = np.maximum(merged.ends.take(np.maximum(started - 1, 0)) - times, 0)
    excess[started == 0] = 0
    if _FEW_TIMES * len(times) < len(merged.starts):
        # What lies between the places of the times is added up without a column of the sums before each interval.
        places = distinct(np.append(started, 0))
        lengths = merged.ends[: places[-1]] - merged.starts[: places[-1]]
        sums = np.add.reduceat(lengths, places[:-1]) if len(lengths) else NO_INTERVALS.starts
        covered = np.append(0, np.cumsum(sums)).take(np.searchsorted(places, started))
    else:
        covered = np.append(0, np.cumsum(merged.ends - merged.starts)).take(started)
    covered -= excess
    return covered


class OwnedIntervals(NamedTuple):
    """Intervals of several owners, merged for each owner; owners ascend."""

    owner: Int64
    starts: Int64
    ends: Int64

    def totals(self, count: int) -> Int64:
        """Return the covered ns of the owners 0 to count - 1, int64[count]."""
        return sums_by_number(self.owner, self.ends - self.starts, count)


def totals_by_owner(owner: npt.NDArray[np.integer[Any]], starts: Int64, ends: Int64, count: int) -> Int64:
    """Return int64[count], the ns that the intervals of each owner 0 to count - 1 cover."""
    functions = column_functions(len(starts))
    totals = None if functions is None else functions.totals(owner, starts, ends, count)
    return merge_by_owner(owner, starts, ends).totals(count) if totals is None else totals


def merge_by_owner(owner: npt.NDArray[np.integer[Any]], starts: Int64, ends: Int64) -> OwnedIntervals:
    """Return the union of the intervals of each owner (a number >= 0)."""
    nonempty = ends > starts
    if not nonempty.any():
        return OwnedIntervals(NO_INTERVALS.starts, *NO_INTERVALS)
    owner_of: Int64 = owner[nonempty].astype(np.int64)
    starts, ends = starts[nonempty], ends[nonempty]
    low, high, owners = int(starts.min()), int(ends.max()), int(owner_of.max()) + 1
    if owners * (high - low + 1) < 2**63:
        # Place the owners side by side on one axis; the intervals are then nearly always in order.
        offset = owner_of * (high - low + 1) - low
        place = offset + starts
        if not (place[1:] >= place[:-1]).all():
            order = np.argsort(place, kind="stable")
            owner_of, starts, ends, offset = owner_of[order], starts[order], ends[order], offset[order]
        reach = np.maximum.accumulate(offset + ends) - offset
    else:
        order = np.lexsort((starts, owner_of))
        owner_of, starts, ends = owner_of[order], starts[order], ends[order]
        # The ends themselves could overflow, so use their ranks.
        values, place = np.unique(ends, return_inverse=True)
        reach = values[np.maximum.accumulate(place.reshape(-1) + owner_of * len(values)) - owner_of * len(values)]
    first = np.ones(len(starts), np.bool_)
    first[1:] = (owner_of[1:] != owner_of[:-1]) | (starts[1:] > reach[:-1])
    begin = np.flatnonzero(first)
    last = np.append(begin[1:], len(starts)) - 1
    return OwnedIntervals(owner_of[begin], starts[begin], reach[last])
