"""Rows of several columns of numbers, each distinct one once."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import Int32, Int64


def distinct_rows(*columns: Int32 | Int64) -> tuple[list[tuple[int, ...]], Int64]:
    """(the distinct rows, int64[k]: which of them each row is).

    Columns are counted one after the other, since most hold few values; sorting whole rows takes far longer.
    """
    of = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if len(column) and (column == column[0]).all():
            continue
        values, code = np.unique(column, return_inverse=True)
        of = of * len(values) + code.ravel()
        if len(values) > 1:
            _, of = np.unique(of, return_inverse=True)
            of = of.ravel()
    _, first = np.unique(of, return_index=True)
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), of
