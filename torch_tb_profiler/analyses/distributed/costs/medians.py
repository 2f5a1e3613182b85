"""Medians that leave one out."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import Int64


def sorted_within(which: Int64, values: Int64, count: int) -> Int64:
    """int64[k]: positions by group (`which`, 0..count-1), then by value; equal ones in any order."""
    key = _one_key(which, values, count)
    return np.lexsort((values, which)) if key is None else np.argsort(key)


def order_within(which: Int64, values: Int64, count: int) -> Int64:
    """The same; equal ones as they come."""
    key = _one_key(which, values, count)
    return np.lexsort((values, which)) if key is None else np.argsort(key, kind="stable")


def _one_key(which: Int64, values: Int64, count: int) -> Int64 | None:
    """int64[k] in order of group and value: one sorts in a fraction of the time of two; None if it overflows."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return which * (high - low + 1) + (values - low) if count * (high - low + 1) < 2**63 else None


def median_of_others(values: Int64, begin: Int64, size: Int64, position: Int64) -> Int64:
    """int64[k]: of each group of sorted values that begins at `begin`, the median without the one at `position`;
    `size` > 1."""
    # Shifts: numpy takes several times as long to divide.
    low, high = ((middle + (middle >= position)) for middle in ((size - 2) >> 1, (size - 1) >> 1))
    below, above = values[begin + low], values[begin + high]
    middle: Int64 = below + ((above - below) >> 1)
    return middle
