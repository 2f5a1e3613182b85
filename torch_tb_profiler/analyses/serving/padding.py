"""Batches that are padded to the size of a captured graph, as the times of iterations show it.

requests    25   26   27   28   29   30   31   32 | 33   34   35
time                                        1.4 ms | 1.6 ms            padded to 32, and to 40

A replayed graph always computes the batch that it was captured for, so the time rises in steps. A cost per request
that is fitted through the steps as if they were a slope would be too high or too low.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Bool, Float64, Int64

MIN_REPLICATES = 10
"""Fewest iterations beyond the first of each batch size that tell scatter from a step."""

_MIN_SIZES = 4
"""Fewer batch sizes are no ground for steps: a line through their times explains them as well."""

_MIN_STEPS = 3
"""Fewer steps may be one jump of the time, such as another kernel from some size on."""

MISFIT = 0.002
"""A law that misses the mean time of a batch size by this share is exact enough."""

STEP_PENALTIES = (5.0, 10.0, 20.0)
"""A step must lower the squared standardized error by this much; whatever one of them finds is possible."""

MIN_EVIDENCE = 16.0
"""Squared standardized error by which one explanation must beat another to rule it out."""

MAX_STANDARDIZED = 3.72
"""Quantile of the normal distribution (1 in 10,000) beyond which a law does not fit."""


class Batches(msgspec.Struct, frozen=True):
    """What batches cost as if they had `sizes` requests, the simplest or else the likeliest first.

    sizes   int64[n] by row, one or more that the times can't tell apart
    uneven  none of them explains the times
    """

    sizes: tuple[Int64, ...]
    uneven: bool


class _Groups(msgspec.Struct, frozen=True):
    """Mean time of each batch size: requests int64[k] rising, mean float64[k], error float64[k] of the mean."""

    requests: Int64
    mean: Float64
    error: Float64


def padded_batches(requests: Int64, decodes: Bool, typical: Bool, times: Float64, padded: Int64) -> Batches:
    """Return the sizes of batches that explain the times of decode iterations.

    requests int64[n]; decodes bool[n]: it decodes only; typical bool[n]: its time is no outlier;
    times float64[n] without attention; padded int64[n] what the labels call the size, ABSENT where they don't.
    """
    groups = _compute_mean_times(requests[decodes & typical], times[decodes & typical])
    if groups is None:
        return Batches((requests,), False)
    candidates = [groups.requests]
    if (padded[decodes] > requests[decodes]).any():
        named = [padded[decodes & (requests == each)].max() for each in groups.requests]
        candidates.append(np.maximum(np.array(named, np.int64), groups.requests))
    for penalty in STEP_PENALTIES:
        for steps in _find_steps(groups, penalty):
            if not any(np.array_equal(steps, each) for each in candidates):
                candidates.append(steps)
    misfits = [_misfit(groups, sizes.astype(np.float64)) for sizes in candidates]
    best = min(misfits)
    # Of what the times can't tell apart, no padding is simplest.
    order = sorted(range(len(candidates)), key=lambda each: (each > 0, misfits[each]))
    plausible = [candidates[each] for each in order if misfits[each] <= best + MIN_EVIDENCE]
    return Batches(
        tuple(_by_row(requests, decodes, groups.requests, sizes) for sizes in plausible),
        best > _largest_misfit(len(groups.requests) - 2),
    )


def _by_row(requests: Int64, decodes: Bool, known: Int64, sizes: Int64) -> Int64:
    size_of = dict(zip(known.tolist(), sizes.tolist(), strict=True))
    decode_sizes = [size_of.get(each, each) for each in requests.tolist()]
    of_row: Int64 = np.where(decodes, np.array(decode_sizes, np.int64), requests)
    return of_row


def _compute_mean_times(requests: Int64, times: Float64) -> _Groups | None:
    """Return the mean time of each batch size, or None where too few sizes repeat."""
    known, number = np.unique(requests, return_inverse=True)
    if len(known) < _MIN_SIZES or len(times) - len(known) < MIN_REPLICATES:
        return None
    count = np.bincount(number)
    mean = np.bincount(number, times) / count
    scatter = float(np.sqrt(((times / mean[number] - 1) ** 2).sum() / (len(times) - len(known))))
    error = mean * np.sqrt(scatter**2 / count + MISFIT**2)
    return _Groups(known.astype(np.int64), mean, error)


def _find_steps(groups: _Groups, penalty: float) -> list[Int64]:
    """Return the sizes that batches may be padded to, each int64[k]; none if every size has a time of its own.

    Where a step ends between two sizes that occur, its time tells which size it is padded to, give or take one.
    """
    first = _partition_groups(groups, penalty)
    if len(first) == len(groups.requests) or len(first) < _MIN_STEPS:
        return []
    last = np.append(first[1:], len(groups.requests))
    low = groups.requests[last - 1]  # padded at least to the largest of its step, and below the next step
    high = np.append(groups.requests[first[1:]] - 1, 2 * low[-1])
    weight = 1 / groups.error**2
    level = np.add.reduceat(groups.mean * weight, first) / np.add.reduceat(weight, first)
    certain = low == high
    if certain.sum() < 2:
        certain = np.append(np.ones(len(low) - 1, np.bool_), False)
    slope, base = np.polyfit(low[certain].astype(np.float64), level[certain], 1)
    if slope <= 0:
        return []
    likely = np.round((level - base) / slope).astype(np.int64)
    return [np.repeat(np.clip(likely + more, low, high), last - first) for more in (0, -1, 1)]


def _partition_groups(groups: _Groups, penalty: float) -> Int64:
    """Return where steps begin: the partition with the least squared error and a penalty for each step."""
    count, weight = len(groups.mean), 1 / groups.error**2
    sums = [np.append(0.0, np.cumsum(weight * groups.mean**power)) for power in (0, 1, 2)]
    least, before = np.zeros(count + 1), np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):
        begin = np.arange(end)
        w, m, s = (each[end] - each[begin] for each in sums)
        total = least[begin] + np.maximum(s - m**2 / w, 0) + penalty
        before[end] = int(np.argmin(total))
        least[end] = total[before[end]]
    starts, end = [], count
    while end > 0:
        end = int(before[end])
        starts.append(end)
    return np.array(starts[::-1], np.int64)


def _misfit(groups: _Groups, sizes: Float64) -> float:
    """Return the squared standardized error of a line through the mean times."""
    data = np.column_stack([np.ones(len(sizes)), sizes]) / groups.error[:, None]
    target = groups.mean / groups.error
    values = np.linalg.lstsq(data, target, rcond=None)[0]
    return float(((target - data @ values) ** 2).sum())


def _largest_misfit(freedom: int) -> float:
    """Return the quantile of chi-squared for MAX_STANDARDIZED, by Wilson and Hilferty."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + MAX_STANDARDIZED * part**0.5) ** 3)
