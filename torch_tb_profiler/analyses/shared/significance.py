"""Is a difference between two runs real? Means over steps, their intervals, p values, a correction for many rows.

    base       10.1  9.9 10.0 10.2      mean 10.05
    candidate  10.6 10.4 10.5 10.7      mean 10.55      delta +0.50, interval +0.28 .. +0.72, p 0.001

- Interval: bootstrap over steps. Means of few values scatter more than resampling shows, so deviations are
  stretched by sqrt(n / (n - 1)) and by Student's t over the normal quantile (Hesterberg, "What Teachers Should
  Know About the Bootstrap", 2015, section 4.4).
- p: Welch's t test on the steps. Many rows: Benjamini and Hochberg's step-up procedure (1995).
- Real: the corrected p is at most 1 - confidence, the interval leaves out zero, and the change is large enough.

The same resamples serve all rows and come from a fixed seed: the same input gives the same output.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Bool, Float64

CONFIDENCE = 0.95

RESAMPLES = 2000

SEED = 20

STEP_SHARE = 0.001
"""A change that is less than this part of the step matters to nobody."""

_CHUNK = 2048


class Rules(msgspec.Struct, frozen=True):
    """What counts as a change.

    step        ns, duration of the base's step
    min_effect  least change as a part of the base's value
    resolution  ns between two ticks of the coarser clock: what lies within a tick is not told apart
    """

    step: float
    min_effect: float
    resolution: float


class Evidence(msgspec.Struct, frozen=True):
    """One entry per row.

    base, candidate, delta  means per step, and candidate - base
    low, high  interval of delta, NaN where a side has fewer than two steps
    q          corrected p, NaN likewise and where the change is too small to be tested
    real       bool, the change is significant and large enough
    testable   bool, both sides have at least two steps
    """

    base: Float64
    candidate: Float64
    delta: Float64
    low: Float64
    high: Float64
    q: Float64
    real: Bool
    testable: bool


def weigh(base: Float64, candidate: Float64, rules: Rules, alone: int = 0) -> Evidence:
    """Evidence for rows of values per step, float64[rows, steps] of either side.

    The first `alone` rows are each a question of their own (the step itself); the others are corrected together.
    """
    first, second = _means(base), _means(candidate)
    delta = second - first
    rows, testable = len(base), min(base.shape[1], candidate.shape[1]) >= 2
    low = high = q = np.full(rows, np.nan)
    real = np.zeros(rows, np.bool_)
    if testable and rows:
        error, freedom = _welch(base, candidate, rules.resolution)
        low, high = _intervals(base, candidate, delta, freedom)
        # What is too small on both sides to change by enough is no question, and so weakens no other answer.
        asked = np.maximum(first, second) >= STEP_SHARE * rules.step
        p = student_two_sided(delta / error, freedom)
        q = np.where(asked, p, np.nan)
        others = np.flatnonzero(asked)
        others = others[others >= alone]
        q[others] = adjust(p[others])
        large = (np.abs(delta) >= rules.min_effect * first) & (np.abs(delta) >= STEP_SHARE * rules.step)
        real = asked & (q <= 1 - CONFIDENCE) & ((low > 0) | (high < 0)) & large
    return Evidence(first, second, delta, low, high, q, real, testable)


def mean_interval(values: Float64) -> tuple[float, float] | None:
    """Interval of the mean of some values, float64[n], by the same bootstrap; None of fewer than two."""
    if len(values) < 2:
        return None
    none = np.zeros((1, 2))
    freedom = np.array([len(values) - 1.0])
    low, high = _intervals(none, values[None, :], _means(values[None, :]), freedom)
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
    found: Float64 = values.mean(axis=1) if values.shape[1] else np.zeros(len(values))
    return found


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
    stretch = _student_quantiles(freedom) / NormalDist().inv_cdf(1 - tail)
    low, high = np.empty(len(delta)), np.empty(len(delta))
    first, second = (_deviations(side.shape[1], seed) for side, seed in ((base, SEED), (candidate, SEED + 1)))
    for begin in range(0, len(delta), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        found = np.quantile(candidate[part] @ second - base[part] @ first, (tail, 1 - tail), axis=1)
        low[part], high[part] = delta[part] + stretch[part] * found
    return low, high


def _deviations(count: int, seed: int) -> Float64:
    """float64[count, RESAMPLES]: weights that turn values into deviations of resampled means, stretched."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    weights: Float64 = (drawn.T / count - 1 / count) * np.sqrt(count / max(count - 1, 1))
    return weights


# ---- Student's t ------------------------------------------------------------------------------------


def student_two_sided(t: Float64, freedom: Float64) -> Float64:
    """Chance of a value at least as far from 0 as t, float64[k], for these degrees of freedom (not only whole)."""
    return _beta_fraction(freedom / 2, freedom / (freedom + t**2))


def _beta_fraction(a: Float64, x: Float64) -> Float64:
    """Regularised incomplete beta function I_x(a, 1/2) by Lentz's continued fraction (DLMF 8.17.22)."""
    b = 0.5
    flip = x > (a + 1) / (a + b + 2)
    one, two, at = np.where(flip, b, a), np.where(flip, a, b), np.where(flip, 1 - x, x)
    with np.errstate(divide="ignore"):
        front = np.exp(one * np.log(at) + two * np.log1p(-at) - np.log(one) - _log_beta(a))
    tiny = 1e-300
    c, d = np.ones(len(at)), 1 - (one + two) * at / (one + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    fraction = d.copy()
    for m in range(1, 200):
        for factor in (
            m * (two - m) * at / ((one + 2 * m - 1) * (one + 2 * m)),
            -(one + m) * (one + two + m) * at / ((one + 2 * m) * (one + 2 * m + 1)),
        ):
            d = 1 + factor * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + factor / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            fraction *= c * d
        if np.abs(c * d - 1).max(initial=0) < 1e-13:
            break
    found = front * fraction
    chance: Float64 = np.clip(np.where(flip, 1 - found, found), 0, 1)
    return chance


def _log_beta(a: Float64) -> Float64:
    """log B(a, 1/2)."""
    found: Float64 = _log_gamma(a) + 0.5 * np.log(np.pi) - _log_gamma(a + 0.5)
    return found


def _log_gamma(x: Float64) -> Float64:
    """Stirling's series after shifting x up (DLMF 5.11.1)."""
    shift = np.zeros(len(x))
    y = x.copy()
    for _ in range(8):
        shift -= np.log(y)
        y = y + 1
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5)
    found: Float64 = shift + (y - 0.5) * np.log(y) - y + 0.5 * np.log(2 * np.pi) + series
    return found


def _student_quantiles(freedom: Float64) -> Float64:
    """The t that is exceeded in either direction with chance 1 - CONFIDENCE; read off a table over 1 / freedom."""
    inverse, quantiles = _quantile_table()
    found: Float64 = np.interp(1 / np.maximum(freedom, 1.0), inverse, quantiles)
    return found


@lru_cache(maxsize=1)
def _quantile_table() -> tuple[Float64, Float64]:
    inverse = np.linspace(1e-4, 1, 2000)
    low, high = np.zeros(len(inverse)), np.full(len(inverse), 20.0)
    for _ in range(50):
        middle = (low + high) / 2
        over = student_two_sided(middle, 1 / inverse) > 1 - CONFIDENCE
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return inverse, (low + high) / 2
