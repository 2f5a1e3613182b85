"""An exported memory timeline: bytes per category over time, and at the peak of all together."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import buckets, window
from torch_tb_profiler.model.memory.timeline import CATEGORIES, Timeline
from torch_tb_profiler.model.trace import Int64


class Stacked(msgspec.Struct, frozen=True):
    """Bytes per category.

    used      int64[c]     indices of the categories that occur
    time      int64[p]     ns
    sizes     int64[c, p]  at the moment of the bucket when all together are greatest
    start     int64[c]     before the first timed event
    peak, peak_time, peak_sizes  all together at most; the first time if it is reached again
    """

    used: Int64
    time: Int64
    sizes: Int64
    start: Int64
    peak: int
    peak_time: int
    peak_sizes: Int64


def stacked(timeline: Timeline, points: int) -> Stacked:
    """At most `points` + 1 points; with fewer events, all of them."""
    used = np.flatnonzero(np.bincount(timeline.category, minlength=len(CATEGORIES)))
    changes = np.where(timeline.category == used[:, None], timeline.size, 0)
    sizes = np.cumsum(changes, axis=1)
    before = int(np.searchsorted(timeline.time, 0))
    start = sizes[:, before - 1] if before else np.zeros(len(used), np.int64)
    first = max(before - 1, 0)  # what is there before counts from the first event that has a time
    time, sizes = timeline.time[first:], sizes[:, first:]
    if before and len(time) > 1:
        time = np.maximum(time, time[1])
    total = sizes.sum(axis=0)
    peak = int(total.argmax())
    chosen = _highest(time, total, points)
    return Stacked(used, time[chosen], sizes[:, chosen], start, int(total[peak]), int(time[peak]), sizes[:, peak])


def _highest(time: Int64, total: Int64, points: int) -> Int64:
    """Positions: all, or of each bucket with events the first at which the total is greatest; and the last."""
    if len(time) <= points:
        return np.arange(len(time))
    part = window(time, None, None)
    bounds = np.searchsorted(time, buckets(part, points), "left")
    begins = bounds[:-1][bounds[1:] > bounds[:-1]]
    which = np.searchsorted(begins, np.arange(len(time)), "right") - 1
    most = np.maximum.reduceat(total, begins)
    at = np.where(total == most[which], np.arange(len(time)), len(time))
    return np.union1d(np.minimum.reduceat(at, begins), [len(time) - 1])
