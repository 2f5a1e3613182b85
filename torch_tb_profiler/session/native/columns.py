"""Columns as functions in C get them: checked in Python, so that nothing is read or written beyond one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def as_column(values: npt.NDArray[Any], dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """Return `values` in the layout that C reads. Raises ValueError if they have another shape."""
    if values.shape != shape:
        raise ValueError(f"a column has the shape {values.shape} instead of {shape}")
    return np.ascontiguousarray(values, dtype)


def address(column: npt.NDArray[Any]) -> int:
    """Return where the first entry of a column is in memory."""
    place: int = column.__array_interface__["data"][0]  # `ctypes.data` takes twice as long
    return place


def check_numbers(numbers: npt.NDArray[np.integer[Any]], count: int) -> Any:
    """Return `numbers`. Raises ValueError if one isn't 0..count-1: C would write beyond the columns."""
    check_in_range(not len(numbers) or 0 <= numbers.min() <= numbers.max() < count, count)
    return numbers


def check_in_range(in_range: bool, count: int) -> None:
    """Raise ValueError unless all numbers are in 0..count-1, as `in_range` says."""
    if not in_range:
        raise ValueError(f"a number is not among the {count} that there are")
