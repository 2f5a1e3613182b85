"""What the Memory tab and its parts answer. Sizes in bytes; times in ns, points in time since the trace's start.

Bulk columns are little-endian float64 arrays of equal length (`bytes`, base64 on the wire): whole numbers,
exact up to 2^53.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.tracks.sources import Frame
from torch_tb_profiler.model.memory.blocks import State

Points = Annotated[int, msgspec.Meta(ge=1, le=20_000)]
"""How many points of a curve are wanted."""


class MemoryMoment(msgspec.Struct, frozen=True):
    """A size and when it was first reached; `event` is the row of the memory event in the trace."""

    bytes: int
    time_ns: int
    event: int


class MemoryDevice(msgspec.Struct, frozen=True):
    """A device with memory events.

    name            "CPU", "GPU0", "XPU1", ...; names the device in the parts
    kind            CPU, CUDA, ROCm, XPU, HPU, MTIA, ... or "device type N"
    hardware        what the card is called; capacity_bytes: how much memory it has. Null where the file does
                    not say
    relative        the file records no totals (PyTorch before 1.10): the curve is the change since the trace's
                    start, and the peaks are null
    allocated       in use at once at most; reserved: held by the allocator at most; fragmentation: the largest
                    reserved - allocated. Null without totals
    start_bytes, end_bytes  allocated before the first and after the last event
    events          memory events of the device; allocations and releases among them
    unreleased      allocations without a release; older: releases of memory that was allocated before the trace
                    (or unseen)
    begin_ns, end_ns  from the first to the last event
    """

    name: str
    kind: str
    id: int
    hardware: str | None
    capacity_bytes: int | None
    relative: bool
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    allocated: MemoryMoment | None
    reserved: MemoryMoment | None
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
    """Memory of one operator (or `<parent> (<operator>)`; null: outside operators) that grows from step to step.

    growth_bytes   live at the end of the last step minus at the end of the first (of the second, where memory
                   grows since then)
    step_bytes     live at the end of each step
    blocks         live at the end of the last step and allocated after the first one ended
    event          row of the latest such allocation; operator_event: row of the operator call that made it
    frames         the Python stack it was made from, innermost first; empty where none is recorded
    """

    name: str | None
    module: str | None
    growth_bytes: int
    step_bytes: list[int]
    blocks: int
    event: int
    operator_event: int | None
    frames: list[Frame]


class MemoryGrowth(msgspec.Struct, frozen=True):
    """Live memory of a device at the end of each step, and whether it looks like a leak.

    growing         it is larger at the end of every step than at the end of the one before (three steps at
                    least)
    per_step_bytes  median growth from a step's end to the next, null with fewer than two steps
    holders         the operators that hold the growth, most first; without addresses none
    """

    device: str
    steps: list[str]
    live_bytes: list[int]
    growing: bool
    per_step_bytes: int | None
    holders: list[MemoryHolder]


class MemoryFailure(msgspec.Struct, frozen=True):
    """An allocation that found no memory: what it asked for, the totals then, the operator (null: outside)."""

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

    default_device  an accelerator if one has events, else the CPU; null without events (then `attachments` of
                    the run are all there is)
    growth          per device, in traces with steps
    out_of_memory   the first 100 allocations that failed
    has_addresses   allocations and releases are matched; else there is no live set and no lifetime
    reasons         field -> why it is null or empty
    """

    devices: list[MemoryDevice]
    default_device: str | None
    steps: list[MemoryStep]
    growth: list[MemoryGrowth]
    out_of_memory: list[MemoryFailure]
    has_addresses: bool
    has_stacks: bool
    has_modules: bool
    trace_start_ns: int
    base_ns: int
    reasons: Mapping[str, str]


