"""Columns as bytes, for payloads."""

from __future__ import annotations

from torch_tb_profiler.model.trace import Float64, Int64


def float64_bytes(values: Int64 | Float64) -> bytes:
    """Little-endian float64, as the page reads them: whole numbers are exact up to 2^53."""
    return values.astype("<f8").tobytes()
