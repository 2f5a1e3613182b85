"""Whether a difference between two sides is significant: intervals, p values, a correction for many rows.

    base       10.1  9.9 10.0 10.2      mean 10.05
    candidate  10.6 10.4 10.5 10.7      mean 10.55      delta +0.50, interval +0.28 .. +0.72, p 0.001

- Typical steps of both sides (`step_means`) are compared by Welch's t test; the interval is its interval.
- Many rows: Benjamini and Hochberg's step-up procedure (1995).
- What one side never does and the other does in every step isn't tested by times: of all ways to assign the steps
  to two sides, one has that, either way (an exact permutation test). Its interval ends at zero.
- Changed: the corrected p is at most 1 - confidence, the interval excludes zero, and the change is not below the
  smallest effect that matters. Unchanged: the entire interval lies within plus and minus that effect. Otherwise
  the result is inconclusive, and `needed` says how much would have to be recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import comb
from statistics import NormalDist

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.step_means import StepMeans, autocorrelation, step_means
from torch_tb_profiler.model.trace import Bool, Float64, Int64

CONFIDENCE = 0.95
"""Confidence level of intervals, as is customary: one in twenty doesn't contain the true value."""

POWER = 0.8
"""Probability that `needed` steps show a change as large as the one seen."""

MAX_NEEDED = 10_000
"""Most steps that are asked for; if more were needed, the difference is too small to be measured in practice."""

STEP_SHARE = 0.001
"""A change below this share of the step is too small to matter."""


class ChangeRules(msgspec.Struct, frozen=True):
    """What counts as a change.

    step        ns, duration of the base's step
    min_effect  smallest effect that matters, as a share of the base's value
    resolution  ns between two ticks of the coarser clock: times within a tick are equal
    recordings  how many steps each recording of the base and of the candidate has; None: one recording each
    one_run     all are recordings of one run of one program: it takes several per side to tell two from each other
    """

    step: float
    min_effect: float
    resolution: float
    recordings: tuple[Sequence[int], Sequence[int]] | None = None
    one_run: bool = False


class ChangeEvidence(msgspec.Struct, frozen=True):
    """How the sides differ, with one entry per row.

    base, candidate, delta  means per step, and candidate - base
    typical      float64[2, rows], time of a typical step on each side
    low, high    interval of the difference of these, NaN where the scatter is unknown
    q            corrected p; NaN likewise, and where the change is too small to be tested
    changed      bool, the change is real and large enough
    unchanged    bool, whatever the change is, it is too small to matter
    needed       steps (recordings, where a side has several) that each side needs for a result; NaN if unknown,
                 inf above MAX_NEEDED
    rho          autocorrelation of the steps
    testable     bool, the scatter of both sides is known
    """

    base: Float64
    candidate: Float64
    delta: Float64
    typical: Float64
    low: Float64
    high: Float64
    q: Float64
    changed: Bool
    unchanged: Bool
    needed: Float64
    rho: Float64
    testable: bool


def compare_steps(base: Float64, candidate: Float64, rules: ChangeRules, alone: int = 0) -> ChangeEvidence:
    """Compare rows of values per step, float64[rows, steps] of each side, recording after recording.

    The first `alone` rows are tested by themselves (the step itself); the others are corrected together.
    """
    recordings = _split(base, candidate, rules)
    rho = autocorrelation([*recordings[0], *recordings[1]])
    sides = [step_means(side, rho, rules.resolution) for side in recordings]
    first, second = _means(base), _means(candidate)
    typical = np.stack([sides[0].mean, sides[1].mean])
    shift = typical[1] - typical[0]
    rows = len(base)
    margin = np.maximum(rules.min_effect * first, STEP_SHARE * rules.step)
    low = high = q = needed = np.full(rows, np.nan)
    changed = unchanged = np.zeros(rows, np.bool_)
    error2, freedom = _estimate_difference(*sides)
    testable = bool(rows) and not np.isnan(error2).any()
    if testable:
        error = np.sqrt(error2)
        reach = student_quantiles(freedom, CONFIDENCE) * error
        low, high = shift - reach, shift + reach
        # What is too small on both sides to matter is not tested, so that it does not weaken the other tests.
        tested = np.maximum(first, second) >= STEP_SHARE * rules.step
        p = student_two_sided(shift / error, freedom)
        added, removed = (
            ~base.any(axis=1) & (candidate > 0).all(axis=1),
            (base > 0).all(axis=1) & ~candidate.any(axis=1),
        )
        apart = 2 / comb(sum(side.count for side in sides), sides[0].count)
        p = np.where(added | removed, np.minimum(p, apart), p)
        low, high = np.where(added, np.maximum(low, 0.0), low), np.where(removed, np.minimum(high, 0.0), high)
        q = np.where(tested, p, np.nan)
        others = np.flatnonzero(tested)
        others = others[others >= alone]
        q[others] = adjust_p_values(p[others])
        several = max(len(side) for side in recordings) > 1
        if several or not rules.one_run:
            beyond = (low > 0) | (high < 0) | added | removed
            changed = tested & (q <= 1 - CONFIDENCE) & beyond & (np.abs(shift) >= margin)
            needed = _estimate_needed_steps(np.abs(shift), margin, error2, freedom, [side.count for side in sides])
        unchanged = (low >= -margin) & (high <= margin)
    return ChangeEvidence(
        first, second, second - first, typical, low, high, q, changed, unchanged, needed, rho, testable
    )


def typical_interval(recordings: Sequence[Float64 | Int64]) -> tuple[float, float] | None:
    """Return the interval of a typical step, from the steps of each recording; None if the scatter is unknown."""
    values = [steps[None, :].astype(np.float64) for steps in recordings]
    if not values:
        return None
    means = step_means(values, autocorrelation(values), 0.0)
    if np.isnan(means.error2[0]):
        return None
    middle = float(means.mean[0])
    reach = float(student_quantiles(means.freedom, CONFIDENCE)[0] * np.sqrt(means.error2[0]))
    return middle - reach, middle + reach


