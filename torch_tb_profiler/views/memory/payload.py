"""The payload of the Memory tab. Sizes in bytes; times in ns, points in time since the trace's start."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.tracks.sources import SourceFrame
from torch_tb_profiler.views._shared.text import Text


class MemoryMoment(msgspec.Struct, frozen=True):
    """A peak in bytes and when it was first reached; `event` is the row of the memory event in the trace."""

    bytes: int
    time_ns: int
    event: int


class MemoryDeviceEntry(msgspec.Struct, frozen=True):
    """A device with memory events.

    headline        the peak and what allocated most of it; details: allocations, releases, failures, fragmentation
    name            "CPU", "GPU 0", "XPU 1", ...; the name that the other memory views take
    kind            CPU, CUDA, ROCm, XPU, HPU, MTIA, ... or "device type N"
    hardware        model of the card; capacity_bytes: its memory. Null where the file does not describe it
    relative        the file records no totals (PyTorch before 1.10): the curve is the change since the trace's
                    start, and the peaks are null
    peak_allocated  most bytes in use at once; peak_reserved: held by the allocator; fragmentation: the largest
                    reserved - allocated. Null without totals
    start_bytes, end_bytes  allocated before the first and after the last event
    events          memory events of the device; allocations and releases among them
    unreleased      allocations without a release; older: releases of memory that was allocated before the trace
                    (or unseen)
    begin_ns, end_ns  from the first to the last event
    """

    headline: Text
    details: Text
    name: str
    kind: str
    id: int
    hardware: str | None
    capacity_bytes: int | None
    relative: bool
    peak_allocated: MemoryMoment | None
    peak_reserved: MemoryMoment | None
    fragmentation: MemoryMoment | None
    start_bytes: int | None
    end_bytes: int | None
    events: int
    allocations: int
    releases: int
    unreleased: int | None
    older: int | None
    allocated_in_trace_bytes: int
    begin_ns: int
    end_ns: int


class MemoryStep(msgspec.Struct, frozen=True):
    """A step as the host ran it."""

    name: str
    start_ns: int
    end_ns: int


class MemoryHolder(msgspec.Struct, frozen=True):
    """Blocks of one operator and stack, allocated in three steps or more and live at the end of the last step.

    name           the operator, or `<parent> (<operator>)`; null: outside of operators
    growth_bytes   their bytes; step_bytes: those that are live at the end of each step
    blocks         how many
    event          row of the newest allocation; operator_event: row of the operator call that made it
    frames         the Python stack it was made from, innermost first; empty where none is recorded
    """

    summary: Text
    name: str | None
    module: str | None
    growth_bytes: int
    step_bytes: list[int]
    blocks: int
    event: int
    operator_event: int | None
    frames: list[SourceFrame]


class MemoryGrowth(msgspec.Struct, frozen=True):
    """Live memory of a device at the end of each step, and whether it looks like a leak.

    growing         blocks of at least three steps outlive two or more and stay (needs at least four steps)
    per_step_bytes  bytes of the blocks that stay / steps since the first of them; null where none do
    rising_bytes    by which live memory rises per step although no block stays; null where it doesn't
    rising_reserved_bytes  by which reserved memory rises per step while tensors use no more; null where it doesn't
    holders         the code that allocated them, per operator and stack, most bytes first; without addresses none
    """

    verdict: Text
    device: str
    steps: list[str]
    live_bytes: list[int]
    growing: bool
    per_step_bytes: int | None
    rising_bytes: int | None
    rising_reserved_bytes: int | None
    holders: list[MemoryHolder]


class MemoryFailure(msgspec.Struct, frozen=True):
    """An allocation that failed for lack of memory: its size, the totals then, the operator (null: outside)."""

    event: int
    device: str
    time_ns: int
    bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None
    operator: str | None
    operator_event: int | None


class MemoryPayload(msgspec.Struct, frozen=True):
    """The memory of each device over the trace.

    headline        the peak of the default device, and whether its memory may leak
    default_device  an accelerator if one has events, else the CPU; null without events (then the memory files of
                    the run are all there is)
    growth          per device, in traces with steps
    out_of_memory   the first 100 allocations that failed
    has_addresses   allocations and releases are matched; else there is no live set and no lifetime
    reasons         field -> why it is null or empty
    """

    headline: Text
    devices: list[MemoryDeviceEntry]
    default_device: str | None
    steps: list[MemoryStep]
    growth: list[MemoryGrowth]
    out_of_memory: list[MemoryFailure]
    has_addresses: bool
    has_stacks: bool
    has_modules: bool
    trace_start_ns: int
    base_ns: int
    reasons: Mapping[str, Text]
