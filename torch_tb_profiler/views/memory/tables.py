"""The tables of the Memory tab: blocks one by one, live memory at an instant, and memory by operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.analyses.memory.blocks import (
    BlockFilter,
    BlockLifetime,
    BlockOrder,
    allocating_call,
    allocating_operator,
    build_block_page,
    event_row,
    filter_blocks,
    module_path,
    sum_block_sizes,
)
from torch_tb_profiler.analyses.memory.live import LiveGroup, LiveGrouping, LiveMemory, find_record, live_memory
from torch_tb_profiler.analyses.memory.operators import operator_memory
from torch_tb_profiler.analyses.shared.memory_curve import MemoryLevels, device_levels, find_records
from torch_tb_profiler.analyses.tracks.sources import SourceFrame, name_of, parse_frame
from torch_tb_profiler.model.memory.blocks import BlockState, has_addresses
from torch_tb_profiler.model.modules import has_modules
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views.memory.words import NO_ADDRESSES


class EventsParams(Page, frozen=True):
    """Blocks of a device: allocated or released in [begin, end], live `at` a time, allocated by an `operator`.

    operator    its name, or as the rows spell it; `search`: a part of that, ignoring case
    state       released, unreleased, replaced, older or unknown
    sort        size, operator, allocated, released or duration; rows without a value come last
    limit       rows from `first` on, all by default
    """

    device: str = ""
    begin: int | None = None
    end: int | None = None
    at: int | None = None
    operator: str = ""
    search: str = ""
    state: BlockState | Literal[""] = ""
    sort: BlockOrder = "size"
    descending: bool = True


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
    state: BlockState


class MemoryEvents(msgspec.Struct, frozen=True):
    """A page of the blocks of a device; `total` is their number without paging, `total_bytes` their size."""

    device: str
    total: int
    total_bytes: int
    rows: list[MemoryEvent]
    reasons: Mapping[str, Text]


def build_events(trace: Trace, params: EventsParams) -> MemoryEvents:
    """Build a page of blocks. NotFoundError for an unknown device, UsageError for an unknown column or state."""
    level = device_levels(trace, params.device)
    conditions = BlockFilter(params.begin, params.end, params.at, params.operator, params.search, params.state)
    chosen = filter_blocks(trace, level, conditions)
    page = build_block_page(trace, chosen, params.sort, params.descending, params.rows)
    with_modules = has_modules(trace)
    return MemoryEvents(
        device=level.device.name,
        total=len(chosen),
        total_bytes=sum_block_sizes(trace, chosen),
        rows=[_build_block_row(trace, block, with_modules) for block in page],
        reasons=reason_texts({} if has_addresses(trace) else {"released_ns": NO_ADDRESSES}),
    )


def _build_block_row(trace: Trace, block: BlockLifetime, with_modules: bool) -> MemoryEvent:
    allocation = block.allocation
    return MemoryEvent(
        event=event_row(trace, block.first),
        release_event=None if block.release is None else event_row(trace, block.release),
        operator=None if allocation is None else allocating_operator(trace, allocation),
        operator_event=None if allocation is None else allocating_call(trace, allocation),
        module=None if allocation is None or not with_modules else module_path(trace, allocation),
        size_bytes=block.size,
        allocated_ns=block.allocated,
        released_ns=block.released,
        duration_ns=block.duration,
        state=block.state,
    )


EVENTS = TraceView(
    "memory/events",
    "Memory events",
    EventsParams,
    MemoryEvents,
    build_events,
    answers="The memory blocks of a device, one by one.",
)


class LiveParams(Page, frozen=True):
    """Live memory `at` a time (ns; default: at the peak of the window) by operator, module, stack or size.

    `limit` rows from `first` on, all by default.
    """

    device: str = ""
    at: int | None = None
    begin: int | None = None
    end: int | None = None
    group_by: LiveGrouping = "operator"


class LiveRow(msgspec.Struct, frozen=True):
    """Live blocks that share a row.

    name    the operator, `<parent> (<operator>)`, the path of the module, or the innermost frame; null of a size
            and outside of operators or modules
    frames  of a stack, innermost first
    size_bytes  of each block where rows are grouped by size, else null
    share   of all that is allocated at the instant
    event   row of the largest block's allocation; operator_event: of the operator call that made it
    """

    name: str | None
    frames: list[SourceFrame]
    size_bytes: int | None
    blocks: int
    bytes: int
    share: float | None
    event: int
    operator_event: int | None


class MemoryLive(msgspec.Struct, frozen=True):
    """Live memory at an instant, after its events; by default at the peak of the window.

    allocated_bytes, reserved_bytes  the recorded totals; null without
    known_bytes    in the rows; older_bytes: allocated before the trace (or unseen) = allocated - known, null
                   where it is unknown
    older_released_bytes  how much of it is released later in the trace
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
    rows: list[LiveRow]
    reasons: Mapping[str, Text]


