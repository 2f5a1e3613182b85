"""Is a difference between two runs significant? Means over steps, intervals, p values, a correction for many rows.

    base       10.1  9.9 10.0 10.2      mean 10.05
    candidate  10.6 10.4 10.5 10.7      mean 10.55      delta +0.50, interval +0.28 .. +0.72, p 0.001

- Interval: bootstrap over steps. Means of few values scatter more than resampling shows, so deviations are
  stretched by sqrt(n / (n - 1)) and by Student's t over the normal quantile (Hesterberg, "What Teachers Should
  Know About the Bootstrap", 2015, section 4.4).
- p: Welch's t test on the steps. Many rows: Benjamini and Hochberg's step-up procedure (1995).
- Significant: the corrected p is at most 1 - confidence, the interval excludes zero, the change is large enough.

The same resamples serve all rows and come from a fixed seed: the same input gives the same output.
"""

from __future__ import annotations

from statistics import NormalDist

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.student import student_quantiles, student_two_sided
from torch_tb_profiler.model.trace import Bool, Float64, Int64

CONFIDENCE = 0.95

RESAMPLES = 2000

SEED = 20

STEP_SHARE = 0.001
"""A change below this share of the step is too small to matter."""

_CHUNK = 2048


class Rules(msgspec.Struct, frozen=True):
    """What counts as a change.

    step        ns, duration of the base's step
    min_effect  smallest change, as a share of the base's value
    resolution  ns between two ticks of the coarser clock: times within a tick cannot be told apart
    """

    step: float
    min_effect: float
    resolution: float


class Evidence(msgspec.Struct, frozen=True):
    """One entry per row.

    base, candidate, delta  means per step, and candidate - base
    low, high    interval of delta, NaN where a side has fewer than two steps
    q            corrected p; NaN likewise, and where the change is too small to be tested
    significant  bool, the change is real and large enough
    testable     bool, both sides have at least two steps
    """

    base: Float64
    candidate: Float64
    delta: Float64
    low: Float64
    high: Float64
    q: Float64
    significant: Bool
    testable: bool


def weigh(base: Float64, candidate: Float64, rules: Rules, alone: int = 0) -> Evidence:
    """Evidence for rows of values per step, float64[rows, steps] of either side.

    The first `alone` rows are each a question of their own (the step itself); the others are corrected together.
    """
    first, second = _means(base), _means(candidate)
    delta = second - first
    rows, testable = len(base), min(base.shape[1], candidate.shape[1]) >= 2
    low = high = q = np.full(rows, np.nan)
    significant = np.zeros(rows, np.bool_)
    if testable and rows:
        error, freedom = _welch(base, candidate, rules.resolution)
        low, high = _intervals(base, candidate, delta, freedom)
        # What is too small on both sides to matter is not tested, so that it does not weaken the other tests.
        tested = np.maximum(first, second) >= STEP_SHARE * rules.step
        p = student_two_sided(delta / error, freedom)
        q = np.where(tested, p, np.nan)
        others = np.flatnonzero(tested)
        others = others[others >= alone]
        q[others] = adjust(p[others])
        large = (np.abs(delta) >= rules.min_effect * first) & (np.abs(delta) >= STEP_SHARE * rules.step)
        significant = tested & (q <= 1 - CONFIDENCE) & ((low > 0) | (high < 0)) & large
    return Evidence(first, second, delta, low, high, q, significant, testable)


def mean_interval(values: Float64 | Int64) -> tuple[float, float] | None:
    """Interval of the mean of some values, [n], by the same bootstrap; None for fewer than two."""
    if len(values) < 2:
        return None
    zeros, row = np.zeros((1, 2)), values[None, :].astype(np.float64)
    freedom = np.array([len(values) - 1.0])
    low, high = _intervals(zeros, row, _means(row), freedom)
    return float(low[0]), float(high[0])


def adjust(p: Float64) -> Float64:
    """Benjamini and Hochberg: the rate of false discoveries at which each row would be one."""
    order = np.argsort(p, kind="stable")
    count = len(p)
    scaled = p[order] * count / np.arange(1, count + 1)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0) if count else scaled
    return adjusted


def _means(values: Float64) -> Float64:
    means: Float64 = values.mean(axis=1) if values.shape[1] else np.zeros(len(values))
    return means


def _welch(base: Float64, candidate: Float64, resolution: float) -> tuple[Float64, Float64]:
    """(standard error of the difference, degrees of freedom). Values scatter by a tick of the clock at least."""
    parts = []
    for values in (base, candidate):
        n = values.shape[1]
        variance = np.maximum(values.var(axis=1, ddof=1), resolution**2 / 6)
        parts.append((variance / n, n))
    (a, n), (b, m) = parts
    return np.sqrt(a + b), (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))


def _intervals(base: Float64, candidate: Float64, delta: Float64, freedom: Float64) -> tuple[Float64, Float64]:
    tail = (1 - CONFIDENCE) / 2
    stretch = student_quantiles(freedom, CONFIDENCE) / NormalDist().inv_cdf(1 - tail)
    low, high = np.empty(len(delta)), np.empty(len(delta))
    first, second = (_deviations(side.shape[1], seed) for side, seed in ((base, SEED), (candidate, SEED + 1)))
    for begin in range(0, len(delta), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        deviations = np.quantile(candidate[part] @ second - base[part] @ first, (tail, 1 - tail), axis=1)
        low[part], high[part] = delta[part] + stretch[part] * deviations
    return low, high


def _deviations(count: int, seed: int) -> Float64:
    """float64[count, RESAMPLES]: weights that turn values into deviations of resampled means, stretched."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    weights: Float64 = (drawn.T / count - 1 / count) * np.sqrt(count / max(count - 1, 1))
    return weights
