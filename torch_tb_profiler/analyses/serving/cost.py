"""What an iteration costs: the device time of a batch by what is in it.

    t = fixed + a * prompt tokens + b * decoding requests + c * KV tokens          (all >= 0)

Two parts of an iteration are fitted apart, because they scale with different things: attention with the KV tokens
and the prompt, everything else with the prompt and the requests. So requests and KV tokens, which grow together,
stay separable. Errors are relative; outliers (Tukey's biweight) don't count. The intervals of both fits are joined
by their influence functions (the sandwich estimator HC3), so errors that both share are counted once.

Where the labels don't say how many tokens the KV cache holds, a prompt token's cost leaves out attention.

What the data can't separate isn't separated: a coefficient is unknown if its count has too few levels, if it can't
be told from another one, or if its interval is too wide to be of use.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.serving.idle import serving_times
from torch_tb_profiler.analyses.serving.padding import padded_batches
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.serving.iterations import ServingIterations, serving_iterations
from torch_tb_profiler.model.serving.labeled import DECODE
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int64, Trace

COEFFICIENTS = ("fixed", "per_prompt_token", "per_request", "per_kv_token")
FIXED, PROMPT, REQUEST, KV = range(4)

CONFIDENCE = 0.95
"""Confidence level of the intervals of costs."""

MIN_ITERATIONS = 12
"""With fewer iterations nothing is fitted: four coefficients need some data each."""

MIN_LEVELS = 4
"""Fewest distinct values of a count that can tell its coefficient."""

MIN_NONZERO = 5
"""Fewest iterations with a count above 0 that can tell its coefficient."""

MAX_INFLATION = 400.0
"""A coefficient whose variance is this many times what it would be alone can't be told from another one."""

MAX_INTERVAL_RATIO = 0.5
"""Half the width of an interval above this share of the value makes it of no use."""

MIN_EFFECT_SHARE = 0.002
"""A count that costs less than this share of an average iteration is too small to be measured."""

MIN_ATTENTION_SHARE = 0.9
"""Minimum share of the iterations with a known attention kernel for attention to be fitted apart."""

MIN_PART_SHARE = 0.01
"""Errors of a part of the time are at least relative to this share of the whole."""

MAX_STANDARDIZED_RESIDUAL = 4.685
"""Standardized residuals beyond this are outliers (95% efficiency with normal errors)."""

MIN_CHANGE = 0.08
"""Iterations that take longer by less than this share than the same batch before follow one law."""

_MAX_AUTOCORRELATION = 0.98
"""A correlation of neighbors estimated higher counts as this: at 1 the variance of a sum would be infinite."""

_MAX_LEVERAGE = 0.99
"""A row with a higher leverage counts as this: at 1 the fit passes through it, and its residual says nothing."""

_MIN_SLOPE = 0.1
"""A flatter weighted residual counts as this steep, so that the influence of rows stays bounded."""

_MAD_TO_DEVIATION = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""

_MIN_OUTLIER_EXCESS = 0.1
"""An iteration less than this share longer than the law says is no outlier, however small the scatter is."""

_MIN_DIVISOR = 1e-300
"""Divisors that may be 0 are at least this."""

_RANK_CUTOFF = 1e-12
"""Singular values below this share of the largest one count as 0, and so do changes of the cost: rounding."""

_RIDGE = 1e-9
"""Added to the squares of columns of norm 1: counts that depend on each other exactly inflate variances to 1e9."""

_MAX_ROUNDS, _TOLERANCE = 30, 1e-10
"""Most rounds of the robust fit, and the relative change of its costs at which it has converged."""


