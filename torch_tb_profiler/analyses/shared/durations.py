"""How the durations of some calls are spread, and which of them stand out."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Float64, Int64

BINS = 40
OUTLIERS = 20
LONGEST = 10
FENCE = 3.0
"""Beyond the quartiles by this many interquartile ranges a value is far out (Tukey, Exploratory Data Analysis)."""


class Spread(msgspec.Struct, frozen=True):
    """Durations in ns.

    edges     float64[b + 1]  of equally wide bins; they span all values but the outliers, which lie in the last
    counts    int64[b]
    outliers  int64[o]  positions of the values far out, longest first, at most OUTLIERS
    far_out   how many values are far out
    longest   int64[l]  positions of the longest values, longest first, at most LONGEST
    """

    edges: Float64
    counts: Int64
    median: float
    p95: float
    outliers: Int64
    far_out: int
    longest: Int64


def spread(values: Int64) -> Spread:
    """The distribution of at least one value."""
    low, quarter, median, third, p95, high = np.percentile(values, [0, 25, 50, 75, 95, 100])
    fence = third + FENCE * (third - quarter)
    far = np.flatnonzero(values > fence)
    # Few values that differ by chance have no outliers worth the name.
    far = far if len(values) >= 8 else far[:0]
    top = values[values <= fence].max() if len(far) else high
    edges = np.linspace(low, max(top, low + 1), BINS + 1)
    counts, _ = np.histogram(np.minimum(values, edges[-1]), edges)
    order = far[np.argsort(-values[far], kind="stable")]
    longest = np.argsort(-values, kind="stable")[:LONGEST]
    return Spread(edges, counts, float(median), float(p95), order[:OUTLIERS], len(far), longest)
