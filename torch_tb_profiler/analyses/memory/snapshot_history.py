"""The recorded history of a device's allocator: bytes in use and reserved after each entry, and their peak.

Bytes in use are requested bytes, as the history records no others; reserved bytes are those of the segments. Both
are counted backwards from the state of the snapshot, because the oldest entries may be lost:

    entry                alloc 100   free 40 (allocated before the history)   alloc 10     state: 110 in use
    in use, in bytes       140                 100                              110
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import RecordWindow, find_records, sample_levels
from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.snapshots import (
    ALLOC,
    IN_USE,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    RecordedSnapshot,
    first_frees,
    match_frees,
)
from torch_tb_profiler.model.trace import ABSENT, Bool, Int8, Int64


@dataclass(frozen=True)
class AllocatorHistory:
    """Bytes of a device after each entry of its history; columns of length k.

    rows       of the entries in the history of the snapshot
    in_use     requested bytes in use
    reserved   bytes in segments
    recorded   the part of `in_use` whose allocation is in the history
    freed      the entry whose allocation an entry frees, -1 for all others (`match_frees`)
    timed      all entries have a time
    anchored   the history ends in the state of the snapshot; otherwise, in a truncated file, `in_use` and
               `reserved` lack what was allocated before the history
    """

    rows: slice
    in_use: Int64
    reserved: Int64
    recorded: Int64
    freed: Int64
    timed: bool
    anchored: bool

    def __len__(self) -> int:
        return len(self.in_use)

    @property
    def peak(self) -> int | None:
        """The first entry after which the most bytes are in use, None without a history."""
        return int(self.in_use.argmax()) if len(self) else None

    @property
    def peak_in_use(self) -> int:
        """Most bytes in use after an entry, 0 without a history."""
        return int(self.in_use.max(initial=0))


@derived
def allocator_history(snapshot: RecordedSnapshot, device: int) -> AllocatorHistory:
    """Compute the totals of a device's history."""
    rows, recorded = snapshot.rows(device), snapshot.history
    action, address, size = recorded.action[rows], recorded.address[rows], recorded.size[rows]
    freed = match_frees(action, address)
    in_use = np.where(action == ALLOC, size, 0)
    own = in_use.copy()
    known = freed >= 0
    own[known] = -size[freed[known]]
    older = first_frees(action, address) & ~known
    in_use[known] = own[known]
    in_use[older] = -size[older]
    reserved = np.where(action == SEGMENT_ALLOC, size, np.where(action == SEGMENT_FREE, -size, 0))
    anchored = snapshot.facts.incomplete is None
    return AllocatorHistory(
        rows=rows,
        in_use=_running_total(in_use, requested_in_use(snapshot, device) if anchored else None),
        reserved=_running_total(reserved, reserved_bytes(snapshot, device) if anchored else None),
        recorded=np.cumsum(own),
        freed=freed,
        timed=len(action) > 0 and not (recorded.time[rows] == ABSENT).any(),
        anchored=anchored,
    )


def requested_in_use(snapshot: RecordedSnapshot, device: int) -> int:
    """Return the requested bytes of the blocks in use; rounded ones where a file has none (PyTorch before 2.1)."""
    blocks = snapshot.blocks
    used = blocks_in_use(snapshot, device)
    return int(np.where(blocks.requested[used] == ABSENT, blocks.size[used], blocks.requested[used]).sum())


def blocks_in_use(snapshot: RecordedSnapshot, device: int) -> Bool:
    """Return which blocks are in use on a device."""
    used: Bool = (snapshot.segments.device[snapshot.blocks.segment] == device) & (snapshot.blocks.state == IN_USE)
    return used


def reserved_bytes(snapshot: RecordedSnapshot, device: int) -> int:
    """Return the bytes in the segments of a device."""
    return int(snapshot.segments.size[snapshot.segments.device == device].sum())


def _running_total(changes: Int64, last: int | None) -> Int64:
    """Return the sums up to each entry that end in `last`.

    Where that is unknown or too little, they are the least that are never negative: old versions record rounded
    sizes in the history.
    """
    values = np.cumsum(changes)
    if not len(values):
        return values
    least = -min(int(values.min()), 0)
    return values + (least if last is None else max(last - int(values[-1]), least))


def live_allocations(history: AllocatorHistory, action: Int8, entry: int) -> Int64:
    """Return the entries whose allocations are in use after `entry`, of those in the history; ascending.

    action  of all entries of the device
    """
    freed = history.freed[: entry + 1]
    live = action[: entry + 1] == ALLOC
    live[freed[freed >= 0]] = False
    return np.flatnonzero(live)


class SampledHistory(msgspec.Struct, frozen=True):
    """A history sampled at p points; packed columns of float64[p].

    entry  number of the entry with which each sample begins
    time   of these entries, µs since the epoch; empty where the file has no times
    """

    entry: bytes
    time: bytes
    allocated_min: bytes
    allocated_max: bytes
    allocated_last: bytes
    reserved_last: bytes


def sample_history(snapshot: RecordedSnapshot, history: AllocatorHistory, points: int) -> SampledHistory:
    """Sample a history at no more than `points` + 1 points."""
    numbers = np.arange(len(history), dtype=np.int64)
    window = find_records(numbers, None, None) if len(history) else RecordWindow(0, 0, 0, 0)
    allocated = sample_levels(numbers, history.in_use, window, points)
    times = snapshot.history.time[history.rows][allocated.time]
    return SampledHistory(
        entry=float64_bytes(allocated.time),
        time=float64_bytes(times) if history.timed else b"",
        allocated_min=float64_bytes(allocated.least),
        allocated_max=float64_bytes(allocated.most),
        allocated_last=float64_bytes(allocated.last),
        reserved_last=float64_bytes(sample_levels(numbers, history.reserved, window, points).last),
    )
