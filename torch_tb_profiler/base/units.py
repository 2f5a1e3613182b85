"""Numbers for people, as the page writes them (fe/src/base/format.ts): tests/golden/numbers.json holds both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import isfinite

from torch_tb_profiler.base.errors import UsageError

UNKNOWN_TEXT = "–"
MINUS = "−"
"""The sign of what is below zero, as wide as a plus; a hyphen is a shorter line."""
_TIMES = ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (10**9, "s"))
_BYTES = ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB"), (2**40, "TiB"))
# A float has at most 309 digits before the point; all of them are written.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)


def format_number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, but every digit of a whole number: 0.0123, 1.23, 12.3, 1,235.

    Halves are rounded away from zero, in the shortest decimal that stands for the float, as Intl.NumberFormat
    rounds them.
    """
    if not isfinite(value):
        return UNKNOWN_TEXT
    if value == 0:
        return "0"
    exact = Decimal(repr(float(value)))
    decimals = max(0, digits - 1 - exact.adjusted())
    rounded = _rounded(exact, decimals)
    if decimals > 0 and rounded.adjusted() > exact.adjusted():  # 9.995 is 10.0, not 10.00
        rounded = _rounded(rounded, decimals - 1)
    return f"{rounded:,f}".replace("-", MINUS)


def _rounded(value: Decimal, decimals: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-decimals), context=_EXACT)


def _scaled(value: float, units: Sequence[tuple[int, str]]) -> str:
    """In the largest unit of which it is one or more once it is rounded: 999.5 µs is 1.00 ms."""
    scale, unit = units[0]
    for larger, name in units[1:]:
        if abs(value) / scale < larger / scale - 0.5:
            break
        scale, unit = larger, name
    return f"{format_number(value / scale)} {unit}"


def format_duration(ns: float | None) -> str:
    """12.3 ms; "–" where nothing is known."""
    return UNKNOWN_TEXT if ns is None else _scaled(ns, _TIMES)


def parse_duration(text: str) -> int:
    """ns of "1.5 ms", "20us", "3s"; UsageError without a number or a unit."""
    match = re.fullmatch(r"\s*(-?[0-9.]+)\s*(ns|us|µs|ms|s)\s*", text)
    try:
        number = Decimal(match[1]) if match else None
    except InvalidOperation:
        number = None
    if match is None or number is None:
        raise UsageError(f"{text!r} is not a valid duration", hint="a number with ns, us, ms or s, such as 1.5ms")
    scale = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}[match[2]]
    return int(number * scale)


def format_bytes(count: float | None) -> str:
    """8 B, 1.23 GiB; a mean may be 8.50 B; "–" where nothing is known."""
    if count is None:
        return UNKNOWN_TEXT
    return (
        f"{int(count)} B".replace("-", MINUS)
        if abs(count) < 1000 and count == int(count)
        else _scaled(count, _BYTES)
    )


def parse_bytes(text: str) -> int:
    """Bytes of "1.5 GiB", "512 MB", "20 B"; UsageError without a number or a unit."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]i?)?B\s*", text)
    try:
        number = Decimal(match[1]) if match else None
    except InvalidOperation:
        number = None
    if match is None or number is None:
        raise UsageError(
            f"{text!r} is not a valid size", hint="a number with B, KiB, MiB, GiB, KB, MB or GB, such as 1.5GiB"
        )
    prefix = match[2] or ""
    step = 1024 if prefix.endswith("i") else 1000
    return int(number * step ** (" KMGT".index(prefix[0]) if prefix else 0))


def format_ratio(ratio: float | None) -> str:
    """55.5%, 20%, 100%: at most one decimal, and <0.1% for the least above nothing; "–" where nothing is known."""
    if ratio is None or not isfinite(ratio):
        return UNKNOWN_TEXT
    percent = 100.0 * ratio
    tenths = _rounded(Decimal(repr(float(percent))), 0 if abs(percent) >= 99.95 else 1)
    if tenths == 0:
        return "0%" if percent == 0 else f"{MINUS if percent < 0 else ''}<0.1%"
    return f"{tenths:,f}".removesuffix(".0").replace("-", MINUS) + "%"