class MemoryCurve(msgspec.Struct, frozen=True):
    """Allocated and reserved memory of one device in a window, as a step function.

    `exact`: entry i is an event and its values hold until time i + 1 (the first entry: what holds at begin_ns).
    Otherwise entry i is the bucket that begins at time i, with the least, greatest and last value in it; what
    holds at its beginning counts. The columns of `reserved` are empty where the file records no totals.

    peak_allocated, peak_reserved, fragmentation  exact, of this window, whatever the sampling
    """

    device: str
    begin_ns: int
    end_ns: int
    events: int
    exact: bool
    relative: bool
    time: bytes
    allocated_min: bytes
    allocated_max: bytes
    allocated_last: bytes
    reserved_min: bytes
    reserved_max: bytes
    reserved_last: bytes
    peak_allocated: MemoryMoment | None
    peak_reserved: MemoryMoment | None
    fragmentation: MemoryMoment | None


class LiveGroup(msgspec.Struct, frozen=True):
    """Blocks that live at the instant and share a row.

    name    the operator, `<parent> (<operator>)`, the path of the module, the innermost frame, or the size as
            text
    frames  of a stack, innermost first
    size_bytes  of each block where rows are grouped by size, else null
    share   of all that is allocated at the instant
    event   row of the largest block's allocation; operator_event: of the operator call that made it
    """

    name: str | None
    frames: list[Frame]
    size_bytes: int | None
    blocks: int
    bytes: int
    share: float | None
    event: int
    operator_event: int | None


class MemoryLive(msgspec.Struct, frozen=True):
    """What lives at an instant, after the events of that instant; without one asked for, at the peak (of the
    window).

    allocated_bytes, reserved_bytes  the recorded totals; null without
    known_bytes    in the rows; older_bytes: allocated before the trace (or unseen) = allocated - known, null
                   where that cannot be told
    older_released_bytes  how much of it the trace sees released later
    rows           by size, largest first; `total_rows` of them without paging
    """

    device: str
    time_ns: int
    group_by: str
    allocated_bytes: int | None
    reserved_bytes: int | None
    known_bytes: int
    blocks: int
    older_bytes: int | None
    older_released_bytes: int
    total_rows: int
    rows: list[LiveGroup]
    reasons: Mapping[str, str]


class MemoryEvent(msgspec.Struct, frozen=True):
    """One block of memory from its allocation to its release.

    event           row of its allocation (of the release where state is older); release_event likewise
    operator        that allocated it, `<parent> (<operator>)` for the `aten::empty` family; null outside
                    operators
    operator_event  row of that operator's call
    state           released; unreleased: still there when the trace ends; replaced: its address was allocated
                    again although no release is recorded; older: only its release is recorded; unknown: the file
                    records no address
    """

    event: int
    release_event: int | None
    operator: str | None
    operator_event: int | None
    module: str | None
    size_bytes: int
    allocated_ns: int | None
    released_ns: int | None
    duration_ns: int | None
    state: State


class MemoryEvents(msgspec.Struct, frozen=True):
    """A page of the blocks of a device; `total` without paging, `total_bytes` the sum of their sizes."""

    device: str
    total: int
    total_bytes: int
    rows: list[MemoryEvent]
    reasons: Mapping[str, str]


class MemoryOperator(msgspec.Struct, frozen=True):
    """Memory events in the calls of one operator (nested ones included, unless self).

    calls                that overlap the window
    size_increase_bytes  allocated - released; allocation_size_bytes: allocated, whatever is released
    event                row of the first call
    """

    event: int
    name: str
    calls: int
    size_increase_bytes: int
    self_size_increase_bytes: int
    allocation_count: int
    self_allocation_count: int
    allocation_size_bytes: int
    self_allocation_size_bytes: int


class OutsideOperators(msgspec.Struct, frozen=True):
    """Memory events while no operator runs on their thread."""

    size_increase_bytes: int
    allocation_count: int
    allocation_size_bytes: int


class MemoryOperators(msgspec.Struct, frozen=True):
    """Operators with memory events in the window, by self size increase, largest first.

    The selves of all rows and `outside` add up to all memory events of the device in the window.
    """

    device: str
    begin_ns: int | None
    end_ns: int | None
    rows: list[MemoryOperator]
    outside: OutsideOperators
