"""Idle time as a table: by cause, and within a cause by subject, such as the slice that the host was in.

Each row can have a saving: by how much the steps would be shorter if the host took no time there, from a replay of
the schedule without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import Cause
from torch_tb_profiler.analyses.schedule.places import program_places
from torch_tb_profiler.analyses.schedule.segments import IdleSegments, counted_step_mask, idle_segments
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import (
    WhatIfTarget,
    host_time_targets,
    max_curves,
    replay_unavailable_reason,
    savings_in_steps,
)
from torch_tb_profiler.analyses.shared.grouping import Groups, count_pairs, group, order_statistics
from torch_tb_profiler.base.arrays import sums_by_number
from torch_tb_profiler.base.intervals import Intervals
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.schedule.items import clock_shift_ns
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int8, Int32, Int64, Trace

SubjectKind = Literal["cause", "emptied_by", "operator", "module", "frame"]
"""What the subject of a row is: the slice to blame; the call that drained the queue, with its operator; the
operator, module, or source line that the blamed slice belongs to."""


class IdleTable(msgspec.Struct, frozen=True):
    """Rows of idle time, largest first; columns of length g, times in ns.

    segments     the idle segments of the device or stream
    counted      bool[steps]: the chosen steps, of which the table tells
    selected     positions of the segments in the chosen steps, None if all are
    row          int32  the row that each of these segments belongs to
    cause        int8   a Cause
    subject      None where nothing is recorded, and for `emptied_by` where the device caught up with the host
    event        int32  the event to blame for the longest segment, NO_CODE if nothing is recorded
    begin, end   int64  the longest segment, on the device's own clock
    time         int64
    gaps         int64  gaps with a segment of this row
    median       float64  of the segments
    emptied_by   int32  the call that drained the queue before most of the time, NO_CODE if none did
    emptied_time int64  time before which a call had drained the queue
    """

    segments: IdleSegments
    counted: Bool
    selected: Int64 | None
    row: Int32
    cause: Int8
    subject: tuple[str | None, ...]
    event: Int32
    begin: Int64
    end: Int64
    time: Int64
    gaps: Int64
    median: Float64
    emptied_by: Int32
    emptied_time: Int64

    @property
    def chosen(self) -> Int64 | slice:
        """Return what selects the segments in the chosen steps; without copies if that is all of them."""
        return slice(None) if self.selected is None else self.selected

    def members(self, *rows: int) -> Int64:
        """Return the positions in `segments` of the segments of these rows, ascending."""
        mine = np.zeros(len(self.time), np.bool_)
        mine[list(rows)] = True
        found = np.flatnonzero(mine[self.row])
        return found if self.selected is None else self.selected[found]

    def count_gaps(self, rows: Sequence[int]) -> int:
        """Return how many gaps have a segment of any of these rows."""
        seen = np.zeros(len(self.segments.gaps.begin), np.bool_)
        seen[self.segments.gap[self.members(*rows)]] = True
        return int(seen.sum())

    def count_gaps_by_cause(self) -> Int64:
        """Return how many gaps have a segment of each Cause."""
        by_cause = Groups(self.segments.cause[self.chosen].astype(np.int64), np.zeros(len(Cause), np.int64))
        return count_pairs(by_cause, self.segments.gap[self.chosen], len(self.segments.gaps.begin))


class IdleGains(msgspec.Struct, frozen=True):
    """Savings in ns of all counted steps together, by row of the table and by Cause."""

    rows: Mapping[int, int]
    causes: Mapping[int, int]


@derived
def idle_table(trace: Trace, device: int, stream: int | None, by: SubjectKind, step: str = "") -> IdleTable:
    """Return the idle time of a device or stream; raise NotFoundError if `step` isn't a complete step."""
    idle = idle_segments(trace, device, stream)
    counted = counted_step_mask(trace, step)
    is_chosen = counted[idle.step]
    selected = None if is_chosen.all() else np.flatnonzero(is_chosen)
    chosen = slice(None) if selected is None else selected  # all: views instead of copies
    groups, texts = _group_by_subject(trace, idle, by, chosen)
    length = idle.length[chosen]
    time = groups.sums(length)
    order = np.argsort(-time, kind="stable")
    statistics = order_statistics(groups, length, 0.5)
    top = statistics.largest[order]
    if selected is not None:
        top = selected[top]
    drained_by = idle.emptied_by[chosen]
    emptied_by, emptied_time = _queue_drains(trace, groups, drained_by, length)
    gaps = count_pairs(groups, idle.gap[chosen], len(idle.gaps.begin))
    row_of_group = np.empty(len(order), np.int32)
    row_of_group[order] = np.arange(len(order))
    return IdleTable(
        segments=idle,
        counted=counted,
        selected=selected,
        row=row_of_group[groups.which],
        cause=idle.cause[top],
        subject=tuple(texts[group] for group in order.tolist()),
        event=idle.row[top],
        begin=idle.begin[top],
        end=idle.end[top],
        time=time[order],
        gaps=gaps[order],
        median=statistics.quantiles[0][order],
        emptied_by=emptied_by[order],
        emptied_time=emptied_time[order],
    )


