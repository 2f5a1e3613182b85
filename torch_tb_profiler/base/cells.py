"""A value of a table as text."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.text import replace_unprintable
from torch_tb_profiler.base.units import MINUS, format_bytes, format_duration


def format_cell(key: str, value: Any) -> str:
    """A value with the unit that its name says."""
    name = key.rsplit(".", 1)[-1]
    if value is None:
        return "-"
    if isinstance(value, bool) or isinstance(value, str):
        return replace_unprintable(str(value))
    if name.endswith("_bytes") or name == "bytes":
        return format_bytes(value)
    if (name.endswith("_ns") and key not in ("trace_start_ns", "base_ns")) or "categories." in key:
        return format_duration(value)
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f"{MINUS}{number[1:]}" if number.startswith("-") else number
