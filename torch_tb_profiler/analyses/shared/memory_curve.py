"""Allocated and reserved memory of a device over time: what holds when, peaks, and samples that lose no peak."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.memory.events import MemoryDevice, memory_records
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int64, Trace


class Levels(msgspec.Struct, frozen=True):
    """The records of one device by time; columns of length k.

    positions  in `memory_records`
    time       ns
    allocated, reserved  bytes that hold from this record to the next, ABSENT where none was recorded so far
    relative   the file records no totals: `allocated` is the sum of all sizes so far, `reserved` is ABSENT
    """

    device: MemoryDevice
    positions: Int64
    time: Int64
    allocated: Int64
    reserved: Int64
    relative: bool


@derived
def levels(trace: Trace) -> tuple[Levels, ...]:
    """Of each device."""
    records = memory_records(trace)
    made = []
    for code, device in enumerate(records.devices):
        at = np.flatnonzero(records.device == code)
        allocated, reserved = _held(records.allocated[at]), _held(records.reserved[at])
        relative = bool((allocated == ABSENT).all())
        if relative:
            allocated = np.cumsum(records.size[at])
        made.append(Levels(device, at, records.time[at], allocated, reserved, relative))
    return tuple(made)


def _held(values: Int64) -> Int64:
    """Each value, else the last one before it."""
    source = np.where(values == ABSENT, -1, np.arange(len(values)))
    source = np.maximum.accumulate(source) if len(values) else source
    return np.where(source >= 0, values[source], ABSENT)


def default_device(trace: Trace) -> str | None:
    """The first accelerator, else the CPU; None without memory events."""
    names = [level.device.name for level in levels(trace)]
    return next((name for name in names if name != "CPU"), names[0] if names else None)


def of_device(trace: Trace, name: str) -> Levels:
    """The levels of a device by name, "" is the default one; "GPU0" in old links is "GPU 0".

    NotFoundError lists the devices.
    """
    wanted = (name or default_device(trace) or "").replace(" ", "")
    for level in levels(trace):
        if level.device.name.replace(" ", "") == wanted:
            return level
    listed = ", ".join(level.device.name for level in levels(trace)) or "none"
    raise NotFoundError(f"there is no memory of a device {name!r}", hint=f"devices: {listed}")


class Peak(msgspec.Struct, frozen=True):
    """A size in bytes and where it was first reached: index into the columns of the levels."""

    bytes: int
    index: int


def peak(values: Int64, low: int = 0, high: int | None = None) -> Peak | None:
    """The first greatest of values[low:high], None if none of them is known."""
    chosen = values[low:high]
    if len(chosen) == 0:
        return None
    at = int(chosen.argmax())  # ABSENT is the least of all
    return None if chosen[at] == ABSENT else Peak(int(chosen[at]), low + at)


def unused(level: Levels) -> Int64:
    """int64[k]: reserved and not allocated; ABSENT where either is unknown, or where nothing is ever reserved."""
    known = (level.allocated != ABSENT) & (level.reserved != ABSENT)
    if level.relative or not (level.reserved[known] > 0).any():
        return np.full(len(level.time), ABSENT, np.int64)
    return np.where(known, level.reserved - level.allocated, ABSENT)


class RecordWindow(msgspec.Struct, frozen=True):
    """A part of some records: records low..high lie in [begin, end]; the one before `low` holds at `begin`."""

    begin: int
    end: int
    low: int
    high: int

    @property
    def held(self) -> int:
        """Index of the first record that counts in the window."""
        return max(0, self.low - 1)


def records_in(times: Int64, begin: int | None, end: int | None) -> RecordWindow:
    """The records in [begin, end] (ns), by default all of them; UsageError if `end` is before `begin`."""
    first = int(times[0]) if begin is None else begin
    last = int(times[-1]) if end is None else end
    if first > last or not all(abs(bound) < 2**62 for bound in (begin, end) if bound is not None):
        raise UsageError(f"[{first}, {last}] is not a valid range", hint="begin and end in ns, begin <= end")
    low, high = np.searchsorted(times, first, "left"), np.searchsorted(times, last, "right")
    return RecordWindow(first, last, int(low), int(high))


class Samples(msgspec.Struct, frozen=True):
    """A step function; columns of equal length, NaN where nothing is known.

    exact  entry i is a record (the first: what holds when the window begins) and holds until time i + 1; otherwise
           entry i is a bucket that begins at time i
    """

    exact: bool
    time: Int64
    least: Float64
    most: Float64
    last: Float64


def sample(times: Int64, values: Int64, window: RecordWindow, points: int) -> Samples:
    """At most `points` + 1 entries; least and greatest of a bucket are exact, with what holds as it begins."""
    if window.high - window.low <= points:
        chosen = _float(values[window.held : window.high])
        time = np.maximum(times[window.held : window.high], window.begin)
        return Samples(True, time, chosen, chosen, chosen)
    edges = buckets(window, points)
    bounds = np.searchsorted(times, edges, "left")
    held = np.where(bounds[:-1] > 0, values[bounds[:-1] - 1], ABSENT)
    filled = np.flatnonzero(bounds[1:] > bounds[:-1])
    least, most, last = held.copy(), held.copy(), held.copy()
    inside = values[: window.high]
    least[filled] = np.minimum.reduceat(inside, bounds[filled])
    most[filled] = np.maximum.reduceat(inside, bounds[filled])
    last[filled] = values[bounds[filled + 1] - 1]
    known = filled[held[filled] != ABSENT]
    least[known] = np.minimum(least[known], held[known])
    most[known] = np.maximum(most[known], held[known])
    return Samples(False, edges[:-1], _float(least), _float(most), _float(last))


def buckets(window: RecordWindow, points: int) -> Int64:
    """int64[points + 1]: edges of equal buckets; the last lies behind the end of the window."""
    span = window.end - window.begin + 1
    return window.begin + np.array([span * i // points for i in range(points + 1)], np.int64)


def _float(values: Int64) -> Float64:
    return np.where(values == ABSENT, np.nan, values)


def in_range(times: Int64, begin: int | None, end: int | None) -> Bool:
    """bool[k]: which times lie in [begin, end], both included; None is no limit."""
    inside = np.ones(len(times), np.bool_)
    if begin is not None:
        inside &= times >= begin
    if end is not None:
        inside &= times <= end
    return inside
