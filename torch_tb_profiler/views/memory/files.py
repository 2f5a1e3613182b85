"""Memory files beside a trace: CUDA memory snapshots and exported memory timelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.memory.snapshot import (
    DeviceAllocator,
    device_allocators,
    find_allocator,
    has_requested_sizes,
    largest_segments,
    usage_by_stack,
)
from torch_tb_profiler.analyses.memory.snapshot_failures import SnapshotFailure, last_failures
from torch_tb_profiler.analyses.memory.snapshot_history import (
    AllocatorHistory,
    allocator_history,
    requested_in_use,
    sample_history,
)
from torch_tb_profiler.analyses.memory.snapshot_live import LiveMemory, live_memory, recorded_live_memory
from torch_tb_profiler.analyses.memory.timeline import stack_categories
from torch_tb_profiler.analyses.tracks.sources import SourceFrame, parse_frame
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.model.memory.exports import RecordedTimeline
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import ABSENT
from torch_tb_profiler.view import FileParams, FileView, Float64s
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views.memory import snapshot_words, words
from torch_tb_profiler.views.memory.curve import Points

MAX_FAILURES = 100
"""Out-of-memory errors listed; a loop that catches them makes thousands."""


class SnapshotParams(FileParams, frozen=True):
    """A snapshot of the run and a device in it (default: the one that reserves most); `limit` of the rows.

    device_bytes  memory of the device, which the file doesn't tell: with it, the share of other processes is known
    """

    device: int | None = None
    points: Points = 1000
    limit: Annotated[int, msgspec.Meta(ge=0)] = 200
    device_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None


class SnapshotDevice(msgspec.Struct, frozen=True):
    """The caching allocator of one device when the snapshot was taken.

    reserved_bytes       in segments; allocated_bytes: in use by tensors; awaiting_bytes: freed, another stream
                         still uses it; free_bytes: cached, for reuse; largest_free_bytes: the largest such block
    requested_bytes      what the tensors in use requested; allocated - requested is lost to rounding. Null in
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

    frames: list[SourceFrame]
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
    """A failed allocation: bytes requested, bytes free on the device, and its stack; `entry` of the history."""

    entry: int
    bytes: int
    device_free_bytes: int | None
    frames: list[SourceFrame]


class SnapshotSite(msgspec.Struct, frozen=True):
    """Requested bytes and number of the blocks that were allocated from one stack, innermost frame first."""

    frames: list[SourceFrame]
    bytes: int
    blocks: int


class SnapshotPeak(msgspec.Struct, frozen=True):
    """The first moment when the allocations in the history use most, in requested bytes.

    bytes             of allocations in the history; `older_bytes` were allocated before it and are in use, too
    entry             of the history; `time_us` since the epoch, null in old files
    categories        by what the stacks say; they add up to `bytes`, unknown ones included
    sites             most bytes first, at most `limit`; `total_sites`: without the limit
    compile_contexts  by `torch.compile`'s contexts; "N/A" is PyTorch's word for none, "" for not recorded
    """

    bytes: int
    older_bytes: int
    entry: int
    time_us: int | None
    categories: Mapping[str, int]
    total_sites: int
    sites: list[SnapshotSite]
    compile_contexts: Mapping[str, int]


class SnapshotOom(msgspec.Struct, frozen=True):
    """Why an allocation failed, with the state of the allocator at that moment, in bytes; null is unknown.

    requested      by the allocation; `device_free`: free on the device
    reserved       in segments of this process; `in_use` of it by tensors, `unused` the rest
    largest_free   the largest unused piece that the request could have used; all of them: `usable`
    other_unused   unused pieces of other streams, private pools, and the other size class
    other_bytes    held by other processes and the CUDA context; needs the parameter `device_bytes`
    categories     of what is in use, most first; they add up to `in_use`
    cause          held, fragmentation, other pools, limit, or unknown
    verdict        the cause as a sentence; remedies: what follows from it, most effective first
    """

    entry: int
    requested: int
    device_free: int | None
    reserved: int | None
    in_use: int | None
    unused: int | None
    usable: int | None
    largest_free: int | None
    other_unused: int | None
    other_bytes: int | None
    categories: Mapping[str, int]
    cause: str
    verdict: Text
    remedies: list[Text]


class SnapshotRead(msgspec.Struct, frozen=True):
    """How much of the file was read: entries of all histories, unpacked bytes; false if the rest can't be read."""

    entries: int
    bytes: int
    complete: bool


