"""Cells of columns as Python values, in which None is what is not known."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Float64, Int64


def optional_int(value: np.int64 | int) -> int | None:
    """None for ABSENT."""
    return None if value == ABSENT else int(value)


def optional_float(value: np.float64 | float) -> float | None:
    """None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


def optional_ints(values: Int64) -> list[int | None]:
    """None for ABSENT."""
    return [optional_int(value) for value in values.tolist()]


def optional_floats(values: Float64) -> list[float | None]:
    """None for NaN and infinity."""
    return [optional_float(value) for value in values.tolist()]
