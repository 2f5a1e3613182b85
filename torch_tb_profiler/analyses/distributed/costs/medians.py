"""Medians that leave one out."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import Int64


def sorted_within(which: Int64, values: Int64, count: int) -> Int64:
    """int64[k]: positions by group (`which`, 0..count-1), then by value; equal ones in any order."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if count * (high - low + 1) < 2**63:
        return np.argsort(which * (high - low + 1) + (values - low))  # one key takes a fraction of the time of two
    return np.lexsort((values, which))


def median_of_others(values: Int64, begin: Int64, size: Int64, position: Int64) -> Int64:
    """int64[k]: of each group of sorted values that begins at `begin`, the median without the one at `position`;
    `size` > 1."""
    low, high = ((middle + (middle >= position)) for middle in ((size - 2) // 2, (size - 1) // 2))
    below, above = values[begin + low], values[begin + high]
    middle: Int64 = below + (above - below) // 2
    return middle
