"""What the memory events of a device amount to: peaks, counts, what is allocated at both ends."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.blocks import blocks_of
from torch_tb_profiler.analyses.memory.failures import first_failure
from torch_tb_profiler.analyses.memory.live import allocated_before
from torch_tb_profiler.analyses.shared.memory_curve import Levels, RecordWindow, peak, unused
from torch_tb_profiler.model.memory.blocks import OLDER, UNKNOWN, UNRELEASED, has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import MemoryDevice, is_memory_event, memory_records
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace


class Moment(msgspec.Struct, frozen=True):
    """A size in bytes, when it was first reached (ns), and the row of that memory event in the trace."""

    bytes: int
    time: int
    event: int


class DeviceMemory(msgspec.Struct, frozen=True):
    """A device. Bytes; None where the file records no totals (peaks, start, end) or no addresses (states).

    allocated, reserved  at most; unused: reserved and not allocated, at most
    start, end           allocated before the first and after the last event
    unreleased, older, unknown  blocks in these states
    failures             allocations that failed; first_failure: row of the first one
    """

    device: MemoryDevice
    relative: bool
    allocated: Moment | None
    reserved: Moment | None
    unused: Moment | None
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


def has_memory(trace: Trace) -> bool:
    """True if a memory event has a time."""
    return bool((is_memory_event(trace) & (trace.events.start != ABSENT)).any())


def device_memory(trace: Trace, level: Levels) -> DeviceMemory:
    """Figures of the device of these levels."""
    sizes = memory_records(trace).size[level.positions]
    states = memory_blocks(trace).state[blocks_of(trace, level)]
    unreleased, older, unknown = (
        int((states == state).sum()) if has_addresses(trace) else None for state in (UNRELEASED, OLDER, UNKNOWN)
    )
    start, end = _start_and_end(trace, level)
    failures, failed = first_failure(trace, level.device.name)
    return DeviceMemory(
        device=level.device,
        relative=level.relative,
        allocated=None if level.relative else highest(trace, level, level.allocated),
        reserved=highest(trace, level, level.reserved),
        unused=highest(trace, level, unused(level)),
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
    )


def highest(trace: Trace, level: Levels, values: Int64, window: RecordWindow | None = None) -> Moment | None:
    """When `values` (one per record of the levels) were greatest; None if none of them is known.

    What holds since before a window counts from its beginning.
    """
    top = peak(values) if window is None else peak(values, window.held, window.high)
    if top is None:
        return None
    time = int(level.time[top.index])
    event = int(memory_records(trace).rows[level.positions[top.index]])
    return Moment(top.bytes, time if window is None else max(time, window.begin), event)


def _start_and_end(trace: Trace, level: Levels) -> tuple[int | None, int | None]:
    if level.relative:
        return None, None
    first, last = allocated_before(trace, level), int(level.allocated[-1])
    return None if first == ABSENT else first, None if last == ABSENT else last
