"""Memory files beside the traces: CUDA memory snapshots and exported memory timelines."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.snapshot import (
    Allocator,
    Course,
    allocator,
    allocators,
    course,
    live_by_stack,
)
from torch_tb_profiler.analyses.memory.timeline import stacked
from torch_tb_profiler.analyses.shared.memory_curve import Samples, Window, sample, window
from torch_tb_profiler.analyses.tracks.sources import Frame, frame
from torch_tb_profiler.model.memory.snapshot import IN_USE, OUT_OF_MEMORY, Snapshot
from torch_tb_profiler.model.memory.timeline import CATEGORIES, Timeline
from torch_tb_profiler.model.trace import ABSENT, Float64, Int64
from torch_tb_profiler.view import FileParams, FileView
from torch_tb_profiler.views.memory.file_payload import (
    MemorySnapshot,
    MemoryTimeline,
    OutOfMemory,
    SnapshotDevice,
    SnapshotSegment,
    SnapshotStack,
)
from torch_tb_profiler.views.memory.payload import Points

ERRORS = 100
"""Out-of-memory errors listed; a loop that catches them makes thousands."""


class SnapshotParams(FileParams, frozen=True):
    """A snapshot of the run, one device of it (default: the one that holds most); `limit` stacks and segments."""

    device: int | None = None
    points: Points = 1000
    limit: Annotated[int, msgspec.Meta(ge=0)] = 200


def build_snapshot(snapshot: Snapshot, params: SnapshotParams) -> MemorySnapshot:
    """NotFoundError for an unknown device."""
    found = allocator(snapshot, params.device)
    past = course(snapshot, found)
    stacks = live_by_stack(snapshot, found.device)
    limit = max(params.limit, 0)
    entries, used, held = _history(past, params.points)
    peak = int(past.allocated.argmax()) if len(past.allocated) else None
    times = snapshot.history.time[past.entries]
    timed = len(times) > 0 and not (times == ABSENT).any()
    segments = np.flatnonzero(snapshot.segments.device == found.device)
    return MemorySnapshot(
        device=found.device,
        devices=[_device(each) for each in allocators(snapshot)],
        total_stacks=len(stacks.stack),
        stacks=[
            SnapshotStack(_frames(snapshot, code), blocks, size)
            for code, blocks, size in zip(
                stacks.stack[:limit].tolist(),
                stacks.blocks[:limit].tolist(),
                stacks.size[:limit].tolist(),
                strict=True,
            )
        ],
        total_segments=len(segments),
        segments=_segments(snapshot, segments, limit),
        out_of_memory=_errors(snapshot, past),
        entry=_bytes(entries),
        history_time_us=_bytes(times[entries]) if timed else b"",
        allocated_min=_bytes(used.least),
        allocated_max=_bytes(used.most),
        allocated_last=_bytes(used.last),
        reserved_last=_bytes(held.last),
        peak_allocated_bytes=found.allocated if peak is None else max(found.allocated, int(past.allocated[peak])),
        peak_entry=peak,
        reasons=_reasons(snapshot, past, timed),
    )


def _history(past: Course, points: int) -> tuple[Int64, Samples, Samples]:
    """(entry of each point, allocated, reserved)."""
    numbers = np.arange(len(past.entries), dtype=np.int64)
    part = window(numbers, None, None) if len(numbers) else Window(0, 0, 0, 0)
    used = sample(numbers, past.allocated, part, points)
    return used.time, used, sample(numbers, past.reserved, part, points)


def _device(each: Allocator) -> SnapshotDevice:
    return SnapshotDevice(
        id=each.device,
        segments=each.segments,
        blocks=each.blocks,
        reserved_bytes=each.reserved,
        allocated_bytes=each.allocated,
        awaiting_bytes=each.awaiting,
        free_bytes=each.free,
        largest_free_bytes=each.largest_free,
        requested_bytes=each.requested,
        entries=each.entries,
        out_of_memory=each.out_of_memory,
    )


def _segments(snapshot: Snapshot, chosen: Int64, limit: int) -> list[SnapshotSegment]:
    every, blocks = snapshot.segments, snapshot.blocks
    used = np.zeros(len(every.size), np.int64)
    in_use = blocks.state == IN_USE
    np.add.at(used, blocks.segment[in_use], blocks.size[in_use])
    counts = np.bincount(blocks.segment, minlength=len(every.size))
    order = chosen[np.argsort(-every.size[chosen], kind="stable")][:limit]
    return [
        SnapshotSegment(
            address=hex(int(every.address[at]) % 2**64),
            stream=int(every.stream[at]),
            kind=every.kind[at],
            bytes=int(every.size[at]),
            allocated_bytes=int(used[at]),
            blocks=int(counts[at]),
        )
        for at in order.tolist()
    ]


def _errors(snapshot: Snapshot, past: Course) -> list[OutOfMemory]:
    history = snapshot.history
    failed = np.flatnonzero(history.action[past.entries] == OUT_OF_MEMORY)[-ERRORS:]
    made = []
    for entry in failed.tolist():
        at = int(past.entries[entry])
        left = int(history.device_free[at])
        frames = _frames(snapshot, int(history.stack[at]))
        made.append(OutOfMemory(entry, int(history.size[at]), None if left == ABSENT else left, frames))
    return made


def _frames(snapshot: Snapshot, code: int) -> list[Frame]:
    return [frame(text) for text in snapshot.stacks[code]]


def _reasons(snapshot: Snapshot, past: Course, timed: bool) -> dict[str, str]:
    reasons = {}
    if len(past.entries) == 0:
        reasons["entry"] = "no history is recorded (`torch.cuda.memory._record_memory_history()` before the work)"
    elif not timed:
        reasons["history_time_us"] = "the file has no times (PyTorch before 2.1)"
    if len(snapshot.stacks) == 1:
        reasons["stacks"] = "no stacks are recorded (`torch.cuda.memory._record_memory_history()` before the work)"
    if (snapshot.blocks.requested == ABSENT).any():
        reasons["requested_bytes"] = "the file does not say what was asked for (PyTorch before 2.1)"
    if snapshot.skipped:
        reasons["skipped"] = f"{snapshot.skipped} entries of the file cannot be read and are left out"
    return reasons


class TimelineParams(FileParams, frozen=True):
    """A memory timeline of the run."""

    points: Points = 1000


def build_timeline(timeline: Timeline, params: TimelineParams) -> MemoryTimeline:
    """The stacked areas, as far as the file has them."""
    found = stacked(timeline, params.points)
    return MemoryTimeline(
        events=len(timeline.time),
        categories=[CATEGORIES[code] for code in found.used.tolist()],
        time=_bytes(found.time),
        sizes=[_bytes(row) for row in found.sizes],
        begin_ns=int(found.time[0]),
        end_ns=int(found.time[-1]),
        peak_bytes=found.peak,
        peak_time_ns=found.peak_time,
        peak_sizes=found.peak_sizes.tolist(),
        start_bytes=found.start.tolist(),
    )


def _bytes(values: Int64 | Float64) -> bytes:
    return values.astype("<f8").tobytes()


PARTS = (
    FileView("memory/snapshot", "Memory snapshot", SnapshotParams, MemorySnapshot, build_snapshot, "snapshot"),
    FileView("memory/timeline", "Memory timeline", TimelineParams, MemoryTimeline, build_timeline, "timeline"),
)
