"""What the memory files beside a trace answer: CUDA memory snapshots and exported memory timelines."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.tracks.sources import Frame


class SnapshotDevice(msgspec.Struct, frozen=True):
    """The caching allocator of one device when the snapshot was taken.

    reserved_bytes       in segments; allocated_bytes: in use by tensors; awaiting_bytes: freed, another stream
                         still uses it; free_bytes: cached, for reuse; largest_free_bytes: the largest such block
    requested_bytes      what the tensors in use asked for; allocated - requested is lost to rounding. Null in
                         old files
    entries              of the recorded history; oldest ones are lost once the history is full
    out_of_memory        errors in the history
    """

    id: int
    segments: int
    blocks: int
    reserved_bytes: int
    allocated_bytes: int
    awaiting_bytes: int
    free_bytes: int
    largest_free_bytes: int
    requested_bytes: int | None
    entries: int
    out_of_memory: int


class SnapshotStack(msgspec.Struct, frozen=True):
    """Blocks in use that were allocated from one stack, innermost frame first; no frame: not recorded."""

    frames: list[Frame]
    blocks: int
    bytes: int


class SnapshotSegment(msgspec.Struct, frozen=True):
    """Memory from one `cudaMalloc`. `blocks` in use and free, `address` in hexadecimal."""

    address: str
    stream: int
    kind: str
    bytes: int
    allocated_bytes: int
    blocks: int


class OutOfMemory(msgspec.Struct, frozen=True):
    """An allocation that failed: what it asked for, what the device had left, where from. `entry` of the
    history."""

    entry: int
    bytes: int
    device_free_bytes: int | None
    frames: list[Frame]


class MemorySnapshot(msgspec.Struct, frozen=True):
    """A CUDA memory snapshot (`torch.cuda.memory._dump_snapshot`), one device of it.

    stacks, segments  largest first, at most `limit` of them; `total_stacks`, `total_segments` there are
    history           step function over the recorded history, ending in the state of the snapshot; columns are
                      little-endian float64 of equal length (base64), sampled to the asked number of points:
                      `entry` is the number of the entry (or bucket's first), with least, greatest and last
                      value of its bucket
    history_time_us   of each point, microseconds since the epoch; empty where the file has no times
    """

    device: int
    devices: list[SnapshotDevice]
    total_stacks: int
    stacks: list[SnapshotStack]
    total_segments: int
    segments: list[SnapshotSegment]
    out_of_memory: list[OutOfMemory]
    entry: bytes
    history_time_us: bytes
    allocated_min: bytes
    allocated_max: bytes
    allocated_last: bytes
    reserved_last: bytes
    peak_allocated_bytes: int
    peak_entry: int | None
    reasons: Mapping[str, str]


class MemoryTimeline(msgspec.Struct, frozen=True):
    """An exported memory timeline (`profiler.export_memory_timeline("x.raw.json.gz")`) as stacked categories.

    categories   parameter, optimizer state, input, temporary, activation, gradient, autograd detail, unknown:
                 those that occur, in this order
    time         little-endian float64 ns (base64), as the file has it; the first is that of the first event
                 that has one
    sizes        per category a column like `time`: its bytes at the moment of the point's bucket when all
                 together were greatest, so that the stack reaches the exact peak
    peak_...     all categories together at most, when, and each category then
    start_bytes  there before the first event, per category
    """

    events: int
    categories: list[str]
    time: bytes
    sizes: list[bytes]
    begin_ns: int
    end_ns: int
    peak_bytes: int
    peak_time_ns: int
    peak_sizes: list[int]
    start_bytes: list[int]