def adjust_p_values(p: Float64) -> Float64:
    """Correct p values by Benjamini and Hochberg: the false discovery rate at which a row is significant."""
    order = np.argsort(p, kind="stable")
    count = len(p)
    scaled = p[order] * count / np.arange(1, count + 1)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0) if count else scaled
    return adjusted


def _means(values: Float64) -> Float64:
    means: Float64 = values.mean(axis=1) if values.shape[1] else np.zeros(len(values))
    return means


def _split(base: Float64, candidate: Float64, rules: ChangeRules) -> list[list[Float64]]:
    """Split the values of each side into recordings; those without a step are left out."""
    counts = rules.recordings or ((base.shape[1],), (candidate.shape[1],))
    sides = []
    for values, steps in zip((base, candidate), counts, strict=True):
        bounds = pairwise([0, *accumulate(steps)])
        parts = [values[:, begin:end] for begin, end in bounds if end > begin]
        sides.append(parts or [values])
    return sides


def _estimate_difference(base: StepMeans, candidate: StepMeans) -> tuple[Float64, Float64]:
    """Return (squared standard error of the difference, degrees of freedom by Welch and Satterthwaite).

    A single recording is assumed to vary as those of the other side do.
    """
    for one, several in ((base, candidate), (candidate, base)):
        if np.isnan(one.between).all() and not np.isnan(several.between).any():
            own = np.fmax(one.error2, several.between) if one.count else one.error2
            return own + several.error2, several.freedom
    a, b = base.error2, candidate.error2
    return a + b, (a + b) ** 2 / (a**2 / base.freedom + b**2 / candidate.freedom)


def _estimate_needed_steps(
    change: Float64, margin: Float64, error2: Float64, freedom: Float64, counts: Sequence[int]
) -> Float64:
    """Return how many steps (recordings) per side show a change of this size, or that it is below `margin`."""
    variance = error2 / sum(1 / count for count in counts)
    goal = np.where(change >= margin, change, margin - change)
    reserve = NormalDist().inv_cdf(POWER)

    def enough(count: Float64) -> Bool:
        grown = np.maximum(freedom * 2 * count / sum(counts), 1.0)
        reach = (student_quantiles(grown, CONFIDENCE) + reserve) * np.sqrt(2 * variance / count)
        holds: Bool = reach <= goal
        return holds

    few, many = np.full(len(change), float(min(counts))), np.full(len(change), float(MAX_NEEDED))
    possible = enough(many)
    while (many - few > 1).any():
        middle = np.floor((few + many) / 2)
        holds = enough(middle)
        few, many = np.where(holds, few, middle), np.where(holds, middle, many)
    return np.where(possible, many, np.inf)


def student_two_sided(t: Float64, freedom: Float64) -> Float64:
    """Return float64[k]: the probability under Student's t of a value at least as far from 0 as t.

    freedom  degrees of freedom, not only integers
    """
    return _beta_fraction(freedom / 2, freedom / (freedom + t**2))


def _beta_fraction(a: Float64, x: Float64) -> Float64:
    """Return the regularized incomplete beta function I_x(a, 1/2), by a continued fraction (DLMF 8.17.22)."""
    b = 0.5
    flip = x > (a + 1) / (a + b + 2)
    one, two, at = np.where(flip, b, a), np.where(flip, a, b), np.where(flip, 1 - x, x)
    with np.errstate(divide="ignore"):
        front = np.exp(one * np.log(at) + two * np.log1p(-at) - np.log(one) - _log_beta(a))
    tiny = 1e-300  # stands for 0, by which a fraction can't be divided (Lentz's method)
    c, d = np.ones(len(at)), 1 - (one + two) * at / (one + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    fraction = d.copy()
    for m in range(1, 200):  # it converges far sooner
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
    integral = front * fraction
    chance: Float64 = np.clip(np.where(flip, 1 - integral, integral), 0, 1)
    return chance


def _log_beta(a: Float64) -> Float64:
    """Return log B(a, 1/2)."""
    logarithm: Float64 = _log_gamma(a) + 0.5 * np.log(np.pi) - _log_gamma(a + 0.5)
    return logarithm


def _log_gamma(x: Float64) -> Float64:
    """Return log Gamma(x) by Stirling's series, after shifting x up (DLMF 5.11.1)."""
    shift = np.zeros(len(x))
    y = x.copy()
    for _ in range(8):
        shift -= np.log(y)
        y = y + 1
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5)
    logarithm: Float64 = shift + (y - 0.5) * np.log(y) - y + 0.5 * np.log(2 * np.pi) + series
    return logarithm


def student_quantiles(freedom: Float64, confidence: float) -> Float64:
    """Return the t exceeded in either direction with probability 1 - confidence, from a table over 1 / freedom."""
    inverse, quantiles = _build_quantile_table(confidence)
    t: Float64 = np.interp(1 / np.maximum(freedom, 1.0), inverse, quantiles)
    return t


@lru_cache(maxsize=1)
def _build_quantile_table(confidence: float) -> tuple[Float64, Float64]:
    inverse = np.linspace(1e-4, 1, 2000)  # 10,000 degrees of freedom to 1; linear between these is exact enough
    low, high = np.zeros(len(inverse)), np.full(len(inverse), 20.0)
    for _ in range(50):  # halves 20 until it is below the precision of a float
        middle = (low + high) / 2
        over = student_two_sided(middle, 1 / inverse) > 1 - confidence
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return inverse, (low + high) / 2
