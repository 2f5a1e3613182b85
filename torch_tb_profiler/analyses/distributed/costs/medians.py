"""Medians that leave one out."""

from __future__ import annotations

from torch_tb_profiler.model.trace import Int64


def median_of_others(values: Int64, begin: Int64, size: Int64, position: Int64) -> Int64:
    """int64[k]: of each group of sorted values that begins at `begin`, the median without the one at `position`;
    `size` > 1."""
    low, high = ((middle + (middle >= position)) for middle in ((size - 2) // 2, (size - 1) // 2))
    below, above = values[begin + low], values[begin + high]
    middle: Int64 = below + (above - below) // 2
    return middle
