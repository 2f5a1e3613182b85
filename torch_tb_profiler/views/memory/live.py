"""What lives at an instant."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.memory.allocations import event_of, module_path, operator_call, operator_name
from torch_tb_profiler.analyses.memory.live import GroupBy, Live, LiveGroup, instant, live
from torch_tb_profiler.analyses.shared.memory_curve import Levels, of_device, records_in
from torch_tb_profiler.analyses.tracks.sources import Frame, frame
from torch_tb_profiler.model.memory.blocks import has_addresses
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, TraceView
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views.memory.reasons import NO_ADDRESSES


class LiveParams(Page, frozen=True):
    """What lives `at` a time (ns; default: at the peak of the window) by operator, module, stack or size.

    `limit` rows from `first` on, all by default.
    """

    device: str = ""
    at: int | None = None
    begin: int | None = None
    end: int | None = None
    group_by: GroupBy = "operator"


class LiveRow(msgspec.Struct, frozen=True):
    """Blocks that live at the instant and share a row.

    name    the operator, `<parent> (<operator>)`, the path of the module, or the innermost frame; null of a size
            and outside of operators or modules
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
    """NotFoundError for an unknown device, UsageError for an unknown grouping."""
    level = of_device(trace, params.device)
    window = records_in(level.time, params.begin, params.end)
    index = instant(level, window, params.at)
    alive = live(trace, level, index, params.group_by, params.rows)
    time = params.at if params.at is not None else max(window.begin, int(level.time[max(index, 0)]))
    return MemoryLive(
        device=level.device.name,
        time_ns=time,
        group_by=params.group_by,
        allocated_bytes=alive.allocated,
        reserved_bytes=alive.reserved,
        known_bytes=alive.bytes,
        blocks=alive.blocks,
        older_bytes=alive.older,
        older_released_bytes=alive.older_released,
        total_rows=alive.total_groups,
        rows=[_row(trace, group, params.group_by, alive.bytes + (alive.older or 0)) for group in alive.groups],
        reasons=reason_texts(_reasons(trace, level, alive, index)),
    )


def _row(trace: Trace, group: LiveGroup, group_by: GroupBy, whole: int) -> LiveRow:
    return LiveRow(
        name=_name(trace, group, group_by),
        frames=[frame(text) for text in group.frames],
        size_bytes=group.size if group_by == "size" else None,
        blocks=group.blocks,
        bytes=group.bytes,
        share=group.bytes / whole if whole else None,
        event=event_of(trace, group.largest),
        operator_event=operator_call(trace, group.largest),
    )


def _name(trace: Trace, group: LiveGroup, group_by: GroupBy) -> str | None:
    if group_by == "stack":
        return group.frames[0] if group.frames else None
    if group_by == "module":
        return module_path(trace, group.largest)
    return operator_name(trace, group.largest) if group_by == "operator" else None


def _reasons(trace: Trace, level: Levels, alive: Live, index: int) -> dict[str, str]:
    reasons = {}
    if not has_addresses(trace):
        reasons["rows"] = NO_ADDRESSES
    if level.relative:
        reasons["allocated_bytes"] = reasons["older_bytes"] = "the file has no totals (PyTorch before 1.10)"
    elif alive.older is None:
        reasons["older_bytes"] = "the recorded total is unknown here, or less than the live blocks"
    if index < 0:
        reasons["allocated_bytes"] = "nothing is recorded before the device's first memory event"
    return reasons


LIVE = TraceView("memory/live", "Live memory", LiveParams, MemoryLive, build_live)
