"""The history of a CUDA memory snapshot: bytes of a device after each entry, and the allocations that failed."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.snapshot import Allocator
from torch_tb_profiler.analyses.shared.memory_curve import RecordWindow, records_in, sample
from torch_tb_profiler.analyses.shared.packing import float64_bytes
from torch_tb_profiler.model.memory.exports import (
    ALLOC,
    FREE_REQUESTED,
    OUT_OF_MEMORY,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    RecordedSnapshot,
)
from torch_tb_profiler.model.trace import ABSENT, Int64


class AllocatorHistory(msgspec.Struct, frozen=True):
    """Bytes of a device after each entry of its history.

    entries  positions in the history of the snapshot
    timed    all entries have a time
    """

    entries: Int64
    allocated: Int64
    reserved: Int64
    timed: bool

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def peak(self) -> int | None:
        """The first entry after which most is allocated."""
        return int(self.allocated.argmax()) if len(self) else None

    @property
    def peak_allocated(self) -> int:
        """Most bytes allocated after an entry, 0 without a history."""
        return int(self.allocated.max(initial=0))


def history(snapshot: RecordedSnapshot, allocator: Allocator) -> AllocatorHistory:
    """Counted backwards from the state of the snapshot, as the oldest entries may be lost."""
    recorded = snapshot.history
    entries = np.flatnonzero(recorded.device == allocator.device)
    action, size = recorded.action[entries], recorded.size[entries]
    allocated = np.select([action == ALLOC, action == FREE_REQUESTED], [size, -size])
    reserved = np.select([action == SEGMENT_ALLOC, action == SEGMENT_FREE], [size, -size])
    return AllocatorHistory(
        entries=entries,
        allocated=_ending_in(allocated, allocator.allocated),
        reserved=_ending_in(reserved, allocator.reserved),
        timed=len(entries) > 0 and not (recorded.time[entries] == ABSENT).any(),
    )


def _ending_in(changes: Int64, last: int) -> Int64:
    values = np.cumsum(changes)
    return values + (last - values[-1]) if len(values) else values


class SampledHistory(msgspec.Struct, frozen=True):
    """A history at some points; columns of float64[p], packed.

    entry  number of the entry with which each sample begins
    time   of these entries, µs since the epoch; empty where the file has no times
    """

    entry: bytes
    time: bytes
    allocated_least: bytes
    allocated_most: bytes
    allocated_last: bytes
    reserved_last: bytes


def sampled(snapshot: RecordedSnapshot, past: AllocatorHistory, points: int) -> SampledHistory:
    """At most `points` + 1 samples of a history."""
    numbers = np.arange(len(past), dtype=np.int64)
    window = records_in(numbers, None, None) if len(past) else RecordWindow(0, 0, 0, 0)
    allocated = sample(numbers, past.allocated, window, points)
    times = snapshot.history.time[past.entries][allocated.time]
    return SampledHistory(
        entry=float64_bytes(allocated.time),
        time=float64_bytes(times) if past.timed else b"",
        allocated_least=float64_bytes(allocated.least),
        allocated_most=float64_bytes(allocated.most),
        allocated_last=float64_bytes(allocated.last),
        reserved_last=float64_bytes(sample(numbers, past.reserved, window, points).last),
    )


class FailedAllocation(msgspec.Struct, frozen=True):
    """An entry of a history: bytes asked for, bytes that the device had left (None: not recorded), its stack."""

    entry: int
    size: int
    device_free: int | None
    stack: int


def last_failures(snapshot: RecordedSnapshot, past: AllocatorHistory, limit: int) -> list[FailedAllocation]:
    """The last allocations that failed, in order of time."""
    recorded = snapshot.history
    entries = np.flatnonzero(recorded.action[past.entries] == OUT_OF_MEMORY)[-limit:]
    failures = []
    for entry in entries.tolist():
        row = int(past.entries[entry])
        left = int(recorded.device_free[row])
        failures.append(
            FailedAllocation(
                entry, int(recorded.size[row]), None if left == ABSENT else left, int(recorded.stack[row])
            )
        )
    return failures
