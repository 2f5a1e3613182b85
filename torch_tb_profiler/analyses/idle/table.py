"""Idle time in rows: by cause, and in each cause by a subject, such as the slice that the host was in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.places import places
from torch_tb_profiler.analyses.schedule.segments import Segments, in_step, segments
from torch_tb_profiler.analyses.shared.grouping import Groups, group, order_statistics
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.trace import NO_CODE, Float64, Int8, Int32, Int64, Trace, derived

By = Literal["cause", "emptied_by", "operator", "module", "frame"]
"""What the subject of a row is: the slice to blame; the call that emptied the queue, with its operator; the
operator, module or line of the program that the blamed slice belongs to."""


class IdleTable(msgspec.Struct, frozen=True):
    """Rows of idle time, most first; columns of length g, times in ns.

    cause     int8   a Cause
    subject   None where nothing is recorded, and of `emptied_by` where the device caught up with the host
    event     int32  what to blame of the longest part, NO_CODE if nothing is recorded
    begin, end int64 of the longest part, on the device's own clock
    time      int64
    gaps      int64  gaps with a part of this row
    median    float64  of the parts
    emptied   int32  the call that had emptied the queue before most of the time, NO_CODE if none had
    emptied_time  int64  time before which a call had emptied the queue
    members   position of each part of `segments`, by row
    """

    segments: Segments
    groups: Groups
    kept: Int64
    order: Int64
    cause: Int8
    subject: tuple[str | None, ...]
    event: Int32
    begin: Int64
    end: Int64
    time: Int64
    gaps: Int64
    median: Float64
    emptied: Int32
    emptied_time: Int64

    def members(self, row: int) -> Int64:
        """Positions in `segments` of the parts of a row."""
        return self.kept[self.groups.members(int(self.order[row]))]

    def gaps_of(self, rows: Sequence[int]) -> int:
        """How many gaps have a part of any of these rows."""
        wanted = np.zeros(len(self.cause), np.bool_)
        wanted[self.order[rows]] = True
        seen = np.zeros(len(self.segments.gaps.begin), np.bool_)
        seen[self.segments.gap[self.kept[wanted[self.groups.which]]]] = True
        return int(seen.sum())


@derived
def idle_table(trace: Trace, device: int, stream: int | None, by: By, step: str = "") -> IdleTable:
    """Raises NotFoundError for an unknown step, or one that is not complete."""
    idle = segments(trace, device, stream)
    kept = np.flatnonzero(in_step(trace, idle, step))
    code, texts = _subjects(trace, idle, by)
    groups = group(idle.cause[kept].astype(np.int64), code[kept])
    length = idle.length[kept]
    time = groups.sums(length)
    order = np.argsort(-time, kind="stable")
    longest = np.empty(len(groups), np.int64)
    by_length = np.argsort(length, kind="stable")
    longest[groups.which[by_length]] = by_length  # the last write wins
    top = kept[longest[order]]
    called = idle.gaps.emptied_by[idle.gap[kept]]
    emptied, emptied_time = _emptied(trace, groups, called, length)
    pairs = group(groups.which, idle.gap[kept])
    gaps = np.bincount(groups.which[pairs.first], minlength=len(groups))
    return IdleTable(
        segments=idle,
        groups=groups,
        kept=kept,
        order=order,
        cause=idle.cause[top],
        subject=tuple(texts[text] if text >= 0 else None for text in code[top].tolist()),
        event=idle.row[top],
        begin=idle.begin[top],
        end=idle.end[top],
        time=time[order],
        gaps=gaps[order],
        median=order_statistics(groups, length, 0.5).quantiles[0][order] if len(groups) else np.empty(0),
        emptied=emptied[order],
        emptied_time=emptied_time[order],
    )


def _emptied(trace: Trace, groups: Groups, called: Int32, length: Int64) -> tuple[Int32, Int64]:
    """Per row the call by whose name most time was emptied, and the time emptied by any."""
    known = called >= 0
    time = groups.sums(np.where(known, length, 0))
    emptied = np.full(len(groups), NO_CODE, np.int32)
    pairs = group(groups.which[known], trace.events.name[called[known]])
    sums = pairs.sums(length[known])
    ascending = np.argsort(sums, kind="stable")
    first = np.flatnonzero(known)[pairs.first[ascending]]
    emptied[groups.which[first]] = called[first]
    return emptied, time


def _subjects(trace: Trace, idle: Segments, by: By) -> tuple[Int64, tuple[str, ...]]:
    """(code of the subject of each part, NO_CODE for none; their texts)."""
    if by in ("operator", "module"):
        return places(trace, idle.row, by)
    if by == "frame":
        return places(trace, idle.row, "line")
    if by == "emptied_by":
        return _emptying(trace, idle.gaps.emptied_by[idle.gap])
    names = trace.events.name
    return np.where(idle.row >= 0, names[idle.row], NO_CODE).astype(np.int64), tuple(trace.strings)


def _emptying(trace: Trace, call: Int32) -> tuple[Int64, tuple[str, ...]]:
    """Calls by their name and the operator around them: cudaStreamSynchronize in aten::item."""
    names, known = trace.events.name, call >= 0
    operator = np.where(known, enclosing_operators(trace)[call], NO_CODE)
    around = np.where(operator >= 0, names[operator], NO_CODE)
    keys = group(np.where(known, names[call], NO_CODE), around)
    texts = []
    for first in keys.first.tolist():
        name = trace.strings[names[call[first]]] if known[first] else ""
        texts.append(f"{name} in {trace.strings[around[first]]}" if around[first] >= 0 else name)
    return np.where(known, keys.which, NO_CODE), tuple(texts)
