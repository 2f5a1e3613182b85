"""What a device spends the steps on: the sums of each step, every instant, and one moment in detail.

    stream 7   [ gemm ]      [ gemm ]
    stream 9       [ all-reduce ]  [ copy ]
               compute |comm.| compute|idle... until the next work, by cause

Compute counts before communication, communication before copies: what is left of the latter two is exposed.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.gaps import ItemsByStart, complete_step_windows, items_by_start
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.tracks.lanes import Lanes
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import Intervals, covered_time, merge, subtract
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Bool, Int8, Int32, Int64, Trace

WORK_CATEGORIES = ("compute", "exposed_communication", "exposed_copy")

DEVICE_TIME_CATEGORIES = (*WORK_CATEGORIES, *CAUSE_NAMES)
"""What a device can spend an instant on: work, or idling for a cause."""


class DeviceStepTimes(msgspec.Struct, frozen=True):
    """The steps on one device or stream, as columns in ns; the four parts sum to the duration exactly.

    compute        kernels other than communication
    communication  only communication kernels (and copies) run
    copies         only copies and memsets run
    idle           nothing runs
    complete       bool  other steps are left out of every average
    """

    names: tuple[str, ...]
    start: Int64
    duration: Int64
    compute: Int64
    communication: Int64
    copies: Int64
    idle: Int64
    complete: Bool


class DeviceTime(msgspec.Struct, frozen=True):
    """Parts that tile the complete steps; columns of length k, by begin.

    category    int8   index into DEVICE_TIME_CATEGORIES
    row         int32  the item that runs (of several the first), or the event to blame for idle time or NO_CODE
    segment     int64  position in `idle_segments` of the device, -1 for work
    begin, end  int64  ns on the device's own clock
    """

    category: Int8
    row: Int32
    segment: Int64
    begin: Int64
    end: Int64

    @property
    def length(self) -> Int64:
        return self.end - self.begin


class DeviceTimePart(msgspec.Struct, frozen=True):
    """One part of `DeviceTime`: [begin, end) in ns on the device's own clock."""

    category: int
    row: int
    begin: int
    end: int


class MomentGap(msgspec.Struct, frozen=True):
    """The gap around a moment, with its parts in order of time.

    emptied_by  row of the call that drained the queue, or NO_CODE
    """

    begin: int
    end: int
    emptied_by: int
    parts: tuple[DeviceTimePart, ...]

    def longest(self, count: int) -> list[DeviceTimePart]:
        """Return the `count` longest parts, in order of time."""
        chosen = sorted(self.parts, key=lambda part: part.begin - part.end)[:count]
        return sorted(chosen, key=lambda part: part.begin)


class DeviceMoment(msgspec.Struct, frozen=True):
    """The part that a moment lies in, its step, and the gap around it if the device is idle."""

    part: DeviceTimePart
    step: str
    gap: MomentGap | None


@derived
def device_step_times(trace: Trace, device: int, stream: int | None = None) -> DeviceStepTimes:
    """Return what each step spends on a device or stream; raise NotFoundError if nothing ran there."""
    spans, items = steps(trace), items_by_start(trace, device, stream)
    kernel = event_kinds(trace)[items.row] == Kind.KERNEL
    busy = [
        covered_time(merge(items.start[chosen], items.end[chosen]), spans.starts, spans.ends)
        for chosen in (items.compute, kernel, kernel | True)
    ]
    return DeviceStepTimes(
        names=spans.names,
        start=spans.starts,
        duration=spans.ends - spans.starts,
        compute=busy[0],
        communication=busy[1] - busy[0],
        copies=busy[2] - busy[1],
        idle=spans.ends - spans.starts - busy[2],
        complete=spans.complete,
    )


@derived
def device_time(trace: Trace, device: int) -> DeviceTime:
    """Return what a device spends the complete steps on; raise NotFoundError if nothing ran on it."""
    items, idle = items_by_start(trace, device), idle_segments(trace, device)
    kernel = event_kinds(trace)[items.row] == Kind.KERNEL
    free = complete_step_windows(steps(trace))
    parts = []
    for code, chosen in enumerate((items.compute, kernel & ~items.compute, ~kernel)):
        row, begin, end = _cut_running_parts(items, chosen, free)
        parts.append((np.full(len(row), code, np.int8), row, np.full(len(row), -1), begin, end))
        free = subtract(free, merge(begin, end))
    position = np.arange(len(idle.begin))
    parts.append((idle.cause + np.int8(len(WORK_CATEGORIES)), idle.row, position, idle.begin, idle.end))
    category, row, segment, begin, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(begin, kind="stable")
    return DeviceTime(category[order], row[order], segment[order], begin[order], end[order])


