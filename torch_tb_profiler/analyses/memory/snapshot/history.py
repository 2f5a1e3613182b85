"""The recorded history of a device's allocator: bytes in use and reserved after each entry, and their peak.

Bytes in use are requested bytes, as the history records no others; reserved bytes are those of the segments. Both
are counted backwards from the state of the snapshot, because the oldest entries may be lost:

    entry                alloc 100   free 40 (allocated before the history)   alloc 10     state: 110 in use
    in use, in bytes       140                 100                              110

A file of 10 GB has 70 million entries, so there is one column of 8 bytes per entry, one of 4, and no temporary
larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.snapshots import (
    ALLOC,
    FREES_OLDER,
    IN_USE,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    RecordedSnapshot,
)
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64

_CHUNK_ENTRIES = 1 << 17
"""Entries that are summed at a time, to bound the memory."""


@dataclass(frozen=True)
class AllocatorHistory:
    """Bytes of a device after each entry of its history; columns of length k.

    rows              of the entries in the history of the snapshot
    in_use            int64[k]: requested bytes in use
    freed_by          int32[k]: the entry that frees the allocation of each entry, k if none does; -1 if an entry
                      is no allocation
    recorded_peak     the entry after which the allocations in the history use most, None without a history
    reserved_entries  the entries that change the reserved bytes, ascending
    reserved_bytes    bytes in segments before the first of them, and after each
    timed             all entries have a time
    anchored          the history ends in the state of the snapshot; otherwise, in a truncated file, `in_use` and
                      the reserved bytes lack what was allocated before the history
    """

    rows: slice
    in_use: Int64
    freed_by: Int32
    recorded_peak: int | None
    reserved_entries: Int64
    reserved_bytes: Int64
    timed: bool
    anchored: bool

    def __len__(self) -> int:
        return len(self.in_use)

    @property
    def peak(self) -> int | None:
        """Return the first entry after which the most bytes are in use, None without a history."""
        return int(self.in_use.argmax()) if len(self) else None

    @property
    def peak_in_use(self) -> int:
        """Return the most bytes in use after an entry, 0 without a history."""
        return int(self.in_use.max(initial=0))

    def reserved_at(self, entry: int) -> int:
        """Return the bytes in segments after an entry."""
        return int(self.reserved_after(np.array([entry]))[0])

    def reserved_after(self, entries: Int64) -> Int64:
        """Return the bytes in segments after each of some entries."""
        return self.reserved_bytes[np.searchsorted(self.reserved_entries, entries, "right")]


@derived
def allocator_history(snapshot: RecordedSnapshot, device: int) -> AllocatorHistory:
    """Compute the totals of a device's history."""
    rows, recorded = snapshot.rows(device), snapshot.history
    action, size, freed = recorded.action[rows], recorded.size[rows], recorded.freed[rows]
    anchored = snapshot.facts.incomplete is None
    in_use = np.where(action == ALLOC, size, 0)
    freed_by = np.where(action == ALLOC, np.int32(len(action)), np.int32(-1))
    for begin in range(0, len(action), _CHUNK_ENTRIES):
        ends = begin + np.flatnonzero(freed[begin : begin + _CHUNK_ENTRIES] >= 0)
        source = freed[ends]
        in_use[ends] = -recorded.size[source]
        freed_by[source - rows.start] = ends
    np.cumsum(in_use, out=in_use)
    recorded_peak = int(in_use.argmax()) if len(in_use) else None
    _subtract_older(in_use, freed, size)
    events = np.flatnonzero((action == SEGMENT_ALLOC) | (action == SEGMENT_FREE))
    change = np.where(action[events] == SEGMENT_ALLOC, size[events], -size[events])
    _lift_totals(in_use, requested_in_use(snapshot, device) if anchored else None)
    reserved = np.concatenate([[0], np.cumsum(change)])
    _lift_totals(reserved, reserved_bytes(snapshot, device) if anchored else None)
    return AllocatorHistory(
        rows=rows,
        in_use=in_use,
        freed_by=freed_by,
        recorded_peak=recorded_peak,
        reserved_entries=events,
        reserved_bytes=reserved,
        timed=len(action) > 0 and not (recorded.time[rows] == ABSENT).any(),
        anchored=anchored,
    )


