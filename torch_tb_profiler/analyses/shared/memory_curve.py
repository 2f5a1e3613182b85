"""Allocated and reserved memory of a device over time: its levels, peaks, and samples that lose no peak."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.memory.blocks import memory_blocks
from torch_tb_profiler.model.memory.events import MemoryDevice, memory_records
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int64, Trace


class MemoryLevels(msgspec.Struct, frozen=True):
    """Allocated and reserved bytes of one device over time; columns of length k.

    positions  indices in `memory_records`
    time       ns
    allocated, reserved  bytes from this record to the next, ABSENT before the first one that is recorded
    relative   the file records no totals: `allocated` is the sum of all sizes so far, `reserved` is ABSENT
    """

    device: MemoryDevice
    positions: Int64
    time: Int64
    allocated: Int64
    reserved: Int64
    relative: bool


@derived
def memory_levels(trace: Trace) -> tuple[MemoryLevels, ...]:
    """Build the levels of each device."""
    records = memory_records(trace)
    by_device = []
    for code, device in enumerate(records.devices):
        rows = np.flatnonzero(records.device == code)
        allocated, reserved = _fill_forward(records.allocated[rows]), _fill_forward(records.reserved[rows])
        relative = bool((allocated == ABSENT).all())
        if relative:
            allocated = np.cumsum(records.size[rows])
        by_device.append(MemoryLevels(device, rows, records.time[rows], allocated, reserved, relative))
    return tuple(by_device)


def device_block_mask(trace: Trace, level: MemoryLevels) -> Bool:
    """Return bool[b]: which of `memory_blocks` are on the device of `level`."""
    records, blocks = memory_records(trace), memory_blocks(trace)
    first = np.where(blocks.allocation >= 0, blocks.allocation, blocks.release)
    on_device: Bool = records.device[first] == records.devices.index(level.device)
    return on_device


def _fill_forward(values: Int64) -> Int64:
    """Replace each ABSENT value by the last one before it."""
    source = np.where(values == ABSENT, -1, np.arange(len(values)))
    source = np.maximum.accumulate(source) if len(values) else source
    return np.where(source >= 0, values[source], ABSENT)


def default_device(trace: Trace) -> str | None:
    """Return the name of the first accelerator, else the CPU; None without memory events."""
    names = [level.device.name for level in memory_levels(trace)]
    return next((name for name in names if name != "CPU"), names[0] if names else None)


def device_levels(trace: Trace, name: str) -> MemoryLevels:
    """Return the levels of a device by name; "" is the default one, and "GPU0" in old links is "GPU 0".

    Raises NotFoundError, which lists the devices.
    """
    wanted = (name or default_device(trace) or "").replace(" ", "")
    for level in memory_levels(trace):
        if level.device.name.replace(" ", "") == wanted:
            return level
    listed = ", ".join(level.device.name for level in memory_levels(trace)) or "none"
    raise NotFoundError(f"there is no memory of a device {name!r}", hint=f"devices: {listed}")


class MemoryPeak(msgspec.Struct, frozen=True):
    """A size in bytes and where it was first reached: index into the columns of the levels."""

    bytes: int
    index: int


def first_peak(values: Int64, low: int = 0, high: int | None = None) -> MemoryPeak | None:
    """Return the first maximum of values[low:high], None if none of them is known."""
    chosen = values[low:high]
    if len(chosen) == 0:
        return None
    index = int(chosen.argmax())  # ABSENT is the smallest value
    return None if chosen[index] == ABSENT else MemoryPeak(int(chosen[index]), low + index)


def unused_memory(level: MemoryLevels) -> Int64:
    """Return int64[k]: reserved but unallocated bytes; ABSENT if either is unknown or nothing is reserved."""
    known = (level.allocated != ABSENT) & (level.reserved != ABSENT)
    if level.relative or not (level.reserved[known] > 0).any():
        return np.full(len(level.time), ABSENT, np.int64)
    return np.where(known, level.reserved - level.allocated, ABSENT)


class RecordWindow(msgspec.Struct, frozen=True):
    """A part of some records: records low..high lie in [begin, end]; the one before is in effect at `begin`."""

    begin: int
    end: int
    low: int
    high: int

    @property
    def first_record(self) -> int:
        """Return the index of the record in effect when the window begins."""
        return max(0, self.low - 1)


def find_records(times: Int64, begin: int | None, end: int | None) -> RecordWindow:
    """Find the records in [begin, end] (ns), by default all. Raises UsageError if `end` is before `begin`."""
    first = int(times[0]) if begin is None else begin
    last = int(times[-1]) if end is None else end
    if first > last or not all(abs(bound) < 2**62 for bound in (begin, end) if bound is not None):
        raise UsageError(f"[{first}, {last}] is not a valid range", hint="begin and end in ns, begin <= end")
    low, high = np.searchsorted(times, first, "left"), np.searchsorted(times, last, "right")
    return RecordWindow(first, last, int(low), int(high))


class MemorySamples(msgspec.Struct, frozen=True):
    """Samples of a step function; columns of equal length, NaN where unknown.

    exact  entry i is a record, in effect until time i + 1 (the first one as the window begins); otherwise
           entry i is a bucket that begins at time i
    """

    exact: bool
    time: Int64
    least: Float64
    most: Float64
    last: Float64


def sample_levels(times: Int64, values: Int64, window: RecordWindow, points: int) -> MemorySamples:
    """Sample at most `points` + 1 entries; minimum and maximum of a bucket are exact and include its beginning."""
    if window.high - window.low <= points:
        chosen = _float(values[window.first_record : window.high])
        time = np.maximum(times[window.first_record : window.high], window.begin)
        return MemorySamples(True, time, chosen, chosen, chosen)
    edges = window_bucket_edges(window, points)
    bounds = np.searchsorted(times, edges, "left")
    initial = np.where(bounds[:-1] > 0, values[bounds[:-1] - 1], ABSENT)
    filled = np.flatnonzero(bounds[1:] > bounds[:-1])
    least, most, last = initial.copy(), initial.copy(), initial.copy()
    inside = values[: window.high]
    least[filled] = np.minimum.reduceat(inside, bounds[filled])
    most[filled] = np.maximum.reduceat(inside, bounds[filled])
    last[filled] = values[bounds[filled + 1] - 1]
    known = filled[initial[filled] != ABSENT]
    least[known] = np.minimum(least[known], initial[known])
    most[known] = np.maximum(most[known], initial[known])
    return MemorySamples(False, edges[:-1], _float(least), _float(most), _float(last))


def window_bucket_edges(window: RecordWindow, points: int) -> Int64:
    """Return int64[points + 1]: edges of equal buckets; the last lies behind the end of the window."""
    span = window.end - window.begin + 1
    return window.begin + np.array([span * i // points for i in range(points + 1)], np.int64)


def _float(values: Int64) -> Float64:
    return np.where(values == ABSENT, np.nan, values)


def time_mask(times: Int64, begin: int | None, end: int | None) -> Bool:
    """Return bool[k]: which times lie in [begin, end], both included; None is no limit."""
    inside = np.ones(len(times), np.bool_)
    if begin is not None:
        inside &= times >= begin
    if end is not None:
        inside &= times <= end
    return inside