def build_live(trace: Trace, params: LiveParams) -> MemoryLive:
    """Build the live memory. NotFoundError for an unknown device, UsageError for an unknown grouping."""
    level = device_levels(trace, params.device)
    window = find_records(level.time, params.begin, params.end)
    index = find_record(level, window, params.at)
    live = live_memory(trace, level, index, params.group_by, params.rows)
    time = params.at if params.at is not None else max(window.begin, int(level.time[max(index, 0)]))
    return MemoryLive(
        device=level.device.name,
        time_ns=time,
        group_by=params.group_by,
        allocated_bytes=live.allocated,
        reserved_bytes=live.reserved,
        known_bytes=live.bytes,
        blocks=live.blocks,
        older_bytes=live.older,
        older_released_bytes=live.older_released,
        total_rows=live.total_groups,
        rows=[
            _build_live_row(trace, group, params.group_by, live.bytes + (live.older or 0)) for group in live.groups
        ],
        reasons=reason_texts(_live_reasons(trace, level, live, index)),
    )


def _build_live_row(trace: Trace, group: LiveGroup, group_by: LiveGrouping, total: int) -> LiveRow:
    return LiveRow(
        name=_live_name(trace, group, group_by),
        frames=[parse_frame(text) for text in group.frames],
        size_bytes=group.size if group_by == "size" else None,
        blocks=group.blocks,
        bytes=group.bytes,
        share=group.bytes / total if total else None,
        event=event_row(trace, group.largest),
        operator_event=allocating_call(trace, group.largest),
    )


def _live_name(trace: Trace, group: LiveGroup, group_by: LiveGrouping) -> str | None:
    if group_by == "stack":
        return group.frames[0] if group.frames else None
    if group_by == "module":
        return module_path(trace, group.largest)
    return allocating_operator(trace, group.largest) if group_by == "operator" else None


def _live_reasons(trace: Trace, level: MemoryLevels, live: LiveMemory, index: int) -> dict[str, str]:
    reasons = {}
    if not has_addresses(trace):
        reasons["rows"] = NO_ADDRESSES
    if level.relative:
        reasons["allocated_bytes"] = reasons["older_bytes"] = "the file has no totals (PyTorch before 1.10)"
    elif live.older is None:
        reasons["older_bytes"] = "the recorded total is missing here, or less than the live blocks"
    if index < 0:
        reasons["allocated_bytes"] = "nothing was recorded before the device's first memory event"
    return reasons


LIVE = TraceView("memory/live", "Live memory", LiveParams, MemoryLive, build_live)


class MemoryOperatorsParams(msgspec.Struct, frozen=True):
    """The memory events of a device in [begin, end] (ns), all by default."""

    device: str = ""
    begin: int | None = None
    end: int | None = None


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

    The self figures of all rows and `outside` add up to all memory events of the device in the window.
    """

    device: str
    begin_ns: int | None
    end_ns: int | None
    rows: list[MemoryOperator]
    outside: OutsideOperators


def build_operators(trace: Trace, params: MemoryOperatorsParams) -> MemoryOperators:
    """Build the table. NotFoundError for an unknown device, UsageError for a window that is not a range."""
    level = device_levels(trace, params.device)
    find_records(level.time, params.begin, params.end)
    table = operator_memory(trace, level, params.begin, params.end)
    columns = (
        table.calls,
        table.increase,
        table.self_increase,
        table.count,
        table.self_count,
        table.size,
        table.self_size,
    )
    rows = [
        MemoryOperator(event, name_of(trace, event), *figures)
        for event, *figures in zip(table.first.tolist(), *(column.tolist() for column in columns), strict=True)
    ]
    rows.sort(key=lambda row: (-row.self_size_increase_bytes, row.name))
    outside = OutsideOperators(table.outside_increase, table.outside_count, table.outside_size)
    return MemoryOperators(level.device.name, params.begin, params.end, rows, outside)


OPERATORS = TraceView(
    "memory/operators", "Memory by operator", MemoryOperatorsParams, MemoryOperators, build_operators
)