def _subtract_older(totals: Int64, freed: Int32, size: Int64) -> None:
    """Subtract, in place, what was allocated before the history, from where it is freed."""
    subtracted = 0
    for begin in range(0, len(totals), _CHUNK_ENTRIES):
        chunk = slice(begin, begin + _CHUNK_ENTRIES)
        older = freed[chunk] == FREES_OLDER
        if subtracted or older.any():
            sizes = subtracted + np.cumsum(np.where(older, size[chunk], 0))
            totals[chunk] -= sizes
            subtracted = int(sizes[-1])


def requested_in_use(snapshot: RecordedSnapshot, device: int) -> int:
    """Return the requested bytes of the blocks in use; rounded ones where a file has none (PyTorch before 2.1)."""
    return int(requested_sizes(snapshot)[blocks_in_use(snapshot, device)].sum())


def requested_sizes(snapshot: RecordedSnapshot) -> Int64:
    """Return the requested bytes of each block; rounded ones where a file has none."""
    blocks = snapshot.blocks
    return np.where(blocks.requested == ABSENT, blocks.size, blocks.requested)


def blocks_in_use(snapshot: RecordedSnapshot, device: int) -> Bool:
    """Return which blocks are in use on a device."""
    used: Bool = (snapshot.segments.device[snapshot.blocks.segment] == device) & (snapshot.blocks.state == IN_USE)
    return used


def reserved_bytes(snapshot: RecordedSnapshot, device: int) -> int:
    """Return the bytes in the segments of a device."""
    return int(snapshot.segments.size[snapshot.segments.device == device].sum())


def _lift_totals(totals: Int64, last: int | None) -> None:
    """Lift running totals, in place, so that they end in `last`.

    Where that is unknown or too little, they become the least that are never negative: old versions record
    rounded sizes in the history.
    """
    if len(totals):
        least = -min(int(totals.min()), 0)
        totals += least if last is None else max(last - int(totals[-1]), least)


def live_allocations(history: AllocatorHistory, entry: int) -> Int64:
    """Return the entries whose allocations are in use after `entry`, of those in the history; ascending."""
    return np.flatnonzero(history.freed_by[: entry + 1] > entry)


class SampledHistory(msgspec.Struct, frozen=True):
    """A history sampled at p points; packed columns of float64[p].

    entry  number of the entry with which each sample begins
    time   of these entries, µs since the epoch; empty where the file has no times
    peaks  int64[p]: the entry of each sample after which most bytes are in use
    """

    entry: bytes
    time: bytes
    allocated_min: bytes
    allocated_max: bytes
    allocated_last: bytes
    reserved_last: bytes
    peaks: Int64


def sample_history(snapshot: RecordedSnapshot, history: AllocatorHistory, points: int) -> SampledHistory:
    """Sample a history at no more than `points` points; minimum and maximum of each are exact."""
    count = len(history)
    parts = min(points, count)
    begins = np.array([count * i // parts for i in range(parts)], np.int64)
    ends = np.append(begins[1:], count).astype(np.int64)[:parts]
    in_use = history.in_use
    least = np.minimum.reduceat(in_use, begins) if parts else in_use
    most = np.maximum.reduceat(in_use, begins) if parts else in_use
    if parts < count:  # a sample begins with what was in use before its first entry
        before = in_use[np.maximum(begins - 1, 0)]
        least, most = np.minimum(least, before), np.maximum(most, before)
    peaks = [begin + int(in_use[begin:end].argmax()) for begin, end in zip(begins, ends, strict=True)]
    times = snapshot.history.time[history.rows][begins]
    return SampledHistory(
        entry=float64_bytes(begins),
        time=float64_bytes(times) if history.timed else b"",
        allocated_min=float64_bytes(least),
        allocated_max=float64_bytes(most),
        allocated_last=float64_bytes(in_use[ends - 1]),
        reserved_last=float64_bytes(history.reserved_after(ends - 1)),
        peaks=np.array(peaks, np.int64),
    )
