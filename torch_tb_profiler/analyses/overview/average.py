"""What an average step is made of."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.model.trace import Bool, Float64, Int64

OUTLYING = 0.2
"""An outlier is further from the median step than this share of it, ..."""

SCATTER = 5.0
"""... than this many median deviations, ..."""

FEW = 0.25
"""... and one of at most this share of the steps."""


DEVICE_WORK = ("kernel", "memcpy", "memset", "communication")


class AverageStep(msgspec.Struct, frozen=True):
    """Means over the complete steps, ns: of the duration and of the time in each category.

    outliers  positions in the steps of those whose duration is far from that of all others
    filling   whether the first step holds the start of the pipeline: the host ran it like the others and the
              device worked no more in it, but runs behind the host from then on, which its end includes
    typical   mean duration without these, so the time from step to step
    """

    duration: float
    categories: Mapping[str, float]
    steps: int
    outliers: tuple[int, ...]
    filling: bool
    typical: float


def average_step(breakdown: Breakdown) -> AverageStep | None:
    """None without a complete step."""
    complete = breakdown.steps.complete
    if not complete.any():
        return None
    categories = {name: float(breakdown.times[name][complete].mean()) for name in CATEGORIES}
    which = np.flatnonzero(complete)
    durations = breakdown.durations[complete].astype(np.float64)
    filling = _filling(breakdown)
    rest = which[1:] if filling else which
    others = durations[1:] if filling else durations
    far = _outlying(others)
    return AverageStep(
        float(durations.mean()),
        categories,
        len(which),
        tuple(rest[far].tolist()),
        filling,
        float(others[~far].mean()),
    )


def _filling(breakdown: Breakdown) -> bool:
    """Longer than the others by more than an outlier is, with neither the host nor the device to blame for it."""
    spans = breakdown.steps
    if np.count_nonzero(spans.complete) < 3 or not spans.complete[0]:
        return False

    def like_the_others(times: Int64) -> bool:
        return bool(times[0] <= (1 + OUTLYING) * median(times[1:][spans.complete[1:]]))

    worked: Int64 = np.sum([breakdown.times[name] for name in DEVICE_WORK], axis=0)
    alike = like_the_others(spans.host_ends - spans.host_starts) and like_the_others(worked)
    return alike and bool(worked[0]) and not like_the_others(breakdown.durations)


def _outlying(durations: Float64) -> Bool:
    """bool[steps]: by deviations from the median, in median absolute deviations (Hampel 1974)."""
    middle = median(durations)
    deviations = np.abs(durations - middle)
    far: Bool = deviations > max(OUTLYING * float(middle), SCATTER * median(deviations))
    return far if far.mean() <= FEW else np.zeros(len(durations), np.bool_)
