"""The blocks of a device: a filtered, sorted page of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.analyses.memory.allocations import event_of, module_path, operator_call, operator_name
from torch_tb_profiler.analyses.memory.blocks import (
    Block,
    BlockFilter,
    SortBy,
    block_page,
    filtered_blocks,
    total_bytes,
)
from torch_tb_profiler.analyses.shared.memory_curve import of_device
from torch_tb_profiler.model.memory.blocks import BlockState, has_addresses
from torch_tb_profiler.model.modules import has_modules
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views.memory.reasons import NO_ADDRESSES


class EventsParams(Page, frozen=True):
    """Blocks of a device: allocated or released in [begin, end], living `at` a time, allocated by an `operator`.

    operator    its name, or as the rows spell it; `search`: a part of that, whatever the case
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
    sort: SortBy = "size"
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
    """A page of the blocks of a device; `total` without paging, `total_bytes` the sum of their sizes."""

    device: str
    total: int
    total_bytes: int
    rows: list[MemoryEvent]
    reasons: Mapping[str, Text]


def build_events(trace: Trace, params: EventsParams) -> MemoryEvents:
    """NotFoundError for an unknown device, UsageError for an unknown column or state."""
    level = of_device(trace, params.device)
    wanted = BlockFilter(params.begin, params.end, params.at, params.operator, params.search, params.state)
    chosen = filtered_blocks(trace, level, wanted)
    page = block_page(trace, chosen, params.sort, params.descending, params.rows)
    with_modules = has_modules(trace)
    return MemoryEvents(
        device=level.device.name,
        total=len(chosen),
        total_bytes=total_bytes(trace, chosen),
        rows=[_row(trace, block, with_modules) for block in page],
        reasons=reason_texts({} if has_addresses(trace) else {"released_ns": NO_ADDRESSES}),
    )


def _row(trace: Trace, block: Block, with_modules: bool) -> MemoryEvent:
    allocation = block.allocation
    return MemoryEvent(
        event=event_of(trace, block.first),
        release_event=None if block.release is None else event_of(trace, block.release),
        operator=None if allocation is None else operator_name(trace, allocation),
        operator_event=None if allocation is None else operator_call(trace, allocation),
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
    answers="The blocks of memory of a device, one by one.",
)
