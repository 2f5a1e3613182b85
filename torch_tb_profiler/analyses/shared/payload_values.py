"""Values of columns as payloads hold them: Python values in which None is unknown, and bytes."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Float64, Int64


def optional_int(value: np.int64 | int) -> int | None:
    """Return the value, or None for ABSENT."""
    return None if value == ABSENT else int(value)


def optional_float(value: np.float64 | float) -> float | None:
    """Return the value, or None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


def optional_ints(values: Int64) -> list[int | None]:
    """Return the values, with None for ABSENT."""
    return [optional_int(value) for value in values.tolist()]


def optional_floats(values: Float64) -> list[float | None]:
    """Return the values, with None for NaN and infinity."""
    return [optional_float(value) for value in values.tolist()]


def float64_bytes(values: Int64 | Float64) -> bytes:
    """Pack values as little-endian float64, as the page reads them: integers are exact up to 2^53."""
    return values.astype("<f8").tobytes()
