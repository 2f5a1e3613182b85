"""Numbers for people: the one home of formatting on the Python side (text output and advice)."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from math import isfinite, log10

from torch_tb_profiler.base.errors import UsageError

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


def parse_duration(text: str) -> int:
    """ns of "1.5 ms", "20us", "3s"; UsageError without a number or a unit."""
    match = re.fullmatch(r"\s*(-?[0-9.]+)\s*(ns|us|µs|ms|s)\s*", text)
    try:
        number = Decimal(match[1]) if match else None
    except InvalidOperation:
        number = None
    if match is None or number is None:
        raise UsageError(f"{text!r} is no duration", hint="a number with ns, us, ms or s, such as 1.5ms")
    scale = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}[match[2]]
    return int(number * scale)


def format_bytes(count: float | None) -> str:
    """1.23 GiB."""
    if count is None:
        return "-"
    scale, unit = next((row for row in _BYTES if abs(count) >= row[0]), _BYTES[-1])
    return f"{format_number(count / scale)} {unit}"


def parse_bytes(text: str) -> int:
    """Bytes of "1.5 GiB", "512 MB", "20 B"; UsageError without a number or a unit."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]i?)?B\s*", text)
    try:
        number = Decimal(match[1]) if match else None
    except InvalidOperation:
        number = None
    if match is None or number is None:
        raise UsageError(
            f"{text!r} is no size", hint="a number with B, KiB, MiB, GiB, KB, MB or GB, such as 1.5GiB"
        )
    prefix = match[2] or ""
    step = 1024 if prefix.endswith("i") else 1000
    return int(number * step ** (" KMGT".index(prefix[0]) if prefix else 0))


def format_ratio(ratio: float | None) -> str:
    """55.5 %."""
    return "-" if ratio is None else f"{format_number(100 * ratio)} %"
