"""What the time of a device goes to, at every instant of the complete steps: the work that runs, or why none does.

    stream 7   [ gemm ]      [ gemm ]
    stream 9       [ all-reduce ]  [ copy ]
               compute |comm.| compute|idle... until the next work, by cause

Compute counts before communication, communication before copies: what is left of the latter two is exposed.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import CAUSES
from torch_tb_profiler.analyses.schedule.gaps import Work, windows, work_of
from torch_tb_profiler.analyses.schedule.segments import segments
from torch_tb_profiler.analyses.tracks.lanes import Lanes
from torch_tb_profiler.base.intervals import Intervals, merge, subtract
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Bool, Int8, Int32, Int64, Trace, derived

WORK = ("compute", "exposed_communication", "exposed_copy")

CATEGORIES = (*WORK, *CAUSES)
"""What an instant of a device goes to."""


class DeviceTime(msgspec.Struct, frozen=True):
    """Parts that tile the complete steps; columns of length k, by begin.

    category    int8   index into CATEGORIES
    row         int32  of work the item that runs (of several the first), of idle time what is to blame; NO_CODE
    segment     int64  position in `segments` of the device, -1 of work
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


@derived
def device_time(trace: Trace, device: int) -> DeviceTime:
    """Raises NotFoundError if nothing ran on the device."""
    work, idle = work_of(trace, device), segments(trace, device)
    kernel = event_kinds(trace)[work.row] == Kind.KERNEL
    free = windows(steps(trace))
    parts = []
    for code, mine in enumerate((work.compute, kernel & ~work.compute, ~kernel)):
        row, begin, end = _running(work, mine, free)
        parts.append((np.full(len(row), code, np.int8), row, np.full(len(row), -1), begin, end))
        free = subtract(free, merge(begin, end))
    place = np.arange(len(idle.begin))
    parts.append((idle.cause + np.int8(len(WORK)), idle.row, place, idle.begin, idle.end))
    category, row, segment, begin, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(begin, kind="stable")
    return DeviceTime(category[order], row[order], segment[order], begin[order], end[order])


def _running(work: Work, mine: Bool, free: Intervals) -> tuple[Int32, Int64, Int64]:
    """(row, begin, end) of the union of some items, cut where the next begins to run alone, inside `free`."""
    row, start, end = work.row[mine], work.start[mine], work.end[mine]
    reached = np.maximum.accumulate(end) if len(end) else end
    begin = np.maximum(start, np.append(start[:1], reached[:-1]))
    kept = end > begin
    row, begin, end = row[kept], begin[kept], end[kept]
    low, high = np.searchsorted(free.ends, begin, "right"), np.searchsorted(free.starts, end, "left")
    count = np.maximum(high - low, 0)
    of = np.repeat(np.arange(len(row)), count)
    at = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + low[of]
    return row[of], np.maximum(begin[of], free.starts[at]), np.minimum(end[of], free.ends[at])


@derived
def lanes_of_time(trace: Trace, tracks: tuple[tuple[int, int], ...]) -> Lanes:
    """A lane for each category of some (device, track id); the depth of a lane is the category."""
    parts = [(track, device_time(trace, device)) for device, track in sorted(tracks, key=lambda each: each[1])]
    track = np.concatenate([np.empty(0, np.int64), *(np.full(len(of.row), id) for id, of in parts)])
    category, row, begin, end = (
        np.concatenate([np.empty(0, np.int64), *(getattr(of, name) for _, of in parts)])
        for name in ("category", "row", "begin", "end")
    )
    key = track * len(CATEGORIES) + category
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    lane = key[order][first]
    return Lanes(
        rows=row[order].astype(np.int32),
        start=begin[order].astype(np.int64),
        end=end[order].astype(np.int64),
        bounds=np.append(first, len(order)),
        track=(lane // len(CATEGORIES)).astype(np.int32),
        depth=(lane % len(CATEGORIES)).astype(np.int32),
        root=np.ones(len(lane), np.bool_),
    )
