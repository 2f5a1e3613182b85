"""Numbers for people: the one home of formatting on the Python side (text output and advice)."""

from __future__ import annotations

from math import isfinite, log10

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def format_number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, thousands separated: 0.0123, 1.23, 12.3, 1,235."""
    if not isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - int(log10(abs(value)) // 1))
    return f"{value:,.{decimals}f}"


def format_duration(ns: float | None) -> str:
    """12.3 ms; an empty string becomes "-" where nothing is known."""
    if ns is None:
        return "-"
    scale, unit = next((row for row in _TIMES if abs(ns) >= row[0]), _TIMES[-1])
    return f"{format_number(ns / scale)} {unit}"


def format_bytes(count: float | None) -> str:
    """1.23 GiB."""
    if count is None:
        return "-"
    scale, unit = next((row for row in _BYTES if abs(count) >= row[0]), _BYTES[-1])
    return f"{format_number(count / scale)} {unit}"


def format_ratio(ratio: float | None) -> str:
    """55.5 %."""
    return "-" if ratio is None else f"{format_number(100 * ratio)} %"
