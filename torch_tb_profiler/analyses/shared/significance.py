"""What does a difference between two sides prove? Intervals, p values, a correction for many rows, verdicts.

    base       10.1  9.9 10.0 10.2      mean 10.05
    candidate  10.6 10.4 10.5 10.7      mean 10.55      delta +0.50, interval +0.28 .. +0.72, p 0.001

- Typical steps of both sides (`step_means`) are compared by Welch's t test; the interval is its interval.
- Many rows: Benjamini and Hochberg's step-up procedure (1995).
- What one side never does and the other does in each of its steps differs by no chance of times: of all ways to
  share out the steps one has that, either way (an exact permutation test). Its interval ends at zero.
- Changed: the corrected p is at most 1 - confidence, the interval excludes zero, and the change is not below the
  least effect that matters. Unchanged: the whole interval lies within plus and minus that effect. Else nothing is
  proven, and `needed` says how much would have to be recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import comb
from statistics import NormalDist

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.step_means import StepMeans, autocorrelation, step_means
from torch_tb_profiler.analyses.shared.student import student_quantiles, student_two_sided
from torch_tb_profiler.model.trace import Bool, Float64, Int64

CONFIDENCE = 0.95

POWER = 0.8
"""With `needed` steps a change as large as the one seen is proven this often."""

MOST_NEEDED = 10_000

STEP_SHARE = 0.001
"""A change below this share of the step is too small to matter."""


class Rules(msgspec.Struct, frozen=True):
    """What counts as a change.

    step        ns, duration of the base's step
    min_effect  least effect that matters, as a share of the base's value
    resolution  ns between two ticks of the coarser clock: times within a tick cannot be told apart
    recordings  how many steps each recording of the base and of the candidate has; None: one recording each
    one_run     all are recordings of one run of one program: it takes several a side to tell two from each other
    """

    step: float
    min_effect: float
    resolution: float
    recordings: tuple[Sequence[int], Sequence[int]] | None = None
    one_run: bool = False


class Evidence(msgspec.Struct, frozen=True):
    """One entry per row.

    base, candidate, delta  means per step, and candidate - base
    typical      float64[2, rows], what a typical step takes on either side
    low, high    interval of the difference of these, NaN where the scatter is not known
    q            corrected p; NaN likewise, and where the change is too small to be tested
    changed      bool, the change is real and large enough
    unchanged    bool, whatever the change is, it is too small to matter
    needed       steps (recordings, where a side has several) that each side needs to tell; NaN where that is not
                 known, inf above MOST_NEEDED
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


def weigh(base: Float64, candidate: Float64, rules: Rules, alone: int = 0) -> Evidence:
    """Evidence for rows of values per step, float64[rows, steps] of either side, recording after recording.

    The first `alone` rows are each a question of their own (the step itself); the others are corrected together.
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
    error2, freedom = _difference(*sides)
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
        q[others] = adjust(p[others])
        several = max(len(side) for side in recordings) > 1
        if several or not rules.one_run:
            beyond = (low > 0) | (high < 0) | added | removed
            changed = tested & (q <= 1 - CONFIDENCE) & beyond & (np.abs(shift) >= margin)
            needed = _needed(np.abs(shift), margin, error2, freedom, [side.count for side in sides])
        # A rare long call is trimmed: the plain means must agree that nothing changed.
        unchanged = (low >= -margin) & (high <= margin) & (np.abs(second - first) <= margin)
    return Evidence(
        first, second, second - first, typical, low, high, q, changed, unchanged, needed, rho, testable
    )


def typical_interval(recordings: Sequence[Float64 | Int64]) -> tuple[float, float] | None:
    """Interval of a typical step, from the steps of each recording; None where their scatter is unknown."""
    values = [steps[None, :].astype(np.float64) for steps in recordings]
    if not values:
        return None
    means = step_means(values, autocorrelation(values), 0.0)
    if np.isnan(means.error2[0]):
        return None
    middle = float(means.mean[0])
    reach = float(student_quantiles(means.freedom, CONFIDENCE)[0] * np.sqrt(means.error2[0]))
    return middle - reach, middle + reach


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


def _split(base: Float64, candidate: Float64, rules: Rules) -> list[list[Float64]]:
    """The values of each recording of either side; recordings without a step are left out."""
    counts = rules.recordings or ((base.shape[1],), (candidate.shape[1],))
    sides = []
    for values, steps in zip((base, candidate), counts, strict=True):
        bounds = pairwise([0, *accumulate(steps)])
        parts = [values[:, begin:end] for begin, end in bounds if end > begin]
        sides.append(parts or [values])
    return sides


def _difference(base: StepMeans, candidate: StepMeans) -> tuple[Float64, Float64]:
    """(square of the standard error of the difference, degrees of freedom: Welch and Satterthwaite).

    A single recording is taken to vary as those of the other side do.
    """
    for one, several in ((base, candidate), (candidate, base)):
        if np.isnan(one.between).all() and not np.isnan(several.between).any():
            own = np.fmax(one.error2, several.between) if one.count else one.error2
            return own + several.error2, several.freedom
    a, b = base.error2, candidate.error2
    return a + b, (a + b) ** 2 / (a**2 / base.freedom + b**2 / candidate.freedom)


def _needed(change: Float64, margin: Float64, error2: Float64, freedom: Float64, counts: Sequence[int]) -> Float64:
    """How many steps (recordings) of each side prove a change of this size, or that it is below `margin`."""
    variance = error2 / sum(1 / count for count in counts)
    goal = np.where(change >= margin, change, margin - change)
    reserve = NormalDist().inv_cdf(POWER)

    def enough(count: Float64) -> Bool:
        grown = np.maximum(freedom * 2 * count / sum(counts), 1.0)
        reach = (student_quantiles(grown, CONFIDENCE) + reserve) * np.sqrt(2 * variance / count)
        holds: Bool = reach <= goal
        return holds

    few, many = np.full(len(change), float(min(counts))), np.full(len(change), float(MOST_NEEDED))
    possible = enough(many)
    while (many - few > 1).any():
        middle = np.floor((few + many) / 2)
        holds = enough(middle)
        few, many = np.where(holds, few, middle), np.where(holds, middle, many)
    return np.where(possible, many, np.inf)
