"""An exported memory timeline: bytes per category over time, and at the peak of their sum."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import find_records, window_bucket_edges
from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.model.memory.exports import CATEGORIES, RecordedTimeline
from torch_tb_profiler.model.trace import Int64


class StackedCategories(msgspec.Struct, frozen=True):
    """Bytes per category over time.

    categories  the c that occur, in the order of `CATEGORIES`
    begin, end  of the timed events, ns
    time        float64[p] ns, packed
    sizes       per category float64[p], packed: bytes when the sum over the categories peaks in the bucket
    start       int64[c]   before the first timed event
    peak, peak_time, peak_sizes  largest sum, when it is first reached, and the bytes per category then
    """

    categories: tuple[str, ...]
    begin: int
    end: int
    time: bytes
    sizes: tuple[bytes, ...]
    start: Int64
    peak: int
    peak_time: int
    peak_sizes: Int64


def stack_categories(timeline: RecordedTimeline, points: int) -> StackedCategories:
    """Stack the categories at no more than `points` + 1 points; with fewer events, at all of them."""
    used = np.flatnonzero(np.bincount(timeline.category, minlength=len(CATEGORIES)))
    changes = np.where(timeline.category == used[:, None], timeline.size, 0)
    sizes = np.cumsum(changes, axis=1)
    before = int(np.searchsorted(timeline.time, 0))
    start = sizes[:, before - 1] if before else np.zeros(len(used), np.int64)
    first = max(before - 1, 0)  # bytes from before count from the first event that has a time
    time, sizes = timeline.time[first:], sizes[:, first:]
    if before and len(time) > 1:
        time = np.maximum(time, time[1])
    total = sizes.sum(axis=0)
    peak = int(total.argmax())
    chosen = _choose_peak_positions(time, total, points)
    return StackedCategories(
        categories=tuple(CATEGORIES[code] for code in used.tolist()),
        begin=int(time[0]),
        end=int(time[-1]),
        time=float64_bytes(time[chosen]),
        sizes=tuple(float64_bytes(row) for row in sizes[:, chosen]),
        start=start,
        peak=int(total[peak]),
        peak_time=int(time[peak]),
        peak_sizes=sizes[:, peak],
    )


def _choose_peak_positions(time: Int64, total: Int64, points: int) -> Int64:
    """Return the positions to draw: all, or the first peak of each bucket with events, and the last."""
    if len(time) <= points:
        return np.arange(len(time))
    window = find_records(time, None, None)
    bounds = np.searchsorted(time, window_bucket_edges(window, points), "left")
    begins = bounds[:-1][bounds[1:] > bounds[:-1]]
    which = np.searchsorted(begins, np.arange(len(time)), "right") - 1
    peaks = np.maximum.reduceat(total, begins)
    candidates = np.where(total == peaks[which], np.arange(len(time)), len(time))
    return np.union1d(np.minimum.reduceat(candidates, begins), [len(time) - 1])
