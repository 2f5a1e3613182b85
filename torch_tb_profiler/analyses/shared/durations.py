"""How the durations of calls are distributed, and which are outliers."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Float64, Int64

HISTOGRAM_BINS, MAX_OUTLIERS, MAX_LONGEST = 40, 20, 10
"""Bars of the histogram, and most outliers and longest calls that are listed: what fits beside a table."""

MIN_VALUES_FOR_OUTLIERS = 8
"""Among fewer values, which differ by chance, nothing is an outlier."""

FENCE_RANGES = 3.0
"""Interquartile ranges beyond the quartiles from which a value is far out (Tukey, Exploratory Data Analysis)."""


class DurationDistribution(msgspec.Struct, frozen=True):
    """Durations in ns.

    edges     float64[b + 1]  of equally wide bins; they span all values but the outliers, which lie in the last
    counts    int64[b]
    outliers  int64[o]  positions of the values far out, longest first, at most MAX_OUTLIERS
    far_out   how many values are far out
    longest   int64[l]  positions of the longest values, longest first, at most MAX_LONGEST
    """

    edges: Float64
    counts: Int64
    median: float
    p95: float
    outliers: Int64
    far_out: int
    longest: Int64


def duration_distribution(values: Int64) -> DurationDistribution:
    """Compute the distribution of one value or more."""
    low, quarter, median, third, p95, high = np.percentile(values, [0, 25, 50, 75, 95, 100])
    fence = third + FENCE_RANGES * (third - quarter)
    far = np.flatnonzero(values > fence)
    far = far if len(values) >= MIN_VALUES_FOR_OUTLIERS else far[:0]
    top = values[values <= fence].max() if len(far) else high
    edges = np.linspace(low, max(top, low + 1), HISTOGRAM_BINS + 1)
    counts, _ = np.histogram(np.minimum(values, edges[-1]), edges)
    order = far[np.argsort(-values[far], kind="stable")]
    longest = np.argsort(-values, kind="stable")[:MAX_LONGEST]
    return DurationDistribution(edges, counts, float(median), float(p95), order[:MAX_OUTLIERS], len(far), longest)
