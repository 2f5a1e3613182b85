"""Numbers, names, and table cells as people read them.

The page formats numbers the same way (fe/src/base/format.ts); tests/golden/numbers.json holds both to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import inf, isfinite
from typing import Any, Literal

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.patterns import lazy_regex

UNKNOWN_TEXT = "–"
MINUS = "−"
"""The minus sign, as wide as a plus; a hyphen is shorter."""

_TIMES = ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (10**9, "s"))
_RATES = ((1, "B/s"), (10**3, "KB/s"), (10**6, "MB/s"), (10**9, "GB/s"))
"""Powers of ten, as bandwidths of memories and links are given."""
_BYTES = ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB"), (2**40, "TiB"))
# A float has at most 309 digits before the point; all of them are written.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
Rounding = Literal["half", "down", "up"]
_ROUNDINGS = {"half": ROUND_HALF_UP, "down": ROUND_FLOOR, "up": ROUND_CEILING}
_DIGITS = lazy_regex(r"([0-9]{1,18})")


def format_number(value: float, digits: int = 3, rounding: Rounding = "half") -> str:
    """Return `value` with `digits` significant digits, but all digits of its integer part: 0.0123, 1.23, 1,235.

    Halves are rounded away from zero, starting from the shortest decimal of the float, as Intl.NumberFormat does.
    A bound stays true rounded `down` after "at least", or `up` after "at most".
    """
    if not isfinite(value):
        return UNKNOWN_TEXT
    if value == 0:
        return "0"
    exact = _decimal(value, rounding)
    decimals = max(0, digits - 1 - exact.adjusted())
    rounded = _round(exact, decimals, rounding)
    if decimals > 0 and rounded.adjusted() > exact.adjusted():  # 9.995 is 10.0, not 10.00
        rounded = _round(rounded, decimals - 1, rounding)
    return f"{rounded:,f}".replace("-", MINUS)


def _decimal(value: float, rounding: Rounding) -> Decimal:
    """Return the decimal to round: for a bound, without the last digits, which a sum of floats gets wrong."""
    return Decimal(repr(float(value)) if rounding == "half" else f"{value:.12g}")


def _round(value: Decimal, decimals: int, rounding: Rounding = "half") -> Decimal:
    return value.quantize(Decimal(1).scaleb(-decimals), rounding=_ROUNDINGS[rounding], context=_EXACT)


def _scale(
    value: float, units: Sequence[tuple[int, str]], rounding: Rounding = "half", resolution: float = inf
) -> str:
    """Return `value` in the largest unit that makes it at least 1 after rounding: 999.5 µs is 1.00 ms.

    It has three significant digits, or as many as make its last digit no coarser than `resolution`.
    """
    scale, unit = units[0]
    for larger, name in units[1:]:
        below = larger / scale - abs(value) / scale
        if below >= 1 or (rounding != "up" and below > 0.5):
            break
        scale, unit = larger, name
    digits = 3
    if isfinite(resolution) and value:
        digits = max(digits, 1 + _exponent(value / scale) - _exponent(resolution / scale))
    return f"{format_number(value / scale, digits, rounding)} {unit}"


def _exponent(value: float) -> int:
    """Return the power of ten of the first digit of `value`."""
    return Decimal(repr(float(value))).adjusted()


def format_duration(ns: float | None, rounding: Rounding = "half") -> str:
    """Return a duration with its unit, such as "12.3 ms", or "–" for None; `rounding`: see `format_number`."""
    return UNKNOWN_TEXT if ns is None else _scale(ns, _TIMES, rounding)


def format_durations(first: float, second: float) -> tuple[str, str]:
    """Return two durations with digits enough to show how they differ: 1.000 s and 1.002 s, 100 ms and 105 ms.

    Rounded to three digits, 1.000 s and 1.002 s would be equal beside "2 ms slower". No digit is finer than 1 ns.
    """
    resolution = inf if first == second else max(abs(second - first) / 2, 1.0)
    return _scale(first, _TIMES, resolution=resolution), _scale(second, _TIMES, resolution=resolution)


def parse_duration(text: str) -> int:
    """Return the ns of "1.5 ms", "20us", or "3s"; raise UsageError without a number or a unit."""
    match = re.fullmatch(r"\s*(-?[0-9.]+)\s*(ns|us|µs|ms|s)\s*", text)
    try:
        number = Decimal(match[1]) if match else None
    except InvalidOperation:
        number = None
    if match is None or number is None:
        raise UsageError(f"{text!r} is not a valid duration", hint="a number with ns, us, ms or s, such as 1.5ms")
    scale = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}[match[2]]
    return int(number * scale)


def format_bytes(count: float | None, rounding: Rounding = "half") -> str:
    """Return a size with its unit, such as "8 B" or "1.23 GiB" (a mean may be "8.50 B"), or "–" for None.

    `rounding`: see `format_number`.
    """
    if count is None:
        return UNKNOWN_TEXT
    return (
        f"{int(count)} B".replace("-", MINUS)
        if abs(count) < 1000 and count == int(count)
        else _scale(count, _BYTES, rounding)
    )


def format_rate(bytes_per_s: float | None) -> str:
    """Return a bandwidth with its unit, such as "285 KB/s" or "1,555 GB/s", or "–" for None."""
    return UNKNOWN_TEXT if bytes_per_s is None else _scale(bytes_per_s, _RATES)


def parse_bytes(text: str) -> int:
    """Return the bytes of "1.5 GiB", "512 MB", or "20 B"; raise UsageError without a number or a unit."""
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


def format_ratio(ratio: float | None, rounding: Rounding = "half") -> str:
    """Return a ratio in percent with at most one decimal, "<0.1%" for tiny ones, or "–" for None and NaN.

    `rounding`: see `format_number`. A tiny ratio that is rounded `down` has two digits instead, because it is a
    lower bound, and "at least <0.1%" bounds nothing.
    """
    if ratio is None or not isfinite(ratio):
        return UNKNOWN_TEXT
    percent = 100.0 * ratio
    exact = _decimal(percent, rounding)
    tenths = _round(exact, 0 if abs(percent) >= (100 if rounding == "down" else 99.95) else 1, rounding)
    if tenths == 0 and rounding == "down" and percent > 0:
        return f"{format_number(percent, 2, rounding)}%"
    if tenths == 0:
        return "0%" if percent == 0 else f"{MINUS if percent < 0 else ''}<0.1%"
    return f"{tenths:,f}".removesuffix(".0").replace("-", MINUS) + "%"


def shorten_middle(text: str, most: int) -> str:
    """Return `text` with its middle replaced by "…" if it is longer than `most` characters."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def replace_unprintable(text: str) -> str:
    """Return `text` with a space for every unprintable character: names in a trace may hold terminal escapes."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares the numbers in a name by value: rank, rank9, rank10."""
    texts_and_numbers = _DIGITS.split(name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(texts_and_numbers)]


def format_cell(key: str, value: Any) -> str:
    """Return a table cell as text, in the unit that the end of its column's name says (`_ns`, `_bytes`)."""
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