class Coefficient(msgspec.Struct, frozen=True):
    """A value in ns with its interval, or the reason why it is unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


class IterationCost(msgspec.Struct, frozen=True):
    """What an iteration costs, on the device, or on the host where no device work is recorded.

    coefficients  in the order of COEFFICIENTS
    explained     share of the variation of the time that the law explains, without outliers; None without a fit
    iterations    how many were fitted; recomputed ones aren't, because their tokens are counted differently
    outliers      how many of these don't count
    predicted     float64[k] ns of every iteration, NaN where a count is missing; None without a fit
    spread        relative scatter of an iteration around the law (robust standard deviation)
    batch         (requests, ns) of a decode iteration where all have one batch size, so that only this is known
    graph_sizes   what batches were padded to, as their times show: a request's cost is then that of each place
    """

    coefficients: tuple[Coefficient, Coefficient, Coefficient, Coefficient]
    explained: float | None
    iterations: int
    outliers: int
    predicted: Float64 | None
    spread: float
    batch: tuple[int, float] | None
    graph_sizes: tuple[int, ...] = ()

    @property
    def fixed(self) -> Coefficient:
        return self.coefficients[FIXED]

    @property
    def per_prompt_token(self) -> Coefficient:
        return self.coefficients[PROMPT]

    @property
    def per_request(self) -> Coefficient:
        return self.coefficients[REQUEST]

    @property
    def per_kv_token(self) -> Coefficient:
        return self.coefficients[KV]


def too_few_iterations(count: int, least: int) -> str:
    """Say that `count` iterations are too few for a conclusion that takes `least`."""
    return f"{plural(count, 'iteration')} {agree(count, 'is', 'are')} too few; record at least {least}"


def _build_unknown_cost(reason: str, iterations: int) -> IterationCost:
    unknown = Coefficient(None, reason=reason)
    return IterationCost((unknown, unknown, unknown, unknown), None, iterations, 0, None, 0.0, None)


@derived
def iteration_cost(trace: Trace) -> IterationCost | None:
    """Return the cost of iterations, or None if the trace has none."""
    found, times = serving_iterations(trace), serving_times(trace)
    if found is None or times is None:
        return None
    work = found.kernel_busy if times.on_device else times.work
    usable = (found.prompt_tokens != ABSENT) & (found.decode_requests != ABSENT) & (work > 0)
    usable &= found.recomputed == 0
    if found.source == "kernels":
        return _build_unknown_cost("the iterations have no labels that count requests and tokens", 0)
    if not (found.decode_requests != ABSENT).any() or not usable.any():
        return _build_unknown_cost("the labels don't count prompt tokens and decoding requests", 0)
    rows = np.flatnonzero(usable)
    if len(rows) < MIN_ITERATIONS:
        return _build_unknown_cost(too_few_iterations(len(rows), MIN_ITERATIONS), len(rows))
    return _fit_cost(found, work, rows)


def _fit_cost(found: ServingIterations, work: Int64, rows: Int64) -> IterationCost:
    has_kv = bool((found.kv_tokens[rows] != ABSENT).all())
    counts = np.ones((len(work), 4))
    for column, values in ((PROMPT, found.prompt_tokens), (REQUEST, found.decode_requests), (KV, found.kv_tokens)):
        counts[:, column] = np.where(values == ABSENT, np.nan, values)
    total, attention = work[rows].astype(np.float64), found.attention[rows].astype(np.float64)
    apart = bool((attention > 0).mean() > MIN_ATTENTION_SHARE)
    law = _fit_law(counts[rows], total, attention if apart else None, has_kv)
    attended = attention if apart else law.modeled[KV] * np.nan_to_num(counts[rows, KV])
    modeled = [FIXED, PROMPT, REQUEST, KV] if has_kv else [FIXED, PROMPT, REQUEST]
    residual = (total - counts[rows][:, modeled] @ law.modeled[modeled]) / total
    batches = padded_batches(
        found.decode_requests[rows],
        found.phase[rows] == DECODE,
        np.abs(residual) <= MAX_STANDARDIZED_RESIDUAL * _scale(residual),
        total - attended,
        found.padded_requests[rows],
    )
    laws = []
    for sizes in batches.sizes:
        counts[rows, REQUEST] = sizes
        laws.append(_fit_law(counts[rows], total, attention if apart else None, has_kv))
    counts[rows, REQUEST] = batches.sizes[0]
    law, data = laws[0], counts[rows]
    # What several sizes of the batches explain is in the interval of any.
    half = np.max([np.abs(each.values - law.values) + each.half for each in laws], axis=0)
    predicted = counts[:, modeled] @ law.modeled[modeled]
    residual = (total - predicted[rows]) / total
    spread = _scale(residual)
    inlier = np.abs(residual) <= MAX_STANDARDIZED_RESIDUAL * spread
    varied = np.var(total[inlier])
    explained = float(1 - np.mean((total - predicted[rows])[inlier] ** 2) / varied) if varied > 0 else None
    changed = _find_change(residual) if has_kv else None  # what the KV cache adds changes with the batch
    if changed is not None:
        return _build_unknown_cost(
            f"from iteration {int(rows[changed]):,} on, the same batch takes a different time",
            len(rows),
        )
    batch = _find_single_batch(found, rows, total)
    evidence = _Evidence(data, law.values, half, law.inflation, total, has_kv, apart, batch, batches.uneven)
    coefficients = [_judge(column, evidence) for column in range(len(COEFFICIENTS))]
    padded = batches.sizes[0] > found.decode_requests[rows]
    return IterationCost(
        (coefficients[0], coefficients[1], coefficients[2], coefficients[3]),
        None if explained is None else max(0.0, explained),
        len(rows),
        int((~inlier).sum()),
        predicted,
        spread,
        batch,
        tuple(np.unique(batches.sizes[0][padded]).tolist()),
    )


class _Law(NamedTuple):
    """Coefficients in ns, each float64[4]: as people read them, of the whole model, half widths, inflation."""

    values: Float64
    modeled: Float64
    half: Float64
    inflation: Float64


def _fit_law(data: Float64, total: Float64, attention: Float64 | None, has_kv: bool) -> _Law:
    """Fit attention apart from the rest where it is known."""
    if attention is not None:
        targets = [total - attention, attention]
        columns = [[FIXED, PROMPT, REQUEST], [FIXED, PROMPT, KV] if has_kv else [FIXED, PROMPT]]
    else:
        targets, columns = [total], [[FIXED, PROMPT, REQUEST, KV] if has_kv else [FIXED, PROMPT, REQUEST]]
    # Errors are relative to what is expected, not to what was measured, which would favor short iterations.
    parts = []
    for used, target in zip(columns, targets, strict=True):
        first = data[:, used] @ _fit(data[:, used], target, np.maximum(target, MIN_PART_SHARE * total)).values
        parts.append(_fit(data[:, used], target, np.maximum(first, MIN_PART_SHARE * total)))
    values, modeled, influence, inflation = np.zeros(4), np.zeros(4), np.zeros((len(data), 4)), np.ones(4)
    for number, (part, used) in enumerate(zip(parts, columns, strict=True)):
        modeled[used] += part.values
        if number == 1 and not has_kv:  # the prompt's share of attention can't be told from that of the KV cache
            continue
        values[used] += part.values
        influence[:, used] += part.influence
        inflation[used] = np.maximum(inflation[used], part.inflation)
    error = np.sqrt((influence**2).sum(0) * _estimate_persistence(influence))
    return _Law(values, modeled, student_quantile((1 + CONFIDENCE) / 2, max(len(data) - 4, 1)) * error, inflation)


def _estimate_persistence(influence: Float64) -> Float64:
    """Return how many times the variance of a sum is that of independent rows, float64[p] of at least 1.

    A device that runs slower for a while makes neighboring iterations err alike: their first autocorrelation tells
    (Andrews 1991). One within its own error counts as none.
    """
    squares = np.maximum((influence**2).sum(0), _MIN_DIVISOR)
    lag_one = (influence[1:] * influence[:-1]).sum(0) / squares
    lag_one = np.where(
        lag_one > 2 / len(influence) ** 0.5,
        np.minimum(lag_one + (1 + 3 * lag_one) / len(influence), _MAX_AUTOCORRELATION),
        0.0,
    )
    factor: Float64 = (1 + lag_one) / (1 - lag_one)
    return factor


def _find_change(residual: Float64) -> int | None:
    """Return from which row on iterations take longer or shorter than before for the same batch; None: never."""
    count = len(residual)
    if count < 2 * MIN_ITERATIONS:
        return None
    bounded = np.clip(residual, -0.5, 0.5)
    before, sizes = np.cumsum(bounded)[:-1], np.arange(1, count)
    shift = (bounded.sum() - before) / (count - sizes) - before / sizes
    shift[: MIN_ITERATIONS - 1] = shift[count - MIN_ITERATIONS :] = 0
    at = int(np.argmax(np.abs(shift) * np.sqrt(sizes * (count - sizes)))) + 1
    # Medians, because a few slow iterations are no change.
    parts = residual[:at], residual[at:]
    middles = [float(np.median(part)) for part in parts]
    spread = max(_scale(part - middle) for part, middle in zip(parts, middles, strict=True))
    return at if abs(middles[1] - middles[0]) > max(MIN_CHANGE, spread) else None


def _find_single_batch(found: ServingIterations, rows: Int64, total: Float64) -> tuple[int, float] | None:
    """Return (requests, median ns) of decode iterations where nearly all have the same batch size."""
    decodes = found.phase[rows] == DECODE
    if decodes.sum() < MIN_NONZERO:
        return None
    sizes, counts = np.unique(found.decode_requests[rows][decodes], return_counts=True)
    size = int(sizes[np.argmax(counts)])
    if len(sizes) >= MIN_LEVELS:
        return None
    mine = decodes & (found.decode_requests[rows] == size)
    return size, float(np.median(total[mine]))


class _Evidence(NamedTuple):
    """What decides whether a coefficient is known: counts float64[n, 4], the fit, and what the labels count."""

    data: Float64
    values: Float64
    half: Float64
    inflation: Float64
    total: Float64
    has_kv: bool
    apart: bool
    batch: tuple[int, float] | None
    uneven: bool


def _judge(column: int, fit: _Evidence) -> Coefficient:
    """Return the coefficient with its interval, or why it is unknown."""
    nouns = {PROMPT: "prompt tokens", REQUEST: "decoding requests", KV: "KV tokens"}
    if column == KV and not fit.has_kv:
        return Coefficient(None, reason="the labels don't say how many tokens the KV cache holds")
    if column != FIXED:
        counts = fit.data[:, column]
        if not counts.any():
            return Coefficient(None, reason=f"no iteration has {nouns[column]}")
        if (counts > 0).sum() < MIN_NONZERO:
            return Coefficient(
                None, reason=f"only {int((counts > 0).sum())} of {len(counts)} iterations have {nouns[column]}"
            )
        if len(np.unique(counts[counts > 0])) < MIN_LEVELS:
            return Coefficient(None, reason=_few_levels(nouns[column], column, fit.batch))
    if column == FIXED and fit.batch is not None:
        return Coefficient(None, reason=_few_levels("", column, fit.batch))
    if not fit.has_kv and (column in (FIXED, REQUEST) or not fit.apart):
        return Coefficient(
            None,
            reason="the labels don't say how many tokens the KV cache holds, which adds to each request's cost",
        )
    if fit.uneven and (column != KV or not fit.apart):
        return Coefficient(None, reason="the time doesn't grow evenly with the number of decoding requests")
    if fit.inflation[column] > MAX_INFLATION:
        return Coefficient(
            None, reason="it can't be separated from the other costs: their counts grow and shrink together"
        )
    value, width = float(fit.values[column]), float(fit.half[column])
    share = value * float(fit.data[:, column].mean()) / float(fit.total.mean())
    if value <= 0 or width >= value or share < MIN_EFFECT_SHARE:
        return Coefficient(None, reason="it is too small to measure in these iterations")
    if width > MAX_INTERVAL_RATIO * value:
        low, high = format_duration(max(0.0, value - width)), format_duration(value + width)
        return Coefficient(None, reason=f"it is between {low} and {high}; more iterations would narrow it down")
    return Coefficient(value, max(0.0, value - width), value + width)


def _few_levels(noun: str, column: int, batch: tuple[int, float] | None) -> str:
    if batch is not None and column in (FIXED, REQUEST):
        return f"nearly all decode iterations have {batch[0]} requests, so only their sum of costs is known"
    return f"the number of {noun} hardly varies"


class _Fit(msgspec.Struct, frozen=True):
    """Values float64[p]; influence float64[n, p] of each row on them; variance inflation float64[p]."""

    values: Float64
    influence: Float64
    inflation: Float64


def _fit(data: Float64, times: Float64, scale_by: Float64) -> _Fit:
    """Fit `times` by non-negative coefficients of the columns, with errors relative to `scale_by`."""
    base = 1.0 / scale_by
    scaled, target = data * base[:, None], times * base
    norms = np.linalg.norm(scaled, axis=0)
    norms[norms == 0] = 1.0
    scaled = scaled / norms
    weights = np.ones(len(target))
    values = np.zeros(data.shape[1])
    for _ in range(_MAX_ROUNDS):
        before, values = values, _solve_non_negative(scaled, target, weights)
        residual = target - scaled @ values
        squares = (residual / (MAX_STANDARDIZED_RESIDUAL * _scale(residual))) ** 2
        weights = np.clip(1 - squares, 0, 1) ** 2
        if np.abs(values - before).max() <= _TOLERANCE * np.abs(values).max(initial=_MIN_DIVISOR):
            break
    information = scaled.T @ (scaled * weights[:, None])
    inverse = np.linalg.pinv(information, rcond=_RANK_CUTOFF)
    leverage = np.clip(np.einsum("ij,jk,ik->i", scaled, inverse, scaled) * weights, 0, _MAX_LEVERAGE)
    # An M-estimator's influence divides by the slope of its weighted residual, not by the weight (Huber 1981).
    slope = np.where(squares < 1, (1 - squares) * (1 - 5 * squares), 0.0).mean() / weights.mean()
    influence = (scaled * (weights * residual / (1 - leverage))[:, None]) @ inverse / max(slope, _MIN_SLOPE)
    unscaled = np.einsum("ij,ij->j", scaled, scaled * weights[:, None])
    # The pseudoinverse is small where columns depend on each other exactly, so a bit is added to the diagonal.
    inflation = np.diag(np.linalg.inv(information + _RIDGE * np.eye(len(information)))) * unscaled
    return _Fit(values / norms, influence / norms, inflation)


def _scale(residual: Float64) -> float:
    """Return the robust standard deviation of residuals around 0."""
    return max(_MAD_TO_DEVIATION * float(np.median(np.abs(residual))), 1e-9)


def _solve_non_negative(data: Float64, target: Float64, weights: Float64) -> Float64:
    """Return the non-negative least squares solution, by trying all sets of columns (at most 4)."""
    count = data.shape[1]
    weighted = data * weights[:, None]
    products, right = data.T @ weighted, weighted.T @ target
    best, best_cost = np.zeros(count), 0.0
    for size in range(1, count + 1):
        for columns in combinations(range(count), size):
            chosen = list(columns)
            part = np.linalg.lstsq(products[np.ix_(chosen, chosen)], right[chosen], rcond=_RANK_CUTOFF)[0]
            if (part < 0).any():
                continue
            # |y - Xp|^2 less the constant |y|^2.
            cost = float(part @ products[np.ix_(chosen, chosen)] @ part - 2 * part @ right[chosen])
            if cost < best_cost - _RANK_CUTOFF * abs(best_cost):
                best, best_cost = np.zeros(count), cost
                best[chosen] = part
    return best


def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t with `freedom` >= 3, by Cornish and Fisher's expansion."""
    from statistics import NormalDist  # takes 4 ms to import, and few traces serve

    z = NormalDist().inv_cdf(probability)
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + first + second


def outlier_mask(cost: IterationCost, work: Int64) -> Bool:
    """Return which iterations take longer than the law says by more than its scatter explains, bool[k]."""
    if cost.predicted is None:
        return np.zeros(len(work), np.bool_)
    with np.errstate(invalid="ignore"):
        excess: npt.NDArray[np.float64] = (work - cost.predicted) / np.maximum(work, 1)
        late: Bool = excess > max(MAX_STANDARDIZED_RESIDUAL * cost.spread, _MIN_OUTLIER_EXCESS)
    return late
