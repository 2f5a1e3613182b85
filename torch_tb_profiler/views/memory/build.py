"""Memory: what holds the memory of each device, when, and who asked for it."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.memory.growth import LEAST_STEPS, Growth, Holder, growth
from torch_tb_profiler.analyses.memory.live import allocation_stacks, start_and_end
from torch_tb_profiler.analyses.shared.call_stacks import has_stacks
from torch_tb_profiler.analyses.shared.memory_curve import Levels, default_device, levels, peak, unused
from torch_tb_profiler.analyses.tracks.sources import frame, name_of
from torch_tb_profiler.model.memory.blocks import OLDER, UNRELEASED, has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import (
    calls_around,
    is_memory,
    memory_calls,
    memory_failures,
    memory_names,
    memory_records,
)
from torch_tb_profiler.model.modules.modules import has_modules, modules
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views.memory import files as memory_files
from torch_tb_profiler.views.memory import parts as memory_parts
from torch_tb_profiler.views.memory.payload import (
    MemoryDevice,
    MemoryFailure,
    MemoryGrowth,
    MemoryHolder,
    MemoryPayload,
    MemoryStep,
)

FAILURES = 100

HOLDERS = 20
"""Operators named for a growth of memory; those after them hold little."""


def build(trace: Trace, _: NoParams) -> MemoryPayload:
    """Devices, peaks, steps and growth; the parts have the curve and the tables."""
    found = steps(trace)
    grown = [_growth(trace, level, each) for level in levels(trace) if (each := growth(trace, level)) is not None]
    return MemoryPayload(
        devices=[_device(trace, level) for level in levels(trace)],
        default_device=default_device(trace),
        steps=[
            MemoryStep(name, start, end)
            for name, start, end in zip(
                found.names, found.host_starts.tolist(), found.host_ends.tolist(), strict=True
            )
        ]
        if found.recorded
        else [],
        growth=grown,
        out_of_memory=_failures(trace),
        has_addresses=has_addresses(trace),
        has_stacks=has_stacks(trace),
        has_modules=has_modules(trace),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        reasons=_reasons(trace),
    )


def _device(trace: Trace, level: Levels) -> MemoryDevice:
    records, every, device = memory_records(trace), memory_blocks(trace), level.device
    first = np.where(every.allocation >= 0, every.allocation, every.release)
    states = every.state[records.device[first] == records.devices.index(device)]
    sizes = records.size[level.positions]
    allocated = None if level.relative else memory_parts.moment(trace, level, peak(level.allocated))
    reserved = memory_parts.moment(trace, level, peak(level.reserved))
    start, end = start_and_end(trace, level)
    matched = has_addresses(trace)
    return MemoryDevice(
        name=device.name,
        kind=device.kind,
        id=device.id,
        hardware=device.hardware,
        capacity_bytes=device.capacity,
        relative=level.relative,
        peak_allocated_bytes=None if allocated is None else allocated.bytes,
        peak_reserved_bytes=None if reserved is None else reserved.bytes,
        allocated=allocated,
        reserved=reserved,
        fragmentation=memory_parts.moment(trace, level, peak(unused(level))),
        start_bytes=start,
        end_bytes=end,
        events=len(sizes),
        allocations=int((sizes > 0).sum()),
        releases=int((sizes < 0).sum()),
        unreleased=int((states == UNRELEASED).sum()) if matched else None,
        older=int((states == OLDER).sum()) if matched else None,
        allocated_in_trace_bytes=int(np.maximum(sizes, 0).sum()),
        begin_ns=int(level.time[0]),
        end_ns=int(level.time[-1]),
    )


def _growth(trace: Trace, level: Levels, found: Growth) -> MemoryGrowth:
    changes = np.diff(found.live[found.since if found.growing else 0 :])
    return MemoryGrowth(
        device=level.device.name,
        steps=list(steps(trace).names),
        live_bytes=found.live.tolist(),
        growing=found.growing,
        per_step_bytes=int(np.median(changes)) if len(changes) else None,
        holders=[_holder(trace, each, found.since) for each in found.holders[:HOLDERS]],
    )


def _holder(trace: Trace, holder: Holder, since: int) -> MemoryHolder:
    """With the latest of its blocks as an example: the first ones may be buffers that stay for good."""
    every, records = memory_blocks(trace), memory_records(trace)
    latest = every.allocation[holder.blocks[-1:]]
    row = int(records.rows[latest[0]])
    call = int(memory_calls(trace)[latest[0]])
    code = int(modules(trace).code[row])
    frames = allocation_stacks(trace, latest).frames[0]
    return MemoryHolder(
        name=None if holder.name == NO_CODE else memory_names(trace)[1][holder.name],
        module=None if code == NO_CODE else " > ".join(modules(trace).path(code)),
        growth_bytes=int(holder.live[-1] - holder.live[since]),
        step_bytes=holder.live.tolist(),
        blocks=len(holder.blocks),
        event=row,
        operator_event=None if call == NO_CODE else call,
        frames=[frame(text) for text in frames],
    )


def _failures(trace: Trace) -> list[MemoryFailure]:
    found = memory_failures(trace)
    if not len(found):
        return []
    calls = calls_around(trace, found.rows[:FAILURES])

    def known(value: int) -> int | None:
        return None if value == ABSENT else value

    return [
        MemoryFailure(
            event=int(found.rows[i]),
            device=found.devices[int(found.device[i])].name,
            time_ns=int(found.time[i]),
            bytes=abs(int(found.size[i])) or None,
            allocated_bytes=known(int(found.allocated[i])),
            reserved_bytes=known(int(found.reserved[i])),
            operator=None if call == NO_CODE else name_of(trace, call),
            operator_event=None if call == NO_CODE else call,
        )
        for i, call in enumerate(calls.tolist())
    ]


def _reasons(trace: Trace) -> dict[str, str]:
    reasons = {}
    every = levels(trace)
    if not every:
        return {"devices": unavailable(trace) or ""}
    if any(level.device.capacity is None and level.device.name != "CPU" for level in every):
        reasons["capacity_bytes"] = "the file does not describe the device (`deviceProperties`)"
    if any(level.device.name == "CPU" for level in every):
        reasons.setdefault("capacity_bytes", "the memory of the host is not recorded")
    if any(level.relative for level in every):
        reasons["peak_allocated_bytes"] = reasons["peak_reserved_bytes"] = (
            "the file has no totals: PyTorch records them since 1.10"
        )
    if all((unused(level) == ABSENT).all() for level in every):
        reasons["fragmentation"] = "no reserved memory is recorded; the CPU's allocator reserves none"
    if not has_addresses(trace):
        reasons["unreleased"] = reasons["older"] = "the file has no addresses: PyTorch records them since 1.10"
    if not has_stacks(trace):
        reasons["stacks"] = "no call stacks are recorded (`profile(with_stack=True)`)"
    if not has_modules(trace):
        reasons["modules"] = "no nn.Module is recorded (`profile(with_stack=True)` or `with_modules=True`)"
    recorded = steps(trace)
    if not recorded.recorded:
        reasons["growth"] = "no steps are recorded (call `profiler.step()` after each)"
    elif len(recorded.names) < LEAST_STEPS:
        reasons["growth"] = f"growth needs {LEAST_STEPS} steps; this trace has {len(recorded.names)}"
    return reasons


def unavailable(trace: Trace) -> str | None:
    """The tab needs one memory event with a time."""
    if (is_memory(trace) & (trace.events.start != ABSENT)).any():
        return None
    return "no memory events are recorded (`profile(profile_memory=True)` records them)"


TAB = Tab(
    "Resources",
    TraceView("memory", "Memory", NoParams, MemoryPayload, build),
    unavailable,
    (*memory_parts.PARTS, *memory_files.PARTS),
)
