"""What an average step is made of."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown
from torch_tb_profiler.model.trace import Bool, Float64

OUTLYING = 0.2
"""An outlier is further from the median step than this share of it, ..."""

SCATTER = 5.0
"""... than this many median deviations, ..."""

FEW = 0.25
"""... and one of at most this share of the steps."""


class AverageStep(msgspec.Struct, frozen=True):
    """Means over the complete steps, ns: of the duration and of the time in each category.

    outliers  positions in the steps of those whose duration is far from that of all others
    typical   mean duration without these
    """

    duration: float
    categories: Mapping[str, float]
    steps: int
    outliers: tuple[int, ...]
    typical: float


def average_step(breakdown: Breakdown) -> AverageStep | None:
    """None without a complete step."""
    complete = breakdown.steps.complete
    if not complete.any():
        return None
    categories = {name: float(breakdown.times[name][complete].mean()) for name in CATEGORIES}
    which = np.flatnonzero(complete)
    durations = breakdown.durations[complete].astype(np.float64)
    far = _outlying(durations)
    return AverageStep(
        float(durations.mean()),
        categories,
        len(which),
        tuple(which[far].tolist()),
        float(durations[~far].mean()),
    )


def _outlying(durations: Float64) -> Bool:
    """bool[steps]: by deviations from the median, in median absolute deviations (Hampel 1974)."""
    middle = np.median(durations)
    deviations = np.abs(durations - middle)
    far: Bool = deviations > max(OUTLYING * float(middle), SCATTER * float(np.median(deviations)))
    return far if far.mean() <= FEW else np.zeros(len(durations), np.bool_)
