"""Memory files of PyTorch as columns: CUDA memory snapshots and exported memory timelines.

A snapshot holds segments, the blocks in them, the recorded history, and the stacks of both:

segment  |-- block: in use --|-- block: free --|-- awaiting free --|     memory from one cudaMalloc
history  segment_alloc  alloc  alloc  free_requested  free_completed ...

A timeline holds how much memory of which category came or went, and when.
"""

from __future__ import annotations

import msgspec

from torch_tb_profiler.model.trace import Int8, Int32, Int64

IN_USE, AWAITING_FREE, FREE = range(3)
"""States of a block: used by a tensor; freed, but another stream still uses it; cached for reuse."""

ALLOC, FREE_REQUESTED, SEGMENT_ALLOC, SEGMENT_FREE, OUT_OF_MEMORY, OTHER = range(6)
"""Actions of the history."""

CATEGORIES = (
    "parameter",
    "optimizer state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd detail",
    "unknown",
)
"""Categories of a timeline, as PyTorch numbers them."""


class SnapshotSegments(msgspec.Struct, frozen=True):
    """Segments; columns of length s. Sizes in bytes; `kind` as the file spells it ("small", "large")."""

    device: Int32
    address: Int64
    stream: Int64
    size: Int64
    kind: tuple[str, ...]


class SnapshotBlocks(msgspec.Struct, frozen=True):
    """Blocks; columns of length b.

    segment    index into the segments
    requested  bytes that the caller asked for, ABSENT in old files
    state      IN_USE, AWAITING_FREE or FREE
    stack      code into the stacks
    """

    segment: Int32
    size: Int64
    requested: Int64
    state: Int8
    stack: Int32


class SnapshotHistory(msgspec.Struct, frozen=True):
    """Actions of the allocator; columns of length h, per device in order of time.

    size         bytes
    device_free  bytes that the device had left, of OUT_OF_MEMORY, else ABSENT
    time         microseconds since the epoch, ABSENT where the file has none
    """

    device: Int32
    action: Int8
    size: Int64
    device_free: Int64
    time: Int64
    stack: Int32


class RecordedSnapshot(msgspec.Struct, frozen=True):
    """A CUDA memory snapshot.

    stacks   by code the frames, innermost first, as `path(line): function`; the empty stack is code 0
    skipped  number of entries in the file that are no dicts or lack their size
    """

    segments: SnapshotSegments
    blocks: SnapshotBlocks
    history: SnapshotHistory
    stacks: tuple[tuple[str, ...], ...]
    skipped: int


class RecordedTimeline(msgspec.Struct, frozen=True):
    """A memory timeline; columns of length n by time.

    time      ns; -1: allocated before the profiler began
    size      bytes, negative where memory was freed
    category  index into CATEGORIES
    """

    time: Int64
    size: Int64
    category: Int8