class MemorySnapshot(msgspec.Struct, frozen=True):
    """A CUDA memory snapshot (`torch.cuda.memory._dump_snapshot`), one device of it.

    headline          why it ran out of memory; without a failure what the device reserves, and how much is in use
    details           blocks, cache, failures
    peak              most memory in use in the history, null without one
    oom               the allocations that failed, the last one last, and why
    stacks, segments  largest first, at most `limit` of them; `total_stacks`, `total_segments`: without the limit
    history           step function over the recorded history, ending in the state of the snapshot; columns are
                      little-endian float64 of equal length (base64), sampled to the requested number of points:
                      `entry` is the number of the entry (or bucket's first), with minimum, maximum and
                      last value of its bucket
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
    peak: SnapshotPeak | None
    oom: list[SnapshotOom]
    read: SnapshotRead
    reasons: Mapping[str, Text]


def build_snapshot(snapshot: RecordedSnapshot, params: SnapshotParams) -> MemorySnapshot:
    """Build the payload of one device. NotFoundError for an unknown device."""
    allocator = find_allocator(snapshot, params.device)
    history = allocator_history(snapshot, allocator.device)
    sampled = sample_history(snapshot, history, params.points)
    stacks = usage_by_stack(snapshot, allocator.device)
    failures = last_failures(snapshot, allocator.device, history, MAX_FAILURES)
    oom = [_oom(snapshot, allocator.device, history, failure, params.device_bytes) for failure in failures]
    return MemorySnapshot(
        headline=oom[-1].verdict if oom else words.snapshot_headline(allocator),
        details=words.snapshot_details(allocator),
        device=allocator.device,
        devices=[_snapshot_device(each) for each in device_allocators(snapshot)],
        total_stacks=len(stacks),
        stacks=[
            SnapshotStack(_frames(snapshot, stack.code), stack.blocks, stack.size)
            for stack in stacks[: params.limit]
        ],
        total_segments=allocator.segments,
        segments=[
            SnapshotSegment(
                address=hex(segment.address),
                stream=segment.stream,
                kind=segment.kind,
                bytes=segment.size,
                allocated_bytes=segment.allocated,
                blocks=segment.blocks,
            )
            for segment in largest_segments(snapshot, allocator.device, params.limit)
        ],
        out_of_memory=[
            OutOfMemory(failure.entry, failure.size, failure.device_free, _frames(snapshot, failure.stack))
            for failure in failures
        ],
        entry=sampled.entry,
        history_time_us=sampled.time,
        allocated_min=sampled.allocated_min,
        allocated_max=sampled.allocated_max,
        allocated_last=sampled.allocated_last,
        reserved_last=sampled.reserved_last,
        peak_allocated_bytes=max(requested_in_use(snapshot, allocator.device), history.peak_in_use),
        peak_entry=history.peak,
        peak=_peak(snapshot, history, params.limit),
        oom=oom,
        read=SnapshotRead(len(snapshot.history.action), snapshot.facts.bytes, snapshot.facts.incomplete is None),
        reasons=reason_texts(_reasons(snapshot, history, oom[-1] if oom else None)),
    )


def _snapshot_device(allocator: DeviceAllocator) -> SnapshotDevice:
    return SnapshotDevice(
        id=allocator.device,
        segments=allocator.segments,
        blocks=allocator.blocks,
        reserved_bytes=allocator.reserved,
        allocated_bytes=allocator.allocated,
        awaiting_bytes=allocator.awaiting,
        free_bytes=allocator.free,
        largest_free_bytes=allocator.largest_free,
        requested_bytes=allocator.requested,
        entries=allocator.entries,
        out_of_memory=allocator.out_of_memory,
    )


def _peak(snapshot: RecordedSnapshot, history: AllocatorHistory, limit: int) -> SnapshotPeak | None:
    if not len(history):
        return None
    entry = int(history.recorded.argmax())
    live = recorded_live_memory(snapshot, history, entry)
    time, sites = int(snapshot.history.time[history.rows.start + entry]), live.by_site()
    return SnapshotPeak(
        bytes=live.total,
        older_bytes=int(history.in_use[entry]) - live.total,
        entry=entry,
        time_us=None if time == ABSENT else time,
        categories=live.by_category(),
        total_sites=len(sites),
        sites=[SnapshotSite(_frames(snapshot, stack), size, count) for stack, size, count in sites[:limit]],
        compile_contexts=live.by_context(snapshot),
    )


def _oom(
    snapshot: RecordedSnapshot,
    device: int,
    history: AllocatorHistory,
    failure: SnapshotFailure,
    device_bytes: int | None,
) -> SnapshotOom:
    live = live_memory(snapshot, device, history, failure.entry)
    expandable = snapshot.facts.settings.get("expandable_segments")
    known = None not in (device_bytes, failure.device_free, failure.reserved)
    others = (device_bytes or 0) - (failure.device_free or 0) - (failure.reserved or 0)
    return SnapshotOom(
        entry=failure.entry,
        requested=failure.size,
        device_free=failure.device_free,
        reserved=failure.reserved,
        in_use=failure.in_use,
        unused=failure.unused,
        usable=failure.holes,
        largest_free=failure.largest_hole,
        other_unused=failure.other_holes,
        other_bytes=max(others, 0) if known else None,
        categories=live.by_category(),
        cause=failure.cause,
        verdict=snapshot_words.verdict(device, failure, live.by_category(), _top_site(snapshot, live)),
        remedies=snapshot_words.remedies(failure, live.by_category(), expandable is True),
    )


def _top_site(snapshot: RecordedSnapshot, live: LiveMemory) -> tuple[str, int] | None:
    """Return the innermost Python frame of the site that holds most, and its bytes; None if it has no stack."""
    for stack, size, _ in live.by_site()[:1]:
        frames = snapshot.stack(stack)
        python = (frame for frame in frames if ".py(" in frame)
        frame = next(python, frames[0] if frames else None)
        return None if frame is None else (frame, size)
    return None


def _frames(snapshot: RecordedSnapshot, code: int) -> list[SourceFrame]:
    return [parse_frame(text) for text in snapshot.stack(code)]


def _reasons(
    snapshot: RecordedSnapshot, history: AllocatorHistory, last_oom: SnapshotOom | None
) -> dict[str, str]:
    reasons = {}
    if not len(history):
        reasons["entry"] = (
            "no history was recorded (call `torch.cuda.memory._record_memory_history()` before the work)"
        )
    elif not history.timed:
        reasons["history_time_us"] = "the file has no times (PyTorch before 2.1)"
    if snapshot.stack_count == 1:
        reasons["stacks"] = (
            "no stacks were recorded (call `torch.cuda.memory._record_memory_history()` before the work)"
        )
    if last_oom is not None and last_oom.reserved is None:
        reasons["oom"] = "the state at the failure can't be rebuilt: the history doesn't reach the snapshot"
    if last_oom is not None and last_oom.other_bytes is None:
        reasons["other_bytes"] = "the file doesn't tell how much memory the device has; pass `device_bytes`"
    if not has_requested_sizes(snapshot):
        reasons["requested_bytes"] = "the file does not record requested sizes (PyTorch before 2.1)"
    if snapshot.facts.incomplete is not None:
        reasons["incomplete"] = (
            f"only part of the file could be read: {snapshot.facts.incomplete}; "
            "bytes in use and reserved lack what was allocated before its history"
        )
    if snapshot.facts.skipped:
        count = snapshot.facts.skipped
        reasons["skipped"] = (
            f"{plural(count, 'entry')} of the file can't be read and {agree(count, 'is', 'are')} left out"
        )
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


class TimelineParams(FileParams, frozen=True):
    """A memory timeline of the run."""

    points: Points = 1000


class MemoryTimeline(msgspec.Struct, frozen=True):
    """An exported memory timeline (`profiler.export_memory_timeline("x.raw.json.gz")`) as stacked categories.

    headline     the peak and its largest category
    categories   parameter, optimizer state, input, temporary, activation, gradient, autograd detail, unknown:
                 those that occur, in this order
    time         little-endian float64 ns (base64), as the file has it; the first is that of the first event
                 that has one
    sizes        per category a column like `time`: its bytes when the sum over the categories peaks in
                 the point's bucket, so that the stack reaches the exact peak
    peak_...     largest sum over the categories, when, and the bytes of each category then
    start_bytes  before the first event, per category
    """

    headline: Text
    events: int
    categories: list[str]
    time: Float64s
    sizes: list[Float64s]
    begin_ns: int
    end_ns: int
    peak_bytes: int
    peak_time_ns: int
    peak_sizes: list[int]
    start_bytes: list[int]


def build_timeline(timeline: RecordedTimeline, params: TimelineParams) -> MemoryTimeline:
    """Build the stacked areas of the categories in the file."""
    stack = stack_categories(timeline, params.points)
    peak_sizes = stack.peak_sizes.tolist()
    return MemoryTimeline(
        headline=words.timeline_headline(stack.categories, peak_sizes, stack.peak),
        events=len(timeline.time),
        categories=list(stack.categories),
        time=stack.time,
        sizes=list(stack.sizes),
        begin_ns=stack.begin,
        end_ns=stack.end,
        peak_bytes=stack.peak,
        peak_time_ns=stack.peak_time,
        peak_sizes=peak_sizes,
        start_bytes=stack.start.tolist(),
    )


TIMELINE = FileView(
    "memory/timeline", "Memory timeline", TimelineParams, MemoryTimeline, build_timeline, "timeline"
)
