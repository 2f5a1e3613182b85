"""What an average step is made of."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown


class AverageStep(msgspec.Struct, frozen=True):
    """Means over the complete steps, ns: of the duration and of the time in each category."""

    duration: float
    categories: Mapping[str, float]
    steps: int


def average_step(breakdown: Breakdown) -> AverageStep | None:
    """None without a complete step."""
    complete = breakdown.steps.complete
    if not complete.any():
        return None
    categories = {name: float(breakdown.times[name][complete].mean()) for name in CATEGORIES}
    return AverageStep(float(breakdown.durations[complete].mean()), categories, int(complete.sum()))
