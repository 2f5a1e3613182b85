"""The Memory tab: peaks, steps, growth and failed allocations of each device."""

from __future__ import annotations

from torch_tb_profiler.analyses.memory.blocks import (
    allocating_call,
    allocating_operator,
    allocation_stack,
    event_row,
    module_path,
)
from torch_tb_profiler.analyses.memory.devices import (
    DeviceMemory,
    PeakMoment,
    device_memory,
    failed_allocations,
)
from torch_tb_profiler.analyses.memory.growth import DeviceGrowth, GrowthHolder, memory_growth
from torch_tb_profiler.analyses.memory.live import LiveMemory, find_record, live_memory
from torch_tb_profiler.analyses.shared.call_stacks import has_stacks
from torch_tb_profiler.analyses.shared.memory_curve import (
    MemoryLevels,
    default_device,
    find_records,
    memory_levels,
)
from torch_tb_profiler.analyses.shared.memory_trends import MemoryTrends, memory_trends
from torch_tb_profiler.analyses.tracks.sources import parse_frame
from torch_tb_profiler.model.memory.blocks import has_addresses
from torch_tb_profiler.model.memory.events import MemoryDevice
from torch_tb_profiler.model.modules import has_modules
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import Text, reason_texts, sentences
from torch_tb_profiler.views.memory import words
from torch_tb_profiler.views.memory.payload import (
    MemoryDeviceEntry,
    MemoryFailure,
    MemoryGrowth,
    MemoryHolder,
    MemoryMoment,
    MemoryPayload,
    MemoryStep,
)

MAX_FAILURES = 100
"""Out-of-memory errors listed; a loop that catches them makes thousands."""

MAX_HOLDERS = 20
"""Holders listed for growing memory; those after them hold little."""


def build(trace: Trace, _: NoParams) -> MemoryPayload:
    """Build devices, peaks, steps and growth; the views below this one have the curve and the tables."""
    measured = [(level, device_memory(trace, level)) for level in memory_levels(trace)]
    devices = [_build_device(trace, level, memory) for level, memory in measured]
    changes = [
        (level.device, memory_growth(trace, level), memory_trends(trace, level)) for level in memory_levels(trace)
    ]
    grown = [(device, change, trends) for device, change, trends in changes if change is not None]
    return MemoryPayload(
        headline=_headline(trace, [memory for _, memory in measured], devices, grown),
        devices=devices,
        default_device=default_device(trace),
        steps=_build_steps(trace),
        growth=[_build_growth(trace, device, change, trends) for device, change, trends in grown],
        out_of_memory=_build_failures(trace),
        has_addresses=has_addresses(trace),
        has_stacks=has_stacks(trace),
        has_modules=has_modules(trace),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        reasons=reason_texts(words.field_reasons(trace, [memory for _, memory in measured], len(grown))),
    )


def _headline(
    trace: Trace,
    measured: list[DeviceMemory],
    devices: list[MemoryDeviceEntry],
    grown: list[tuple[MemoryDevice, DeviceGrowth, MemoryTrends]],
) -> Text:
    """Return what failed, the peak of the default device or of the first one that ran out, and leaks."""
    if not devices:
        return words.no_events(trace)
    noun = step_noun(trace)
    failed = [memory for memory in measured if memory.failures]
    shown = failed[0].device.name if failed else default_device(trace)
    leaks = []
    for device, change, trends in sorted(grown, key=lambda row: row[0].name != shown):
        where = "" if device.name == shown else f" on {device.name}"
        if change.is_large if where else change.growing:
            leaks.append(words.growth_headline(device.name, change, noun, where))
        elif not where:
            leaks.append(words.rising_headline(trends, noun))
    return sentences(
        *map(words.failure_headline, failed), *(each.headline for each in devices if each.name == shown), *leaks
    )


