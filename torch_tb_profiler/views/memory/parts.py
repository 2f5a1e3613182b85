"""What the Memory tab asks for: the curve of a window, what lives at an instant, its blocks and operators."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.events import Filter, SortBy, chosen_blocks, ordered, times
from torch_tb_profiler.analyses.memory.live import GroupBy, Live, instant, live
from torch_tb_profiler.analyses.memory.operators import operator_memory
from torch_tb_profiler.analyses.shared.memory_curve import Levels, Moment, of_device, peak, sample, unused, window
from torch_tb_profiler.analyses.tracks.sources import frame, name_of
from torch_tb_profiler.model.memory.blocks import STATES, State, has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import memory_calls, memory_names, memory_records
from torch_tb_profiler.model.modules.modules import has_modules, modules
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Float64, Int64, Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views.memory.payload import (
    LiveGroup,
    MemoryCurve,
    MemoryEvent,
    MemoryEvents,
    MemoryLive,
    MemoryMoment,
    MemoryOperator,
    MemoryOperators,
    OutsideOperators,
    Points,
)

NO_ADDRESSES = (
    "the file has no addresses, so allocations and releases cannot be matched (PyTorch records them since 1.10)"
)


class CurveParams(msgspec.Struct, frozen=True):
    """A device ("": the default one), a window [begin, end] in ns (default: its first to its last event)."""

    device: str = ""
    begin: int | None = None
    end: int | None = None
    points: Points = 1000


def build_curve(trace: Trace, params: CurveParams) -> MemoryCurve:
    """NotFoundError for an unknown device."""
    level = of_device(trace, params.device)
    part = window(level.time, params.begin, params.end)
    allocated = sample(level.time, level.allocated, part, params.points)
    reserved = sample(level.time, level.reserved, part, params.points)
    none = bool((level.reserved == ABSENT).all())

    def highest(values: Int64) -> MemoryMoment | None:
        found = moment(trace, level, peak(values, part.held, part.high))
        if found is None or found.time_ns >= part.begin:
            return found
        return MemoryMoment(found.bytes, part.begin, found.event)  # it holds since before the window

    return MemoryCurve(
        device=level.device.name,
        begin_ns=part.begin,
        end_ns=part.end,
        events=part.high - part.low,
        exact=allocated.exact,
        relative=level.relative,
        time=_bytes(allocated.time),
        allocated_min=_bytes(allocated.least),
        allocated_max=_bytes(allocated.most),
        allocated_last=_bytes(allocated.last),
        reserved_min=b"" if none else _bytes(reserved.least),
        reserved_max=b"" if none else _bytes(reserved.most),
        reserved_last=b"" if none else _bytes(reserved.last),
        peak_allocated=highest(level.allocated),
        peak_reserved=highest(level.reserved),
        fragmentation=highest(unused(level)),
    )


def moment(trace: Trace, level: Levels, found: Moment | None) -> MemoryMoment | None:
    """A moment of the levels as the page is told."""
    if found is None:
        return None
    row = memory_records(trace).rows[level.positions[found.index]]
    return MemoryMoment(found.bytes, int(level.time[found.index]), int(row))


def _bytes(values: Int64 | Float64) -> bytes:
    return values.astype("<f8").tobytes()


class LiveParams(Page, frozen=True):
    """What lives `at` a time (ns; default: at the peak of the window) by operator, module, stack or size.

    `limit` rows from `first` on, all by default.
    """

    device: str = ""
    at: int | None = None
    begin: int | None = None
    end: int | None = None
    group_by: GroupBy = "operator"


def build_live(trace: Trace, params: LiveParams) -> MemoryLive:
    """NotFoundError for an unknown device, UsageError for an unknown grouping."""
    level = of_device(trace, params.device)
    part = window(level.time, params.begin, params.end)
    index = instant(level, part, params.at)
    found = live(trace, level, index, params.group_by)
    sizes = found.groups.sums(found.sizes)
    order = np.argsort(-sizes, kind="stable")
    total = _level(level.allocated, index) if not level.relative else None
    time = params.at if params.at is not None else max(part.begin, int(level.time[max(index, 0)]))
    return MemoryLive(
        device=level.device.name,
        time_ns=time,
        group_by=params.group_by,
        allocated_bytes=total,
        reserved_bytes=_level(level.reserved, index),
        known_bytes=int(found.sizes.sum()),
        blocks=len(found.blocks),
        older_bytes=found.older,
        older_released_bytes=found.older_released,
        total_rows=len(sizes),
        rows=_live_rows(trace, found, sizes, order[params.rows], params.group_by),
        reasons=_live_reasons(trace, level, found, index),
    )


def _level(values: Int64, index: int) -> int | None:
    return None if index < 0 or values[index] == ABSENT else int(values[index])


def _live_rows(trace: Trace, found: Live, sizes: Int64, page: Int64, group_by: str) -> list[LiveGroup]:
    every, records = memory_blocks(trace), memory_records(trace)
    blocks = found.groups.counts
    whole = int(found.sizes.sum()) + (found.older or 0)
    largest = np.lexsort((np.arange(len(found.sizes)), -found.sizes, found.groups.which))
    starts = np.cumsum(blocks) - blocks
    rows = []
    for group in page.tolist():
        at = int(largest[starts[group]])
        position = int(every.allocation[found.blocks[at]])
        row = int(records.rows[position])
        frames = found.stacks.frames[int(found.stacks.which[at])] if found.stacks is not None else ()
        rows.append(
            LiveGroup(
                name=_live_name(trace, position, row, group_by, frames),
                frames=[frame(text) for text in frames],
                size_bytes=int(found.sizes[at]) if group_by == "size" else None,
                blocks=int(blocks[group]),
                bytes=int(sizes[group]),
                share=int(sizes[group]) / whole if whole else None,
                event=row,
                operator_event=_operator_event(trace, position),
            )
        )
    return rows


def _live_name(trace: Trace, position: int, row: int, group_by: str, frames: tuple[str, ...]) -> str | None:
    if group_by == "stack":
        return frames[0] if frames else None
    if group_by == "module":
        return _module(trace, row)
    return _operator(trace, position) if group_by == "operator" else None


def _module(trace: Trace, row: int) -> str | None:
    code = int(modules(trace).code[row])
    return None if code == NO_CODE else " > ".join(modules(trace).path(code))


def _operator(trace: Trace, position: int) -> str | None:
    codes, texts = memory_names(trace)
    return None if codes[position] == NO_CODE else texts[codes[position]]


def _operator_event(trace: Trace, position: int) -> int | None:
    row = int(memory_calls(trace)[position])
    return None if row == NO_CODE else row


def _live_reasons(trace: Trace, level: Levels, found: Live, index: int) -> dict[str, str]:
    reasons = {}
    if not has_addresses(trace):
        reasons["rows"] = NO_ADDRESSES
    if level.relative:
        reasons["allocated_bytes"] = reasons["older_bytes"] = "the file has no totals (PyTorch before 1.10)"
    elif found.older is None:
        reasons["older_bytes"] = "the recorded total is unknown here, or less than the blocks that live"
    if index < 0:
        reasons["allocated_bytes"] = "nothing is recorded before the device's first memory event"
    return reasons


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
    state: State | Literal[""] = ""
    sort: SortBy = "size"
    descending: bool = True


def build_events(trace: Trace, params: EventsParams) -> MemoryEvents:
    """NotFoundError for an unknown device, UsageError for an unknown column or state."""
    level = of_device(trace, params.device)
    kept = Filter(params.begin, params.end, params.at, params.operator, params.search, params.state)
    chosen = chosen_blocks(trace, level, kept)
    page = ordered(trace, chosen, params.sort, params.descending)[params.rows]
    return MemoryEvents(
        device=level.device.name,
        total=len(chosen),
        total_bytes=int(memory_blocks(trace).size[chosen].sum()),
        rows=_event_rows(trace, page),
        reasons={} if has_addresses(trace) else {"released_ns": NO_ADDRESSES},
    )


def _event_rows(trace: Trace, page: Int64) -> list[MemoryEvent]:
    every, records = memory_blocks(trace), memory_records(trace)
    begun, ended = (column[page].tolist() for column in times(trace, every))
    with_modules = has_modules(trace)
    rows = []
    for i, block in enumerate(page.tolist()):
        allocation, release = int(every.allocation[block]), int(every.release[block])
        older = allocation == NO_CODE
        row = int(records.rows[release if older else allocation])
        born, gone = (None if time == ABSENT else time for time in (begun[i], ended[i]))
        rows.append(
            MemoryEvent(
                event=row,
                release_event=None if release == NO_CODE else int(records.rows[release]),
                operator=None if older else _operator(trace, allocation),
                operator_event=None if older else _operator_event(trace, allocation),
                module=_module(trace, row) if with_modules and not older else None,
                size_bytes=int(every.size[block]),
                allocated_ns=born,
                released_ns=gone,
                duration_ns=None if born is None or gone is None else gone - born,
                state=STATES[every.state[block]],
            )
        )
    return rows


class MemoryOperatorsParams(msgspec.Struct, frozen=True):
    """The memory events of a device in [begin, end] (ns), all by default."""

    device: str = ""
    begin: int | None = None
    end: int | None = None


def build_operators(trace: Trace, params: MemoryOperatorsParams) -> MemoryOperators:
    """NotFoundError for an unknown device."""
    level = of_device(trace, params.device)
    window(level.time, params.begin, params.end)
    found = operator_memory(trace, level, params.begin, params.end)
    columns = zip(
        found.first.tolist(),
        [name_of(trace, row) for row in found.first.tolist()],
        *(
            column.tolist()
            for column in (
                found.calls,
                found.increase,
                found.self_increase,
                found.count,
                found.self_count,
                found.size,
                found.self_size,
            )
        ),
        strict=True,
    )
    rows = [MemoryOperator(*row) for row in columns]
    rows.sort(key=lambda row: (-row.self_size_increase_bytes, row.name))
    outside = OutsideOperators(found.outside_increase, found.outside_count, found.outside_size)
    return MemoryOperators(level.device.name, params.begin, params.end, rows, outside)


PARTS = (
    TraceView("memory/curve", "Memory curve", CurveParams, MemoryCurve, build_curve),
    TraceView("memory/live", "Live memory", LiveParams, MemoryLive, build_live),
    TraceView("memory/events", "Memory events", EventsParams, MemoryEvents, build_events),
    TraceView("memory/operators", "Memory by operator", MemoryOperatorsParams, MemoryOperators, build_operators),
)
