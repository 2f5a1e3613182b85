"""A CUDA memory snapshot as columns: segments, the blocks in them, the recorded history, the stacks of both.

segment  |-- block: in use --|-- block: free --|-- awaiting free --|     memory from one cudaMalloc
history  segment_alloc  alloc  alloc  free_requested  free_completed ...
"""

from __future__ import annotations

import msgspec

from torch_tb_profiler.model.trace import Int8, Int32, Int64

IN_USE, AWAITING, FREE = range(3)
"""States of a block: used by a tensor; freed, but another stream still uses it; cached for reuse."""

ALLOC, FREE_REQUESTED, SEGMENT_ALLOC, SEGMENT_FREE, OUT_OF_MEMORY, OTHER = range(6)
"""Actions of the history."""


class Segments(msgspec.Struct, frozen=True):
    """Columns of length s; bytes, `kind` as the file spells it ("small", "large")."""

    device: Int32
    address: Int64
    stream: Int64
    size: Int64
    kind: tuple[str, ...]


class SnapshotBlocks(msgspec.Struct, frozen=True):
    """Columns of length b: index of the segment, bytes, bytes asked for (ABSENT in old files), state, stack."""

    segment: Int32
    size: Int64
    requested: Int64
    state: Int8
    stack: Int32


class History(msgspec.Struct, frozen=True):
    """Columns of length h, per device in order of time.

    size         bytes; device_free: what the device had left, of OUT_OF_MEMORY, else ABSENT
    time         microseconds since the epoch, ABSENT where the file has none
    """

    device: Int32
    action: Int8
    size: Int64
    device_free: Int64
    time: Int64
    stack: Int32


class Snapshot(msgspec.Struct, frozen=True):
    """stacks: of each code the frames, innermost first, as `path(line): function`; the empty one is code 0.

    skipped  entries of the file that are no dicts or lack their size
    """

    segments: Segments
    blocks: SnapshotBlocks
    history: History
    stacks: tuple[tuple[str, ...], ...]
    skipped: int
