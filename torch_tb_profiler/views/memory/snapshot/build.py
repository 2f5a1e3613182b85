"""A CUDA memory snapshot: why it ran out, what is in use, and its history."""

from __future__ import annotations

from collections.abc import Mapping

from torch_tb_profiler.analyses.memory.snapshot.allocators import (
    DeviceAllocator,
    device_allocators,
    find_allocator,
    has_requested_sizes,
    largest_segments,
    usage_by_stack,
)
from torch_tb_profiler.analyses.memory.snapshot.categories import CATEGORIES, UNKNOWN
from torch_tb_profiler.analyses.memory.snapshot.failures import SnapshotFailure, last_failures
from torch_tb_profiler.analyses.memory.snapshot.growth import MIN_STEPS, SnapshotGrowth, snapshot_growth
from torch_tb_profiler.analyses.memory.snapshot.history import (
    AllocatorHistory,
    allocator_history,
    requested_in_use,
    sample_history,
)
from torch_tb_profiler.analyses.memory.snapshot.live import (
    MemoryInUse,
    memory_in_use,
    recorded_live_memory,
    sample_categories,
)
from torch_tb_profiler.analyses.memory.snapshot.steps import (
    HistoryPeak,
    SnapshotStep,
    find_step_peaks,
    snapshot_steps,
)
from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.analyses.tracks.sources import SourceFrame, parse_frame
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import ABSENT
from torch_tb_profiler.view import FileView
from torch_tb_profiler.views._shared.text import reason_texts, sentences
from torch_tb_profiler.views.memory.snapshot import words
from torch_tb_profiler.views.memory.snapshot.payload import (
    MemorySnapshot,
    OutOfMemory,
    SnapshotDevice,
    SnapshotGrowthPayload,
    SnapshotLeakRow,
    SnapshotModule,
    SnapshotOom,
    SnapshotParams,
    SnapshotPeak,
    SnapshotRead,
    SnapshotSegment,
    SnapshotSite,
    SnapshotStack,
    StepPeak,
)
from torch_tb_profiler.views.memory.words import snapshot_details, snapshot_headline

MAX_FAILURES = 100
"""Out-of-memory errors listed; a loop that catches them makes thousands."""


def build_snapshot(snapshot: RecordedSnapshot, params: SnapshotParams) -> MemorySnapshot:
    """Build the payload of one device. NotFoundError for an unknown device."""
    allocator = find_allocator(snapshot, params.device)
    history = allocator_history(snapshot, allocator.device)
    sampled = sample_history(snapshot, history, params.points)
    categories = sample_categories(snapshot, allocator.device, history, sampled.peaks)
    steps = snapshot_steps(snapshot, allocator.device)
    inside, outside = find_step_peaks(history, steps) if steps else (None, None)
    peak = _build_peak(snapshot, history, params.limit)
    stacks = usage_by_stack(snapshot, allocator.device)
    failures = last_failures(snapshot, allocator.device, history, MAX_FAILURES)
    growth = snapshot_growth(snapshot, allocator.device)
    oom = [
        _build_oom(snapshot, allocator.device, history, failure, params.device_bytes, growth)
        for failure in failures
    ]
    grown = None if growth is None or not growth.known else _build_growth(snapshot, growth, params.limit)
    return MemorySnapshot(
        headline=oom[-1].verdict if oom else snapshot_headline(allocator, history.peak_in_use),
        details=sentences(
            grown.summary if grown is not None and _grows(grown) else (), snapshot_details(allocator)
        ),
        device=allocator.device,
        devices=[_build_snapshot_device(each) for each in device_allocators(snapshot)],
        total_stacks=len(stacks),
        stacks=[
            SnapshotStack(read_frames(snapshot, stack.code), stack.blocks, stack.size)
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
            OutOfMemory(failure.entry, failure.size, failure.device_free, read_frames(snapshot, failure.stack))
            for failure in failures
        ],
        entry=sampled.entry,
        history_time_us=sampled.time,
        allocated_min=sampled.allocated_min,
        allocated_max=sampled.allocated_max,
        allocated_last=sampled.allocated_last,
        reserved_last=sampled.reserved_last,
        categories=list(categories),
        category_bytes=list(categories.values()),
        peak_of_point=float64_bytes(sampled.peaks),
        step_peak=_step_peak(inside),
        outside_peak=_step_peak(outside),
        unknown_ratio=None if peak is None else unknown_ratio(peak.categories),
        peak_allocated_bytes=max(requested_in_use(snapshot, allocator.device), history.peak_in_use),
        peak_entry=history.peak,
        peak=peak,
        oom=oom,
        growth=grown,
        read=SnapshotRead(len(snapshot.history.action), snapshot.facts.bytes, snapshot.facts.incomplete is None),
        reasons=reason_texts(_reasons(snapshot, history, steps, oom[-1] if oom else None, growth)),
    )


def prepare_instants(snapshot: RecordedSnapshot) -> None:
    """Derive what the live set of any instant of the first device shown needs."""
    device = find_allocator(snapshot, None).device
    history = allocator_history(snapshot, device)
    if len(history):
        memory_in_use(snapshot, device, history, len(history) - 1).by_module(snapshot)
    snapshot_steps(snapshot, device)


def _build_snapshot_device(allocator: DeviceAllocator) -> SnapshotDevice:
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