def _cut_running_parts(items: ItemsByStart, chosen: Bool, free: Intervals) -> tuple[Int32, Int64, Int64]:
    """Return (row, begin, end) of the union of some items inside `free`, cut where the next item runs alone."""
    row, start, end = items.row[chosen], items.start[chosen], items.end[chosen]
    reached = np.maximum.accumulate(end) if len(end) else end
    begin = np.maximum(start, np.append(start[:1], reached[:-1]))
    nonempty = end > begin
    row, begin, end = row[nonempty], begin[nonempty], end[nonempty]
    low, high = np.searchsorted(free.ends, begin, "right"), np.searchsorted(free.starts, end, "left")
    count = np.maximum(high - low, 0)
    part = np.repeat(np.arange(len(row)), count)
    window = np.arange(len(part)) - np.repeat(np.cumsum(count) - count, count) + low[part]
    return row[part], np.maximum(begin[part], free.starts[window]), np.minimum(end[part], free.ends[window])


def find_moment(trace: Trace, device: int, begin: int, end: int, category: int | None = None) -> DeviceMoment:
    """Return the longest part of a category (any if None) that touches [begin, end), ns on the device's own clock.

    Raise NotFoundError if nothing ran on the device, or the complete steps have no such part there.
    """
    table, spans = device_time(trace, device), steps(trace)
    low = int(np.searchsorted(table.end, begin, "right"))
    positions = np.arange(low, max(int(np.searchsorted(table.begin, end, "left")), low))
    if category is not None:
        positions = positions[table.category[positions] == category]
    if len(positions) == 0:
        raise NotFoundError(f"no such part between {begin} and {end} ns")
    longest = int(positions[np.argmax(table.length[positions])])

    def part(position: int) -> DeviceTimePart:
        return DeviceTimePart(
            int(table.category[position]),
            int(table.row[position]),
            int(table.begin[position]),
            int(table.end[position]),
        )

    inside = np.flatnonzero(spans.complete & (spans.starts <= table.begin[longest]))
    name, segment = spans.names[int(inside[-1])], int(table.segment[longest])
    if segment < 0:
        return DeviceMoment(part(longest), name, None)
    idle = idle_segments(trace, device)
    gap = int(idle.gap[segment])
    first, last = int(idle.gaps.begin[gap]), int(idle.gaps.end[gap])
    around = range(*np.searchsorted(table.begin, [first, last], "left").tolist())
    parts = tuple(part(position) for position in around)
    return DeviceMoment(part(longest), name, MomentGap(first, last, int(idle.gaps.emptied_by[gap]), parts))


@derived
def device_time_lanes(trace: Trace, tracks: tuple[tuple[int, int], ...]) -> Lanes:
    """Return a lane for each category of some (device, track id); the depth of a lane is the category."""
    parts = [(track, device_time(trace, device)) for device, track in sorted(tracks, key=lambda each: each[1])]
    track = np.concatenate([np.empty(0, np.int64), *(np.full(len(times.row), id) for id, times in parts)])
    category, row, begin, end = (
        np.concatenate([np.empty(0, np.int64), *(getattr(times, name) for _, times in parts)])
        for name in ("category", "row", "begin", "end")
    )
    key = track * len(DEVICE_TIME_CATEGORIES) + category
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    lane = key[order][first]
    return Lanes(
        rows=row[order].astype(np.int32),
        start=begin[order].astype(np.int64),
        end=end[order].astype(np.int64),
        bounds=np.append(first, len(order)),
        track=(lane // len(DEVICE_TIME_CATEGORIES)).astype(np.int32),
        depth=(lane % len(DEVICE_TIME_CATEGORIES)).astype(np.int32),
        root=np.ones(len(lane), np.bool_),
    )
