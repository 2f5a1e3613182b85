"""What a typical step takes, and how certain that is, from the typical steps of one or several recordings.

- Steps that resemble the one before count as fewer: n (1 - rho) / (1 + rho), with rho from the correlation of
  neighbors, corrected for its bias in short series (Kendall, "Note on bias in the estimation of autocorrelation",
  Biometrika 41, 1954).
- Several recordings: their means are the sample, because recordings differ among themselves more than the steps of
  one do. The error is never less than what the steps alone say.

Odd steps don't get here: `typical_steps` leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Float64

MIN_STEPS_TO_CORRELATE = 5
"""Fewest steps of a recording that show how much a step resembles the one before."""

MAX_AUTOCORRELATION = 0.95
"""Largest correlation of neighboring steps that is used: at 1, no number of steps would show anything."""


class StepMeans(msgspec.Struct, frozen=True):
    """The mean of a typical step and its uncertainty, per row of values, float64[rows].

    mean     of a typical step
    error2   square of its standard error, NaN where it is unknown
    freedom  degrees of freedom of `error2`
    between  variance between recordings, NaN for a single one
    count    steps, or recordings where there are several
    """

    mean: Float64
    error2: Float64
    freedom: Float64
    between: Float64
    count: int


def autocorrelation(recordings: Sequence[Float64]) -> Float64:
    """Return float64[rows]: how much a step resembles the one before, 0..MAX_AUTOCORRELATION.

    recordings  values float64[rows, steps] of each
    """
    long = [values for values in recordings if values.shape[1] >= MIN_STEPS_TO_CORRELATE]
    if not long:
        return np.zeros(len(recordings[0]) if len(recordings) else 0)
    steps = sum(values.shape[1] for values in long)
    measured = sum(_lag_correlation(values) * values.shape[1] for values in long) / steps
    rho: Float64 = np.clip(measured + (1 + 3 * measured) * len(long) / steps, 0, MAX_AUTOCORRELATION)
    return rho


def autocorrelation_error(counts: Sequence[int]) -> float:
    """Return the standard error of `autocorrelation` where no step resembles another: Bartlett's 1 / sqrt(steps).

    The correction of the bias enlarges it. Infinity with too few steps.

    counts  steps of each recording
    """
    long = [count for count in counts if count >= MIN_STEPS_TO_CORRELATE]
    steps = sum(long)
    return (1 + 3 * len(long) / steps) / steps**0.5 if long else float("inf")


def step_means(recordings: Sequence[Float64], rho: Float64, resolution: float) -> StepMeans:
    """Compute the means of values float64[rows, steps] of each recording, scattered by a clock tick or more."""
    single = [_recording_means(values, rho, resolution) for values in recordings]
    if len(single) == 1:
        return single[0]
    means = np.stack([one.mean for one in single])
    between = means.var(axis=0, ddof=1)
    within = np.stack([np.nan_to_num(one.error2) for one in single]).mean(axis=0)
    return StepMeans(
        mean=means.mean(axis=0),
        error2=np.maximum(np.maximum(between, within), resolution**2 / 6) / len(single),
        freedom=np.full(len(between), len(single) - 1.0),
        between=between,
        count=len(single),
    )


def _recording_means(values: Float64, rho: Float64, resolution: float) -> StepMeans:
    rows, steps = values.shape
    unknown = np.full(rows, np.nan)
    if steps == 0:
        return StepMeans(np.zeros(rows), unknown, unknown, unknown, 0)
    mean = values.mean(axis=1)
    if steps == 1:
        return StepMeans(mean, unknown, unknown, unknown, 1)
    variance = np.maximum(values.var(axis=1, ddof=1), resolution**2 / 6)
    effective_share = (1 - rho) / (1 + rho)
    return StepMeans(
        mean=mean,
        error2=variance / steps / effective_share,
        freedom=np.maximum((steps - 1) * effective_share, 1.0),
        between=unknown,
        count=steps,
    )


def _lag_correlation(values: Float64) -> Float64:
    """Return float64[rows]: the correlation of each step with the next, 0 where nothing varies."""
    deviations = values - values.mean(axis=1, keepdims=True)
    squares = (deviations**2).sum(axis=1)
    products: Float64 = (deviations[:, 1:] * deviations[:, :-1]).sum(axis=1)
    return products / np.where(squares > 0, squares, 1.0)
