"""When all ranks met, as each noted it in its own clock.

Composer lets its processes wait for each other and has each of them note the time (`clock_sync_timestamp_us`, µs
since the epoch) between two barriers, which lie `clock_sync_error_bound` µs apart. Its own merge moves all files
by the difference of these times and leaves the notes as they were.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Trace, derived, name_mask

_TIME, _ERROR = "clock_sync_timestamp_us", "clock_sync_error_bound"


class ClockSync(msgspec.Struct, frozen=True):
    """at: ns since the trace's start, in its own clock (it may lie before); error: ns."""

    at: int
    error: int


@derived
def clock_sync(trace: Trace) -> ClockSync | None:
    """None if nothing is noted, if several times are, or if the file is on one clock already (`Trace.merged`)."""
    time, error = _noted(trace, _TIME), _noted(trace, _ERROR)
    if trace.merged or time is None:
        return None
    return ClockSync(1000 * time - trace.trace_start_ns, 1000 * max(error or 0, 0))


def merge_offsets(ranks: Mapping[int, Trace]) -> dict[int, int]:
    """ns by which a merge has moved each of its ranks: to the clock of the lowest one that noted when all met."""
    noted = {number: time for number in sorted(ranks) if (time := _noted(ranks[number], _TIME)) is not None}
    reference = next(iter(noted.values()), 0)
    return {number: 1000 * (reference - time) for number, time in noted.items()}


def _noted(trace: Trace, name: str) -> int | None:
    """The value of a metadata event; None without one, or where several differ."""
    named = name_mask(trace.strings, lambda text: text == name)[trace.events.name]
    rows = np.flatnonzero(named & (trace.events.phase == ord("M"))).astype(np.int32)
    noted = set(trace.arg_int("value", rows).tolist()) - {int(ABSENT)}
    value = noted.pop() if len(noted) == 1 else None
    return value if value is not None and abs(value) < 2**53 else None
