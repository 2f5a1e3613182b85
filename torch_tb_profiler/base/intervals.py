"""The one interval engine: every total of time in every view comes from here.

A set of intervals is a pair of int64 arrays `(starts, ends)`, ends exclusive. *Merged* means sorted,
disjoint and without empty intervals; functions that need merged input say so. All arithmetic is on
integers, so sums are exact to the nanosecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


class Intervals(NamedTuple):
    """Merged, sorted, disjoint, non-empty intervals; `starts[i] < ends[i] < starts[i + 1]`."""

    starts: Int64
    ends: Int64


NO_INTERVALS = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def merge(starts: Int64, ends: Int64) -> Intervals:
    """Union of arbitrary intervals; those with end <= start cover nothing and vanish."""
    keep = ends > starts
    if not keep.all():
        starts, ends = starts[keep], ends[keep]
    if len(starts) == 0:
        return NO_INTERVALS
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    # A new interval begins where the start lies beyond everything before it.
    first = np.empty(len(starts), np.bool_)
    first[0] = True
    np.greater(starts[1:], reach[:-1], out=first[1:])
    begin = np.flatnonzero(first)
    last = np.append(begin[1:], len(starts)) - 1
    return Intervals(starts[begin], reach[last])


def union(*sets: Intervals) -> Intervals:
    """Union of merged sets."""
    return merge(
        np.concatenate([s.starts for s in sets]) if sets else NO_INTERVALS.starts,
        np.concatenate([s.ends for s in sets]) if sets else NO_INTERVALS.ends,
    )


def total(merged: Intervals) -> int:
    """Covered length in ns."""
    return int((merged.ends - merged.starts).sum())


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Time covered by both merged sets."""
    if len(a.starts) == 0 or len(b.starts) == 0:
        return NO_INTERVALS
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
    """Time covered by merged `a` and not by merged `b`."""
    if len(a.starts) == 0 or len(b.starts) == 0:
        return a
    return intersect(a, _complement(b, int(a.starts[0]), int(a.ends[-1])))


def _complement(merged: Intervals, begin: int, end: int) -> Intervals:
    starts = np.concatenate(([begin], merged.ends))
    ends = np.concatenate((merged.starts, [end]))
    keep = ends > starts
    return Intervals(starts[keep], ends[keep])


def covered_time_between(merged: Intervals, times: Int64) -> Int64:
    """int64[k - 1]: how much of each stretch from one time to the next the merged set covers, in ns.

    The k >= 1 times ascend; they may repeat.
    """
    # Where each interval begins among the times, rather than where each time lies: there are fewer intervals.
    first = np.searchsorted(times, merged.starts, "left")
    begun = np.cumsum(np.bincount(first, minlength=len(times) + 1))[: len(times)]
    return np.diff(_covered_before(merged, times, begun))


def covered_time(merged: Intervals, begins: Int64, ends: Int64) -> Int64:
    """int64[k]: how much of each window [begins[i], ends[i]) the merged set covers, in ns.

    Windows may overlap and come in any order; one with end <= begin covers 0.
    """
    return covered_time_before(merged, np.maximum(begins, ends)) - covered_time_before(merged, begins)


def covered_time_before(merged: Intervals, times: Int64) -> Int64:
    """int64[k]: how much of the time before each of these the merged set covers, in ns."""
    return _covered_before(merged, times, np.searchsorted(merged.starts, times, "right"))


def _covered_before(merged: Intervals, times: Int64, begun: Int64) -> Int64:
    """int64[k]: covered length in (-inf, time), where so many intervals have begun at each time."""
    if len(merged.starts) == 0:
        return np.zeros(len(times), np.int64)
    lengths = merged.ends - merged.starts
    prefix = np.concatenate(([0], np.cumsum(lengths)))
    before = prefix[begun]
    # The last interval that began may reach beyond the time.
    over = np.where(begun > 0, merged.ends[begun - 1] - times, 0)
    return before - np.maximum(over, 0)


class OwnedIntervals(NamedTuple):
    """Intervals of several owners: those of each owner merged, owners ascending."""

    owner: Int64
    starts: Int64
    ends: Int64

    def totals(self, count: int) -> Int64:
        """int64[count]: covered length of each owner in ns."""
        sums = np.zeros(count, np.int64)
        np.add.at(sums, self.owner, self.ends - self.starts)
        return sums


def merge_by_owner(owner: npt.NDArray[np.integer[Any]], starts: Int64, ends: Int64) -> OwnedIntervals:
    """Union of the intervals of each owner (a number >= 0) by itself."""
    keep = ends > starts
    if not keep.any():
        return OwnedIntervals(NO_INTERVALS.starts, *NO_INTERVALS)
    whose: Int64 = owner[keep].astype(np.int64)
    starts, ends = starts[keep], ends[keep]
    low, high, owners = int(starts.min()), int(ends.max()), int(whose.max()) + 1
    if owners * (high - low + 1) < 2**63:
        # On one line, a stretch for each owner: nearly always in order already.
        line = whose * (high - low + 1) - low
        place = line + starts
        if not (place[1:] >= place[:-1]).all():
            order = np.argsort(place, kind="stable")
            whose, starts, ends, line = whose[order], starts[order], ends[order], line[order]
        reach = np.maximum.accumulate(line + ends) - line
    else:
        order = np.lexsort((starts, whose))
        whose, starts, ends = whose[order], starts[order], ends[order]
        # Ranks of the ends instead of the ends themselves, so that no number is too large.
        values, place = np.unique(ends, return_inverse=True)
        reach = values[np.maximum.accumulate(place.reshape(-1) + whose * len(values)) - whose * len(values)]
    first = np.ones(len(starts), np.bool_)
    first[1:] = (whose[1:] != whose[:-1]) | (starts[1:] > reach[:-1])
    begin = np.flatnonzero(first)
    last = np.append(begin[1:], len(starts)) - 1
    return OwnedIntervals(whose[begin], starts[begin], reach[last])