def _build_peak(snapshot: RecordedSnapshot, history: AllocatorHistory, limit: int) -> SnapshotPeak | None:
    entry = history.recorded_peak
    if entry is None:
        return None
    live = recorded_live_memory(snapshot, history, entry)
    time, sites = int(snapshot.history.time[history.rows.start + entry]), live.by_site()
    return SnapshotPeak(
        bytes=live.total,
        older_bytes=int(history.in_use[entry]) - live.total,
        entry=entry,
        time_us=None if time == ABSENT else time,
        categories=live.by_category(),
        total_sites=len(sites),
        sites=list_sites(snapshot, sites[:limit]),
        modules=[SnapshotModule(*module) for module in live.by_module(snapshot)[:limit]],
        compile_contexts=live.by_context(snapshot),
    )


def _build_oom(
    snapshot: RecordedSnapshot,
    device: int,
    history: AllocatorHistory,
    failure: SnapshotFailure,
    device_bytes: int | None,
    growth: SnapshotGrowth | None,
) -> SnapshotOom:
    live = memory_in_use(snapshot, device, history, failure.entry)
    expandable = snapshot.facts.settings.get("expandable_segments")
    known = None not in (device_bytes, failure.device_free, failure.reserved)
    held = (device_bytes or 0) - (failure.device_free or 0) - (failure.reserved or 0)
    others = max(held, 0) if known else None
    leaks = () if growth is None or failure.entry != growth.entry else growth.leaks
    return SnapshotOom(
        entry=failure.entry,
        requested=failure.size,
        device_free=failure.device_free,
        reserved=failure.reserved,
        in_use=failure.in_use,
        unused=failure.unused,
        usable=failure.holes,
        largest_free=failure.largest_hole,
        other_unused=None if failure.other_holes is None else sum(failure.other_holes),
        other_bytes=others,
        categories=live.by_category(),
        cause=failure.cause,
        verdict=words.verdict(device, failure, live.by_category(), _find_top_site(snapshot, live)),
        remedies=words.remedies(
            failure,
            live.by_category(),
            others,
            expandable is True,
            leaks,
            words.site_name(snapshot.stack(leaks[0].stack)) if leaks else None,
            "step" if growth is None else growth.noun,
        ),
    )


def _build_growth(snapshot: RecordedSnapshot, growth: SnapshotGrowth, limit: int) -> SnapshotGrowthPayload:
    names = [words.site_name(snapshot.stack(site.stack)) for site in growth.leaks[:1]]
    rising = [] if growth.rising is None else snapshot.stack(growth.rising)
    return SnapshotGrowthPayload(
        summary=words.growth_summary(growth, names[0] if names else None, words.site_name(rising)),
        entry=growth.entry,
        steps=growth.steps,
        annotated=growth.annotated,
        leaked_bytes=growth.leaked,
        leaks=[
            SnapshotLeakRow(read_frames(snapshot, site.stack), site.bytes, site.blocks, site.steps, site.since)
            for site in growth.leaks[:limit]
        ],
        live_bytes=growth.live,
        rising=[parse_frame(text) for text in rising],
        reserved_bytes=None if growth.reserved is None else growth.reserved.per_step,
    )


def _grows(growth: SnapshotGrowthPayload) -> bool:
    return bool(growth.leaks) or growth.live_bytes is not None or growth.reserved_bytes is not None


def _find_top_site(snapshot: RecordedSnapshot, live: MemoryInUse) -> tuple[str, int] | None:
    """Return the frame of the site that holds most, and its bytes; None if it has no stack."""
    for stack, size, *_ in live.by_site()[:1]:
        name = words.site_name(snapshot.stack(stack))
        return None if name is None else (name, size)
    return None


def list_sites(snapshot: RecordedSnapshot, sites: list[tuple[int, int, int, int]]) -> list[SnapshotSite]:
    """Return sites (`MemoryInUse.by_site`) with their frames."""
    return [
        SnapshotSite(read_frames(snapshot, stack), size, blocks, CATEGORIES[category])
        for stack, size, blocks, category in sites
    ]


def read_frames(snapshot: RecordedSnapshot, code: int) -> list[SourceFrame]:
    """Return the frames of a stack, innermost first."""
    return [parse_frame(text) for text in snapshot.stack(code)]


def _step_peak(moment: HistoryPeak | None) -> StepPeak | None:
    return None if moment is None else StepPeak(moment.bytes, moment.entry, moment.step)


def unknown_ratio(categories: Mapping[str, int]) -> float:
    """Return the share of the bytes that no rule gives a category; 0 if there are none."""
    total = sum(categories.values())
    return round(categories.get(CATEGORIES[UNKNOWN], 0) / total, 6) if total else 0.0


def _reasons(
    snapshot: RecordedSnapshot,
    history: AllocatorHistory,
    steps: tuple[SnapshotStep, ...],
    last_oom: SnapshotOom | None,
    growth: SnapshotGrowth | None,
) -> dict[str, str]:
    reasons = {}
    if growth is not None and not growth.known:
        reasons["growth"] = (
            f"the history covers fewer than {MIN_STEPS} steps, so leaks can't be told "
            "(raise `max_entries` of `_record_memory_history`, or pass `global_record_annotations=True`)"
        )
    if not steps:
        reasons["step_peak"] = (
            "no steps were recorded (pass `global_record_annotations=True` to "
            "`torch.cuda.memory._record_memory_history` and call `prof.step()`)"
        )
    if snapshot.facts.preview:
        reasons["entry"] = "the history is still being read"
    elif not len(history):
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
    if snapshot.facts.incomplete is not None and not snapshot.facts.preview:
        reasons["incomplete"] = (
            f"only part of the file could be read: {snapshot.facts.incomplete}; bytes in use and reserved lack "
            "what was allocated before its history"
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
    cached=True,
    prepare=prepare_instants,
)