def idle_gains(trace: Trace, table: IdleTable) -> IdleGains:
    """Return the savings of the largest rows for which the host is late, and of their causes as a whole.

    A saving is at most the idle time in question. Rows for which the device itself starts late have none, and no
    row has one where the schedule doesn't explain the trace.
    """
    if replay_unavailable_reason(trace) is not None:
        return IdleGains({}, {})
    late = [row for row, cause in enumerate(table.cause.tolist()) if cause <= Cause.UNRECORDED]
    rows = late[: max_curves(trace)]
    if not rows:
        return IdleGains({}, {})
    rows_of_cause: dict[int, list[int]] = {}
    for row in late:
        rows_of_cause.setdefault(int(table.cause[row]), []).append(row)
    causes = list(dict.fromkeys(int(table.cause[row]) for row in rows))
    with_several_rows = [cause for cause in causes if len(rows_of_cause[cause]) > 1]
    of_causes = [rows_of_cause[cause] for cause in with_several_rows]
    parts = _build_idle_targets(trace, table, [*([row] for row in rows), *of_causes])
    counted = table.counted[: recorded_spans(trace).end.shape[1]]
    saved = savings_in_steps(trace, parts, counted)
    idle = [int(table.time[row]) for row in rows]
    idle += [sum(int(table.time[row]) for row in rows_of_cause[cause]) for cause in with_several_rows]
    saved = [min(each) for each in zip(saved, idle, strict=True)]
    of_rows = dict(zip(rows, saved[: len(rows)], strict=True))
    with_rows = dict(zip(with_several_rows, saved[len(rows) :], strict=True))
    with_one_row = {cause: of_rows[rows_of_cause[cause][0]] for cause in causes if cause not in with_rows}
    return IdleGains(of_rows, with_rows | with_one_row)


def _build_idle_targets(trace: Trace, table: IdleTable, targets: Sequence[Sequence[int]]) -> list[WhatIfTarget]:
    """Return the host's time in the idle segments of some rows as a what-if target, for each list of rows."""
    idle, shift = table.segments, clock_shift_ns(trace)
    # What only occurs together has one number, so that there are as few as possible.
    lists_of_row: dict[int, list[int]] = {}
    for number, rows in enumerate(targets):
        for row in rows:
            lists_of_row.setdefault(row, []).append(number)
    numbers = {lists: number for number, lists in enumerate(dict.fromkeys(map(tuple, lists_of_row.values())))}
    part_of_row = np.full(len(table.time), NO_CODE, np.int32)
    for row, lists in lists_of_row.items():
        part_of_row[row] = numbers[tuple(lists)]
    during = Intervals(idle.begin[table.chosen], idle.end[table.chosen])
    if shift:  # mostly 0: no copies then
        during = Intervals(during.starts + shift, during.ends + shift)
    parts = [[number for lists, number in numbers.items() if target in lists] for target in range(len(targets))]
    return host_time_targets(trace, during, part_of_row[table.row], parts)


def _queue_drains(trace: Trace, groups: Groups, drained_by: Int32, length: Int64) -> tuple[Int32, Int64]:
    """Return per group the call that drained the queue before most time, by name, and the time drained by any."""
    known = np.flatnonzero(drained_by >= 0)
    which, length = groups.which[known], length[known]
    time = sums_by_number(which, length, len(groups))
    emptied_by = np.full(len(groups), NO_CODE, np.int32)
    pairs = group(which, trace.events.name[drained_by[known]])
    ascending = np.argsort(pairs.sums(length), kind="stable")
    first = known[pairs.first[ascending]]
    emptied_by[groups.which[first]] = drained_by[first]
    return emptied_by, time


def _group_by_subject(
    trace: Trace, idle: IdleSegments, by: SubjectKind, chosen: Int64 | slice
) -> tuple[Groups, list[str | None]]:
    """Return the chosen segments grouped by cause and subject, and the subject of each group."""
    code, texts = _find_subjects(trace, idle, by)
    key = idle.cause[chosen] * np.int32(len(texts) + 1)
    key += code[chosen]
    key += 1
    groups = group(key)
    return groups, [texts[text] if text >= 0 else None for text in code[chosen][groups.first].tolist()]


def _find_subjects(trace: Trace, idle: IdleSegments, by: SubjectKind) -> tuple[Int32 | Int64, Sequence[str]]:
    """Return (code of each segment's subject or NO_CODE, the subjects)."""
    if by in ("operator", "module"):
        return program_places(trace, idle.row, by)
    if by == "frame":
        return program_places(trace, idle.row, "line")
    if by == "emptied_by":
        return _find_draining_calls(trace, idle.emptied_by)
    name = trace.events.name[idle.row]
    name[(idle.row < 0) | (idle.cause == Cause.UNRECORDED)] = NO_CODE
    return name, trace.strings


def _find_draining_calls(trace: Trace, call: Int32) -> tuple[Int64, tuple[str, ...]]:
    """Return calls by their name and the operator around them: cudaStreamSynchronize in aten::item."""
    names, known = trace.events.name, call >= 0
    operator = np.where(known, enclosing_operators(trace)[call], NO_CODE)
    around = np.where(operator >= 0, names[operator], NO_CODE)
    keys = group(np.where(known, names[call], NO_CODE), around)
    texts = []
    for first in keys.first.tolist():
        name = trace.strings[names[call[first]]] if known[first] else ""
        texts.append(f"{name} in {trace.strings[around[first]]}" if around[first] >= 0 else name)
    return np.where(known, keys.which, NO_CODE), tuple(texts)
