"""Memory: what holds the memory of each device, when, and which code allocated it."""

from __future__ import annotations

from torch_tb_profiler.analyses.memory.allocations import (
    allocation_stack,
    event_of,
    module_path,
    operator_call,
    operator_name,
)
from torch_tb_profiler.analyses.memory.devices import DeviceMemory, Moment, device_memory
from torch_tb_profiler.analyses.memory.failures import failed_allocations
from torch_tb_profiler.analyses.memory.growth import Growth, Holder, growth
from torch_tb_profiler.analyses.memory.live import Live, instant, live
from torch_tb_profiler.analyses.shared.call_stacks import has_stacks
from torch_tb_profiler.analyses.shared.memory_curve import Levels, default_device, levels, records_in
from torch_tb_profiler.analyses.tracks.sources import frame
from torch_tb_profiler.model.memory.blocks import has_addresses
from torch_tb_profiler.model.modules import has_modules
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import Text, reason_texts, sentences
from torch_tb_profiler.views.memory import words
from torch_tb_profiler.views.memory.payload import (
    MemoryDevice,
    MemoryFailure,
    MemoryGrowth,
    MemoryHolder,
    MemoryMoment,
    MemoryPayload,
    MemoryStep,
)
from torch_tb_profiler.views.memory.reasons import reasons

FAILURES = 100

HOLDERS = 20
"""Places named for a growth of memory; those after them hold little."""


def build(trace: Trace, _: NoParams) -> MemoryPayload:
    """Devices, peaks, steps and growth; the parts have the curve and the tables."""
    measured = [(level, device_memory(trace, level)) for level in levels(trace)]
    devices = [_device(trace, level, memory) for level, memory in measured]
    grown = [
        _growth(trace, level, change) for level in levels(trace) if (change := growth(trace, level)) is not None
    ]
    return MemoryPayload(
        headline=_headline(trace, default_device(trace), devices, grown),
        devices=devices,
        default_device=default_device(trace),
        steps=_steps(trace),
        growth=grown,
        out_of_memory=_failures(trace),
        has_addresses=has_addresses(trace),
        has_stacks=has_stacks(trace),
        has_modules=has_modules(trace),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        reasons=reason_texts(reasons(trace, [memory for _, memory in measured], len(grown))),
    )


def _headline(trace: Trace, default: str | None, devices: list[MemoryDevice], grown: list[MemoryGrowth]) -> Text:
    """Of the default device: its peak, and that it may leak."""
    if not devices:
        return words.no_events(trace)
    leaks = [change.verdict for change in grown if change.device == default and change.growing]
    return sentences(*(device.headline for device in devices if device.name == default), *leaks)


def _device(trace: Trace, level: Levels, memory: DeviceMemory) -> MemoryDevice:
    at_peak = _at_peak(trace, level)
    top = at_peak.groups[0].largest if at_peak.groups else None
    device = memory.device
    return MemoryDevice(
        headline=words.headline(memory, at_peak, None if top is None else operator_name(trace, top)),
        details=words.details(memory),
        name=device.name,
        kind=device.kind,
        id=device.id,
        hardware=device.hardware,
        capacity_bytes=device.capacity,
        relative=memory.relative,
        peak_allocated=moment(memory.allocated),
        peak_reserved=moment(memory.reserved),
        fragmentation=moment(memory.unused),
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


def _at_peak(trace: Trace, level: Levels) -> Live:
    """What lives at the peak; of its groups the operator that holds most."""
    window = records_in(level.time, None, None)
    return live(trace, level, instant(level, window, None), "operator", slice(1))


def moment(peak: Moment | None) -> MemoryMoment | None:
    """A peak as the page reads it."""
    return None if peak is None else MemoryMoment(peak.bytes, peak.time, peak.event)


def _steps(trace: Trace) -> list[MemoryStep]:
    recorded = steps(trace)
    if not recorded.recorded:
        return []
    columns = (recorded.names, recorded.host_starts.tolist(), recorded.host_ends.tolist())
    return [MemoryStep(*row) for row in zip(*columns, strict=True)]


def _growth(trace: Trace, level: Levels, change: Growth) -> MemoryGrowth:
    return MemoryGrowth(
        verdict=words.growth_verdict(level.device.name, change),
        device=level.device.name,
        steps=list(steps(trace).names),
        live_bytes=change.live.tolist(),
        growing=change.growing,
        per_step_bytes=change.per_step,
        holders=[_holder(trace, holder) for holder in change.holders[:HOLDERS]],
    )


def _holder(trace: Trace, holder: Holder) -> MemoryHolder:
    """With the latest of its blocks as an example."""
    event, names = event_of(trace, holder.latest), steps(trace).names
    return MemoryHolder(
        summary=words.holder_summary(holder, event, names[holder.since], names[-1]),
        name=holder.name,
        module=module_path(trace, holder.latest),
        growth_bytes=holder.growth,
        step_bytes=holder.live.tolist(),
        blocks=holder.blocks,
        event=event,
        operator_event=operator_call(trace, holder.latest),
        frames=[frame(text) for text in allocation_stack(trace, holder.latest)],
    )


def _failures(trace: Trace) -> list[MemoryFailure]:
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
        for failure in failed_allocations(trace, FAILURES)
    ]
