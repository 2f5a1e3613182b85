"""Sorting by group, and medians of groups.

Each function takes `which`, int64[k] the group 0..count-1 of each value.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.compiled import column_functions
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Float64, Int64


def sort_by_group(which: Int64, values: Int64, count: int) -> Int64:
    """Return int64[k], positions in order of group, then of value; equal values in any order."""
    if functions := column_functions(len(which)):
        return functions.sort(which, values, count)
    key = _combine_keys(which, values, count)
    return np.lexsort((values, which)) if key is None else np.argsort(key)


def stable_sort_by_group(which: Int64, values: Int64, count: int) -> Int64:
    """Return int64[k], positions in order of group, then of value; equal values in their original order."""
    if functions := column_functions(len(which)):
        return functions.sort(which, values, count)
    key = _combine_keys(which, values, count)
    return np.lexsort((values, which)) if key is None else np.argsort(key, kind="stable")


def _combine_keys(which: Int64, values: Int64, count: int) -> Int64 | None:
    """Return one sort key, several times faster to sort by than group and value, or None if it overflows."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return which * (high - low + 1) + (values - low) if count * (high - low + 1) < 2**63 else None


def medians_of_others(values: Int64, begin: Int64, size: Int64, position: Int64) -> Int64:
    """Return int64[k], the median of a group without the value at `position`, rounded down.

    values    sorted within each group
    begin     int64[k]  where the group begins in `values`; size: number of its values, at least 2
    position  int64[k]  index within the group of the value left out
    """
    # Shifts, as numpy divides several times more slowly.
    low, high = ((middle + (middle >= position)) for middle in ((size - 2) >> 1, (size - 1) >> 1))
    below, above = values[begin + low], values[begin + high]
    middle: Int64 = below + ((above - below) >> 1)
    return middle


def others_medians(which: Int64, values: Int64, count: int) -> Int64:
    """Return int64[k], for each value the median of its group's others, rounded down; itself if it is alone."""
    return others_and_middles(which, values, count)[0]


def others_and_middles(which: Int64, values: Int64, count: int) -> tuple[Int64, Int64]:
    """Return (`others_medians`, `middle_entries`)."""
    if functions := column_functions(len(which)):
        return functions.others(which, values, count)
    order = stable_sort_by_group(which, values, count)
    counts = np.bincount(which, minlength=count)
    begin, size = (np.cumsum(counts) - counts)[which[order]], counts[which[order]]
    position = np.arange(len(order)) - begin
    several = np.flatnonzero(size > 1)
    medians: Int64 = values.copy()
    medians[order[several]] = medians_of_others(values[order], begin[several], size[several], position[several])
    return medians, _find_middles(order, counts)


def middle_entries(which: Int64, values: Int64, count: int) -> Int64:
    """Return int64[count], the position of each group's median, of two middle values the lower.

    It is NO_CODE without any. Of equal values those that come first count as lower.
    """
    if functions := column_functions(len(which)):
        return functions.middles(which, values, count)
    return _find_middles(stable_sort_by_group(which, values, count), np.bincount(which, minlength=count))


def _find_middles(order: Int64, counts: Int64) -> Int64:
    middles = np.full(len(counts), NO_CODE, np.int64)
    begins, nonempty = np.cumsum(counts) - counts, counts > 0
    middles[nonempty] = order[(begins + ((counts - 1) >> 1))[nonempty]]
    return middles


def lower_medians(values: Int64, which: Int64, count: int) -> Int64:
    """Return int64[count], the median (of two middle values the lower) of each group; ABSENT for empty groups."""
    middles = middle_entries(which, values, count)
    return np.where(middles >= 0, np.append(values, ABSENT)[middles], ABSENT)


def middle_means(values: Int64, which: Int64, counts: Int64) -> Int64:
    """Return int64[len(counts)], the median of each group, the mean of the two middle values rounded towards 0.

    counts  number of values of each group, at least 1
    """
    return group_medians(values, which, counts).astype(np.int64)


def group_medians(values: Int64, which: Int64, counts: Int64) -> Float64:
    """Return float64[len(counts)], the median of each group, the mean of two middle values.

    counts  number of values of each group, at least 1
    """
    ordered = values[sort_by_group(which, values, len(counts))]
    begin = np.cumsum(counts) - counts
    low, high = (ordered[begin + place].astype(np.float64) for place in ((counts - 1) // 2, counts // 2))
    middles: Float64 = (low + high) / 2
    return middles


def medians_without_each(values: Float64) -> Float64:
    """Return float64[k], for each of at least two values the median of the others."""
    order = np.argsort(values, kind="stable")
    ordered, position, others = values[order], np.arange(len(values)), len(values) - 1
    low, high = (ordered[place + (place >= position)] for place in ((others - 1) // 2, others // 2))
    medians = np.empty(len(values))
    medians[order] = (low + high) / 2
    return medians
