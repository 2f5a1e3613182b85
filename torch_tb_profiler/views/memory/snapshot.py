"""CUDA memory snapshots: what the allocator of a device held, and how it came to that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.memory.history import (
    AllocatorHistory,
    history,
    last_failures,
    sampled,
)
from torch_tb_profiler.analyses.memory.snapshot import (
    Allocator,
    allocator,
    allocators,
    largest_segments,
    live_by_stack,
    records_requested,
)
from torch_tb_profiler.analyses.tracks.sources import Frame, frame
from torch_tb_profiler.model.memory.exports import RecordedSnapshot
from torch_tb_profiler.view import FileParams, FileView, Float64s
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views.memory import file_words
from torch_tb_profiler.views.memory.curve import Points

ERRORS = 100
"""Out-of-memory errors listed; a loop that catches them makes thousands."""


class SnapshotParams(FileParams, frozen=True):
    """A snapshot of the run, one device of it (default: the one that holds most); `limit` stacks and segments."""

    device: int | None = None
    points: Points = 1000
    limit: Annotated[int, msgspec.Meta(ge=0)] = 200


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

    headline          what the device holds, and how much of it is in use; details: blocks, cache, failures
    stacks, segments  largest first, at most `limit` of them; `total_stacks`, `total_segments` there are
    history           step function over the recorded history, ending in the state of the snapshot; columns are
                      little-endian float64 of equal length (base64), sampled to the requested number of points:
                      `entry` is the number of the entry (or bucket's first), with least, greatest and last
                      value of its bucket
    history_time_us   of each point, microseconds since the epoch; empty where the file has no times
    """

    headline: Text
    details: Text
    device: int
    devices: list[SnapshotDevice]
    total_stacks: int
    stacks: list[SnapshotStack]
    total_segments: int
    segments: list[SnapshotSegment]
    out_of_memory: list[OutOfMemory]
    entry: Float64s
    history_time_us: Float64s
    allocated_min: Float64s
    allocated_max: Float64s
    allocated_last: Float64s
    reserved_last: Float64s
    peak_allocated_bytes: int
    peak_entry: int | None
    reasons: Mapping[str, Text]


def build_snapshot(snapshot: RecordedSnapshot, params: SnapshotParams) -> MemorySnapshot:
    """NotFoundError for an unknown device."""
    held = allocator(snapshot, params.device)
    past = history(snapshot, held)
    drawn = sampled(snapshot, past, params.points)
    stacks = live_by_stack(snapshot, held.device)
    return MemorySnapshot(
        headline=file_words.snapshot_headline(held),
        details=file_words.snapshot_details(held),
        device=held.device,
        devices=[_device(each) for each in allocators(snapshot)],
        total_stacks=len(stacks),
        stacks=[
            SnapshotStack(_frames(snapshot, stack.code), stack.blocks, stack.size)
            for stack in stacks[: params.limit]
        ],
        total_segments=held.segments,
        segments=[
            SnapshotSegment(
                address=hex(segment.address),
                stream=segment.stream,
                kind=segment.kind,
                bytes=segment.size,
                allocated_bytes=segment.allocated,
                blocks=segment.blocks,
            )
            for segment in largest_segments(snapshot, held.device, params.limit)
        ],
        out_of_memory=[
            OutOfMemory(failure.entry, failure.size, failure.device_free, _frames(snapshot, failure.stack))
            for failure in last_failures(snapshot, past, ERRORS)
        ],
        entry=drawn.entry,
        history_time_us=drawn.time,
        allocated_min=drawn.allocated_least,
        allocated_max=drawn.allocated_most,
        allocated_last=drawn.allocated_last,
        reserved_last=drawn.reserved_last,
        peak_allocated_bytes=max(held.allocated, past.peak_allocated),
        peak_entry=past.peak,
        reasons=reason_texts(_reasons(snapshot, past)),
    )


def _device(held: Allocator) -> SnapshotDevice:
    return SnapshotDevice(
        id=held.device,
        segments=held.segments,
        blocks=held.blocks,
        reserved_bytes=held.reserved,
        allocated_bytes=held.allocated,
        awaiting_bytes=held.awaiting,
        free_bytes=held.free,
        largest_free_bytes=held.largest_free,
        requested_bytes=held.requested,
        entries=held.entries,
        out_of_memory=held.out_of_memory,
    )


def _frames(snapshot: RecordedSnapshot, code: int) -> list[Frame]:
    return [frame(text) for text in snapshot.stacks[code]]


def _reasons(snapshot: RecordedSnapshot, past: AllocatorHistory) -> dict[str, str]:
    reasons = {}
    if not len(past):
        reasons["entry"] = "no history is recorded (`torch.cuda.memory._record_memory_history()` before the work)"
    elif not past.timed:
        reasons["history_time_us"] = "the file has no times (PyTorch before 2.1)"
    if len(snapshot.stacks) == 1:
        reasons["stacks"] = "no stacks are recorded (`torch.cuda.memory._record_memory_history()` before the work)"
    if not records_requested(snapshot):
        reasons["requested_bytes"] = "the file does not record requested sizes (PyTorch before 2.1)"
    if snapshot.skipped:
        reasons["skipped"] = f"{snapshot.skipped} entries of the file cannot be read and are left out"
    return reasons


SNAPSHOT = FileView(
    "memory/snapshot",
    "Memory snapshot",
    SnapshotParams,
    MemorySnapshot,
    build_snapshot,
    "snapshot",
    rows="stacks",
)
