"""Allocations that failed in a memory snapshot: the state of the allocator at that moment, and why it failed.

    device = in use + reserved but unused + free + held by others

A snapshot is often written after tensors have died, so the state is rebuilt: from the blocks of the snapshot
backwards through the entries after the failure.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.snapshot.history import AllocatorHistory
from torch_tb_profiler.model.snapshots import (
    ALLOC,
    FREE,
    FREE_COMPLETED,
    FREE_REQUESTED,
    OUT_OF_MEMORY,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    RecordedSnapshot,
)
from torch_tb_profiler.model.trace import ABSENT, Int8, Int64

BLOCK_BYTES = 512
"""The allocator rounds sizes up to a multiple of this."""

SMALL_BYTES = 1 << 20
"""Largest request that is served from segments of small blocks, which hold SMALL_SEGMENT_BYTES."""

SMALL_SEGMENT_BYTES = 2 << 20
MEDIUM_SEGMENT_BYTES = 20 << 20
MEDIUM_BYTES = 10 << 20
"""A smaller request makes the allocator ask for MEDIUM_SEGMENT_BYTES; a larger one for multiples of 2 MiB."""

_USABLE, _OTHER_POOL, _OTHER_STREAM, _OTHER_CLASS = range(4)
"""What keeps a request from the free pieces of a segment."""

Cause = Literal["held", "fragmentation", "other pools", "limit", "unknown"]


class SnapshotFailure(msgspec.Struct, frozen=True):
    """A failed allocation, in bytes.

    size          requested
    device_free   free on the device, None if not recorded
    reserved      in segments of this process; `in_use` of it requested by tensors, the others are `unused`
    holes         unused bytes that a request of this stream, pool and size class can use, and the largest of them
    other_holes   unused bytes in segments that the request can't use: of another pool, another stream, or for the
                  other size class
    missing       more than `device_free` and `holes` together, 0 if they suffice
    cause         held: memory is in use; fragmentation: enough is free, but not in one piece; other pools: enough
                  is unused, but for other streams or pools; limit: enough is free on the device
    None where it is not recorded
    """

    entry: int
    size: int
    device_free: int | None
    stack: int
    reserved: int | None
    in_use: int | None
    holes: int | None
    largest_hole: int | None
    other_holes: tuple[int, int, int] | None
    missing: int | None
    cause: Cause

    @property
    def unused(self) -> int | None:
        return None if self.reserved is None or self.in_use is None else self.reserved - self.in_use


def last_failures(
    snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, limit: int
) -> list[SnapshotFailure]:
    """Return the last `limit` allocations that failed, in order of time."""
    entries = np.flatnonzero(snapshot.history.action[history.rows] == OUT_OF_MEMORY)[-limit:]
    return [_build_failure(snapshot, device, history, entry) for entry in entries.tolist()]


def segment_bytes(size: int) -> int:
    """Return how much the allocator asks the device for to serve a request."""
    if size <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    return MEDIUM_SEGMENT_BYTES if size < MEDIUM_BYTES else -(-size // SMALL_SEGMENT_BYTES) * SMALL_SEGMENT_BYTES


def _build_failure(
    snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entry: int
) -> SnapshotFailure:
    recorded, row = snapshot.history, history.rows.start + entry
    size, left, stack = int(recorded.size[row]), int(recorded.address[row]), int(recorded.stack[row])
    free = None if left == ABSENT else left
    if not history.anchored or not len(snapshot.segments.size):
        return SnapshotFailure(entry, size, free, stack, None, None, None, None, None, None, "unknown")
    pieces, obstacle = _find_holes(snapshot, device, history, entry)
    usable = pieces[obstacle == _USABLE]
    holes, largest = int(usable.sum()), int(usable.max(initial=0))
    other_pool, other_stream, other_class = (
        int(pieces[obstacle == code].sum()) for code in (_OTHER_POOL, _OTHER_STREAM, _OTHER_CLASS)
    )
    missing = None if free is None else max(size - free - holes, 0)
    return SnapshotFailure(
        entry=entry,
        size=size,
        device_free=free,
        stack=stack,
        reserved=history.reserved_at(entry),
        in_use=int(history.in_use[entry]),
        holes=holes,
        largest_hole=largest,
        other_holes=(other_pool, other_stream, other_class),
        missing=missing,
        cause=_find_cause(size, free, holes, largest, other_pool + other_stream + other_class),
    )


def _find_cause(size: int, free: int | None, holes: int, largest: int, others: int) -> Cause:
    if free is None or size <= largest:
        return "unknown"
    if free >= segment_bytes(size):
        return "limit"
    if size <= free + holes:
        return "fragmentation" if size > free else "unknown"
    return "other pools" if size <= free + holes + others else "held"


def _find_holes(
    snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entry: int
) -> tuple[Int64, Int8]:
    """Return the free pieces of the segments after an entry, and what keeps its request from using each."""
    begin, end, obstacle = _restore_segments(snapshot, device, history, entry)
    later = snapshot.history.action[history.rows.start + entry + 1 : history.rows.stop]
    if not np.isin(later, (ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE)).any():
        return _find_snapshot_holes(snapshot, device, begin, obstacle)
    at, size = _find_occupied(snapshot, device, history, entry)
    segment = np.searchsorted(begin, at, "right") - 1
    inside = (segment >= 0) & (at < end[np.maximum(segment, 0)]) if len(begin) else np.zeros(len(at), np.bool_)
    at, size, segment = at[inside], size[inside], segment[inside]
    # Pieces between the beginning of a segment, its blocks, and its end.
    edges = np.concatenate([begin, at + size])
    owner = np.concatenate([np.arange(len(begin)), segment])
    order = np.lexsort((edges, owner))
    edges, owner = edges[order], owner[order]
    next_at = np.concatenate([at, end])
    next_owner = np.concatenate([segment, np.arange(len(begin))])
    order = np.lexsort((next_at, next_owner))
    pieces = np.maximum(next_at[order] - edges, 0)
    return pieces, obstacle[owner]


def _find_snapshot_holes(
    snapshot: RecordedSnapshot, device: int, begin: Int64, obstacle: Int8
) -> tuple[Int64, Int8]:
    """Return the free blocks of the snapshot itself, and the obstacle of their segments, which are at `begin`."""
    blocks, segments = snapshot.blocks, snapshot.segments
    free = (segments.device[blocks.segment] == device) & (blocks.state == FREE)
    at = segments.address[blocks.segment[free]]
    return blocks.size[free], obstacle[np.searchsorted(begin, at)]


def _restore_segments(
    snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entry: int
) -> tuple[Int64, Int64, Int8]:
    """Return begin and end of the segments after an entry by address, and what keeps its request from each."""
    recorded, segments = snapshot.history, snapshot.segments
    row = history.rows.start + entry
    label, small = int(recorded.label[row]), bool(recorded.size[row] <= SMALL_BYTES)
    stream, pool = int(snapshot.labels.stream[label]), int(snapshot.labels.pool[label])
    later = slice(row + 1, history.rows.stop)
    action, address, size = recorded.action[later], recorded.address[later], recorded.size[later]
    touched, first = np.unique(
        np.where((action == SEGMENT_ALLOC) | (action == SEGMENT_FREE), address, ABSENT), return_index=True
    )
    first = first[touched != ABSENT]
    kinds = np.array([text == "small" for text in snapshot.texts], np.bool_)[segments.kind]
    existing = np.flatnonzero(
        (segments.device == device) & ~np.isin(segments.address, address[first[action[first] == SEGMENT_ALLOC]])
    )
    freed = first[action[first] == SEGMENT_FREE]
    freed = freed[~np.isin(address[freed], segments.address[existing])]
    of_label = snapshot.labels
    label_of_freed = recorded.label[later][freed]
    other_pool = np.concatenate([segments.pool[existing], of_label.pool[label_of_freed]]) != pool
    other_stream = np.concatenate([segments.stream[existing], of_label.stream[label_of_freed]]) != stream
    other_class = np.concatenate([kinds[existing], size[freed] <= SMALL_SEGMENT_BYTES]) != small
    obstacle = np.select(
        [other_pool, other_stream, other_class], [_OTHER_POOL, _OTHER_STREAM, _OTHER_CLASS], _USABLE
    ).astype(np.int8)
    begin = np.concatenate([segments.address[existing], address[freed]])
    length = np.concatenate([segments.size[existing], size[freed]])
    order = np.argsort(begin, kind="stable")
    return begin[order], (begin + length)[order], obstacle[order]


def _find_occupied(
    snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entry: int
) -> tuple[Int64, Int64]:
    """Return address and rounded size of the blocks that can't be used after an entry.

    A block whose address no later entry names is as the snapshot has it. Otherwise the first of these entries
    tells: it was free if that is an allocation, and occupied if that is a free.
    """
    recorded, blocks = snapshot.history, snapshot.blocks
    later = slice(history.rows.start + entry + 1, history.rows.stop)
    action, address, size = recorded.action[later], recorded.address[later], recorded.size[later]
    of_blocks = (action == ALLOC) | (action == FREE_REQUESTED) | (action == FREE_COMPLETED)
    touched, first = np.unique(np.where(of_blocks, address, ABSENT), return_index=True)
    first = first[touched != ABSENT]
    occupied = (snapshot.segments.device[blocks.segment] == device) & (blocks.state != FREE)
    same = np.flatnonzero(occupied & ~np.isin(blocks.address, touched))
    freed = first[action[first] != ALLOC]
    rounded = -(-size[freed] // BLOCK_BYTES) * BLOCK_BYTES
    return np.concatenate([blocks.address[same], address[freed]]), np.concatenate([blocks.size[same], rounded])
