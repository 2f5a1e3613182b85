"""Convert `ts` and `dur` (decimal microseconds) to exact int64 nanoseconds, and find times that can't be true."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, Bool, Int64

EXACT_LIMIT_US = 2.0**43
"""Below this, a float64 of microseconds still resolves nanoseconds; above, the decimal text must be read."""

_LIMIT_US = 2.0**63 / 1000
"""Exclusive upper bound of times in microseconds whose nanoseconds fit int64."""

QUARTER_NS = 7_889_238 * 10**9
"""A quarter of a year in ns; Kineto counts time from a multiple of it."""

EPOCH_NS = 10**17
"""1973 in ns: a later time counts from the epoch, not from a boot or a quarter."""


def ns_from_floats(microseconds: npt.NDArray[np.float64]) -> Int64:
    """Return int64[n] ns of float64[n] below EXACT_LIMIT_US (or integers); NaN and infinity become ABSENT.

    Splitting first keeps the product exact: rint(ts * 1000) is off by nanoseconds for large ts.
    """
    known = np.abs(microseconds) < _LIMIT_US
    all_known = known.all()
    if not all_known:
        microseconds = np.where(known, microseconds, 0.0)
    whole = microseconds.astype(np.int64)
    fraction = microseconds - whole
    fraction *= 1000
    ns = whole * 1000
    ns += np.rint(fraction, out=fraction).astype(np.int64)
    if not all_known:
        ns[~known] = ABSENT
    return ns


def floats_lost_digits(microseconds: npt.NDArray[np.float64]) -> bool:
    """Return whether float64 has lost digits of these times."""
    sizes = np.abs(microseconds)
    if not np.fmax.reduce(sizes, initial=0) >= EXACT_LIMIT_US:  # fmax passes over NaN
        return False
    large = (sizes >= EXACT_LIMIT_US) & np.isfinite(sizes)
    return bool((microseconds[large] % 1 != 0).any())


def ns_from_value(value: Any) -> int:
    """Return the exact ns of a JSON value (int, float, Decimal, decimal text), or ABSENT if it is no time."""
    if isinstance(value, bool) or value is None:
        return int(ABSENT)
    if isinstance(value, float):
        return int(ns_from_floats(np.array([value]))[0])
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except InvalidOperation:
            return int(ABSENT)
    if isinstance(value, Decimal):
        # Checked before the product: a thousand times the largest would be beyond a Decimal.
        if not (value.is_finite() and -(2**63) < value < 2**63):
            return int(ABSENT)
        value = int((value * 1000).to_integral_value())
    elif isinstance(value, int):
        value *= 1000
    else:
        return int(ABSENT)
    return value if -(2**63) < value < 2**63 else int(ABSENT)


def ns_from_values(values: Sequence[Any]) -> Int64:
    """Return the exact ns, int64[n], of decoded JSON values."""
    if all(type(value) in (int, float) for value in values):
        floats = np.array(values, np.float64)
        if not floats_lost_digits(floats) and (np.abs(floats) < 2.0**53).all():
            return ns_from_floats(floats)
    return np.array([ns_from_value(value) for value in values], np.int64)


def quarter_offset(starts: Int64) -> tuple[Bool, int]:
    """Return which times count from the quarter while others count from the epoch, and the ns to add.

    Since 2024 Kineto writes times since the last multiple of QUARTER_NS and keeps that multiple in
    `baseTimeNanoseconds`; Composer writes its own events with times since the epoch, and where it merges the two
    into one file the key is gone. Only times that then land within a week of the others get the offset;
    a driver's 0 does not.
    """
    from_epoch = starts > EPOCH_NS
    lacking: Bool = (starts >= 0) & (starts < QUARTER_NS)
    if not from_epoch.any() or not lacking.any():
        return np.zeros(len(starts), np.bool_), 0
    middle = int(median(starts[from_epoch] // 1000)) * 1000
    offset = middle // QUARTER_NS * QUARTER_NS
    lacking[lacking] = np.abs(starts[lacking] + offset - middle) < MAX_RECORDING_NS
    return lacking, offset


LATEST = np.iinfo(np.int64).max


def is_absurd_time(starts: Int64, durations: Int64) -> Bool:
    """Return bool[n]: times that can't be true, over a week from the median start or lasting over a week.

    Drivers report 0 or wrapped counters for single events; one of them would stretch every axis.
    """
    if len(starts) == 0:
        return np.zeros(0, np.bool_)
    wrong: Bool = (durations > MAX_RECORDING_NS) | ((durations < -MAX_RECORDING_NS) & (durations != ABSENT))
    # Halved, because the difference of two int64 may not fit int64.
    if int(starts.max()) // 2 - int(starts.min()) // 2 > MAX_RECORDING_NS // 2:
        middle = np.partition(starts, len(starts) // 2)[len(starts) // 2]
        wrong |= np.abs(starts // 2 - middle // 2) > MAX_RECORDING_NS // 2
    return wrong


def may_be_absurd(starts: Int64, durations: Int64, which: Bool) -> bool:
    """Return False if none of these times is absurd (`is_absurd_time`), without columns of them alone.

    There is at least one. True as well where some lie a week apart, but none that far from the median.
    """
    first, last = starts.min(where=which, initial=LATEST), starts.max()
    if int(last) // 2 - int(first) // 2 > MAX_RECORDING_NS // 2:
        last = starts.max(where=which, initial=ABSENT)  # takes five times as long
        if int(last) // 2 - int(first) // 2 > MAX_RECORDING_NS // 2:
            return True
    longest = int(durations.max())
    if longest > MAX_RECORDING_NS and int(durations.max(where=which, initial=0)) > MAX_RECORDING_NS:
        return True
    negative = durations < -MAX_RECORDING_NS
    negative &= durations != ABSENT
    negative &= which
    return bool(negative.any())
