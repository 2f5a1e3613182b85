"""Memory of a device over the trace or a window: peaks, counts, failed allocations, and the sampled curve."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.live import bytes_before_trace
from torch_tb_profiler.analyses.memory.snapshot.failures import segment_bytes
from torch_tb_profiler.analyses.shared.memory_curve import (
    MemoryLevels,
    RecordWindow,
    device_block_mask,
    find_records,
    first_peak,
    sample_levels,
    unused_memory,
)
from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.memory.blocks import OLDER, UNKNOWN, UNRELEASED, has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import (
    MemoryDevice,
    enclosing_calls,
    memory_failures,
    memory_records,
)
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace

MAX_CONTEXT_BYTES = 2 << 30
"""Bytes that the context of this process and its libraries may take outside of the allocator."""


class PeakMoment(msgspec.Struct, frozen=True):
    """A peak in bytes, when it was first reached (ns), and the row of that memory event in the trace."""

    bytes: int
    time: int
    event: int


class DeviceMemory(msgspec.Struct, frozen=True):
    """Peaks and counts of a device, in bytes.

    None where the file has no totals (peaks, start, end) or no addresses (states).

    allocated, reserved  peaks; unused: the peak of reserved - allocated
    start, end           allocated before the first and after the last event
    unreleased, older, unknown  blocks in these states
    failures             allocations that failed; first_failure: row of the first one
    elsewhere            bytes held outside of the allocator when one of them failed, see `held_elsewhere`
    """

    device: MemoryDevice
    relative: bool
    allocated: PeakMoment | None
    reserved: PeakMoment | None
    unused: PeakMoment | None
    start: int | None
    end: int | None
    events: int
    allocations: int
    releases: int
    unreleased: int | None
    older: int | None
    unknown: int | None
    allocated_in_trace: int
    first_time: int
    last_time: int
    failures: int
    first_failure: int | None
    elsewhere: int | None


def device_memory(trace: Trace, level: MemoryLevels) -> DeviceMemory:
    """Compute the peaks and counts of the device of `level`."""
    sizes = memory_records(trace).size[level.positions]
    states = memory_blocks(trace).state[device_block_mask(trace, level)]
    unreleased, older, unknown = (
        int((states == state).sum()) if has_addresses(trace) else None for state in (UNRELEASED, OLDER, UNKNOWN)
    )
    start, end = _start_and_end(trace, level)
    failures, failed = first_failure(trace, level.device.name)
    return DeviceMemory(
        device=level.device,
        relative=level.relative,
        allocated=None if level.relative else find_peak(trace, level, level.allocated),
        reserved=find_peak(trace, level, level.reserved),
        unused=find_peak(trace, level, unused_memory(level)),
        start=start,
        end=end,
        events=len(sizes),
        allocations=int((sizes > 0).sum()),
        releases=int((sizes < 0).sum()),
        unreleased=unreleased,
        older=older,
        unknown=unknown,
        allocated_in_trace=int(np.maximum(sizes, 0).sum()),
        first_time=int(level.time[0]),
        last_time=int(level.time[-1]),
        failures=failures,
        first_failure=failed,
        elsewhere=_find_most_held_elsewhere(trace, level.device),
    )


def find_peak(
    trace: Trace, level: MemoryLevels, values: Int64, window: RecordWindow | None = None
) -> PeakMoment | None:
    """Return when `values` (one per record of `level`) are greatest, None if none of them is known.

    A value from before the window counts from the window's beginning.
    """
    top = first_peak(values) if window is None else first_peak(values, window.first_record, window.high)
    if top is None:
        return None
    time = int(level.time[top.index])
    event = int(memory_records(trace).rows[level.positions[top.index]])
    return PeakMoment(top.bytes, time if window is None else max(time, window.begin), event)


def _start_and_end(trace: Trace, level: MemoryLevels) -> tuple[int | None, int | None]:
    """Return the bytes allocated before the first and after the last event; None where unknown."""
    if level.relative:
        return None, None
    first, last = bytes_before_trace(trace, level), int(level.allocated[-1])
    return None if first == ABSENT else first, None if last == ABSENT else last


class FailedAllocation(msgspec.Struct, frozen=True):
    """An allocation that failed: its size, the totals then (bytes, None: not recorded), and its operator.

    event, operator_event  rows of the trace; time in ns
    """

    event: int
    device: str
    time: int
    size: int | None
    allocated: int | None
    reserved: int | None
    operator: str | None
    operator_event: int | None


def failed_allocations(trace: Trace, limit: int) -> list[FailedAllocation]:
    """Return the first `limit` failed allocations, in order of time."""
    records = memory_failures(trace)
    rows = records.rows[:limit]
    if not len(rows):
        return []
    columns = (rows, records.device, records.time, records.size, records.allocated, records.reserved)
    return [
        FailedAllocation(
            event=event,
            device=records.devices[device].name,
            time=time,
            size=abs(size) or None,
            allocated=None if allocated == ABSENT else allocated,
            reserved=None if reserved == ABSENT else reserved,
            operator=None if call == NO_CODE else name_of(trace, call),
            operator_event=None if call == NO_CODE else call,
        )
        for event, device, time, size, allocated, reserved, call in zip(
            *(column[: len(rows)].tolist() for column in columns),
            enclosing_calls(trace, rows).tolist(),
            strict=True,
        )
    ]


def first_failure(trace: Trace, device: str) -> tuple[int, int | None]:
    """Return (how many allocations of a device failed, row of the first one)."""
    records = memory_failures(trace)
    rows = [
        row
        for row, code in zip(records.rows.tolist(), records.device.tolist(), strict=True)
        if records.devices[code].name == device
    ]
    return len(rows), rows[0] if rows else None


def held_elsewhere(
    capacity: int | None, allocated: int | None, reserved: int | None, size: int | None
) -> int | None:
    """Return how many bytes of a device were at least held outside of its allocator when a request failed.

    Free memory isn't recorded, but was less than the request needs: what the allocator hadn't reserved was held by
    others. None where the figures don't show that, or no more than a process needs for its context.
    """
    if capacity is None or allocated is None or reserved is None or size is None or reserved < allocated:
        return None
    held = capacity - reserved - segment_bytes(size)
    return held if held > MAX_CONTEXT_BYTES else None


def _find_most_held_elsewhere(trace: Trace, device: MemoryDevice) -> int | None:
    """Return the most bytes held elsewhere at any failure of a device, None if no failure shows any."""
    records = memory_failures(trace)
    columns = (records.device, records.allocated, records.reserved, records.size)
    return max(
        (
            held
            for code, allocated, reserved, size in zip(*(column.tolist() for column in columns), strict=True)
            if records.devices[code].name == device.name
            and ABSENT not in (allocated, reserved)
            and (held := held_elsewhere(device.capacity, allocated, reserved, abs(size) or None)) is not None
        ),
        default=None,
    )


class SampledRange(msgspec.Struct, frozen=True):
    """Minimum, maximum and last value of each sample, packed as float64; empty where no value is known."""

    min: bytes
    max: bytes
    last: bytes


class SampledCurve(msgspec.Struct, frozen=True):
    """A step function (see `memory_curve.Samples`) and the exact peaks of its window.

    begin, end  of the window, ns
    events      in the window
    time        packed like the ranges
    """

    begin: int
    end: int
    events: int
    exact: bool
    time: bytes
    allocated: SampledRange
    reserved: SampledRange
    peak_allocated: PeakMoment | None
    peak_reserved: PeakMoment | None
    peak_unused: PeakMoment | None


def sample_curve(
    trace: Trace, level: MemoryLevels, begin: int | None, end: int | None, points: int
) -> SampledCurve:
    """Sample the memory of a device in [begin, end] (ns; default: all). UsageError if it is not a range."""
    window = find_records(level.time, begin, end)
    samples = sample_levels(level.time, level.allocated, window, points)

    def sampled_range(values: Int64) -> SampledRange:
        if (values == ABSENT).all():
            return SampledRange(b"", b"", b"")
        column = sample_levels(level.time, values, window, points)
        return SampledRange(float64_bytes(column.least), float64_bytes(column.most), float64_bytes(column.last))

    return SampledCurve(
        begin=window.begin,
        end=window.end,
        events=window.high - window.low,
        exact=samples.exact,
        time=float64_bytes(samples.time),
        allocated=sampled_range(level.allocated),
        reserved=sampled_range(level.reserved),
        peak_allocated=find_peak(trace, level, level.allocated, window),
        peak_reserved=find_peak(trace, level, level.reserved, window),
        peak_unused=find_peak(trace, level, unused_memory(level), window),
    )