def _build_device(trace: Trace, level: MemoryLevels, memory: DeviceMemory) -> MemoryDeviceEntry:
    at_peak = _at_peak(trace, level)
    top = at_peak.groups[0].largest if at_peak.groups else None
    device = memory.device
    return MemoryDeviceEntry(
        headline=words.device_headline(
            memory,
            at_peak,
            None if top is None else allocating_operator(trace, top),
            memory_trends(trace, level).peak_in_steps,
            step_noun(trace),
        ),
        details=words.device_details(memory),
        name=device.name,
        kind=device.kind,
        id=device.id,
        hardware=device.hardware,
        capacity_bytes=device.capacity,
        relative=memory.relative,
        peak_allocated=build_peak_moment(memory.allocated),
        peak_reserved=build_peak_moment(memory.reserved),
        fragmentation=build_peak_moment(memory.unused),
        start_bytes=memory.start,
        end_bytes=memory.end,
        events=memory.events,
        allocations=memory.allocations,
        releases=memory.releases,
        unreleased=memory.unreleased,
        older=memory.older,
        allocated_in_trace_bytes=memory.allocated_in_trace,
        begin_ns=memory.first_time,
        end_ns=memory.last_time,
    )


def _at_peak(trace: Trace, level: MemoryLevels) -> LiveMemory:
    """Return the live memory at the peak, with the operator that allocated most of it."""
    window = find_records(level.time, None, None)
    return live_memory(trace, level, find_record(level, window, None), "operator", slice(1))


def build_peak_moment(peak: PeakMoment | None) -> MemoryMoment | None:
    """Return a peak as a payload, None if there is none."""
    return None if peak is None else MemoryMoment(peak.bytes, peak.time, peak.event)


def _build_steps(trace: Trace) -> list[MemoryStep]:
    recorded = steps(trace)
    if not recorded.recorded:
        return []
    columns = (recorded.names, recorded.host_starts.tolist(), recorded.host_ends.tolist())
    return [MemoryStep(*row) for row in zip(*columns, strict=True)]


def _build_growth(trace: Trace, device: MemoryDevice, change: DeviceGrowth, trends: MemoryTrends) -> MemoryGrowth:
    rising, noun = None if change.growing else trends.live, step_noun(trace)
    return MemoryGrowth(
        verdict=sentences(
            words.growth_verdict(device.name, change, noun, rising is not None),
            words.rising_sentence(device.name, rising, noun) if rising is not None else (),
            words.reserved_sentence(device.kind, trends.reserved, noun) if trends.reserved is not None else (),
        ),
        device=device.name,
        steps=list(steps(trace).names),
        live_bytes=change.live.tolist(),
        growing=change.growing,
        per_step_bytes=change.per_step,
        rising_bytes=None if rising is None else rising.per_step,
        rising_reserved_bytes=None if trends.reserved is None else trends.reserved.per_step,
        holders=[_build_holder(trace, holder) for holder in change.holders[:MAX_HOLDERS] if change.growing],
    )


def _build_holder(trace: Trace, holder: GrowthHolder) -> MemoryHolder:
    """Return the row of a holder, with its newest block as the example."""
    event, names = event_row(trace, holder.latest), steps(trace).names
    return MemoryHolder(
        summary=words.holder_summary(holder, event, names[holder.since], names[-1], step_noun(trace)),
        name=holder.name,
        module=module_path(trace, holder.latest),
        growth_bytes=holder.growth,
        step_bytes=holder.live.tolist(),
        blocks=holder.blocks,
        event=event,
        operator_event=allocating_call(trace, holder.latest),
        frames=[parse_frame(text) for text in allocation_stack(trace, holder.latest)],
    )


def _build_failures(trace: Trace) -> list[MemoryFailure]:
    return [
        MemoryFailure(
            event=failure.event,
            device=failure.device,
            time_ns=failure.time,
            bytes=failure.size,
            allocated_bytes=failure.allocated,
            reserved_bytes=failure.reserved,
            operator=failure.operator,
            operator_event=failure.operator_event,
        )
        for failure in failed_allocations(trace, MAX_FAILURES)
    ]
