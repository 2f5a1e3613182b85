"""Where one slice stands on the timeline, and what stands around it. Nothing here walks over all slices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.analyses.tracks.lanes import Lanes, lanes
from torch_tb_profiler.analyses.tracks.tracks import Role, track_of, tracks
from torch_tb_profiler.base.intervals import Intervals, covered
from torch_tb_profiler.model.kinds import Kind, ends, kinds
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace


class Place(NamedTuple):
    """A lane and a position in it."""

    lane: int
    position: int


def find(trace: Trace, arrangement: Lanes, row: int) -> Place | None:
    """The place of a row, None if it is not drawn (no time, or a folded Python frame)."""
    time = trace.events.start[row]
    track = int(track_of(trace, np.array([row]))[0])
    first, last = np.searchsorted(arrangement.track, [track, track + 1]).tolist()
    for lane in range(first, last):
        low, high = arrangement.bounds[lane], arrangement.bounds[lane + 1]
        begin, end = (low + np.searchsorted(arrangement.start[low:high], [time, time + 1], "left")).tolist()
        here = np.flatnonzero(arrangement.rows[begin:end] == row)
        if len(here):
            return Place(lane, begin + int(here[0]))
    return None


def ancestors(arrangement: Lanes, place: Place) -> list[int]:
    """Rows of the slices around one, outermost first."""
    above = []
    lane, (start, end) = place.lane, (arrangement.start[place.position], arrangement.end[place.position])
    while not arrangement.root[lane]:
        lane -= 1
        position = _last_begun(arrangement, lane, start)
        if position is not None and arrangement.end[position] >= end:
            above.append(int(arrangement.rows[position]))
    return above[::-1]


def _last_begun(arrangement: Lanes, lane: int, time: int) -> int | None:
    low, high = arrangement.bounds[lane], arrangement.bounds[lane + 1]
    at = int(low + np.searchsorted(arrangement.start[low:high], time, "right")) - 1
    return at if at >= low else None


def self_time(arrangement: Lanes, place: Place) -> int:
    """ns of a slice that no nested slice covers."""
    position = slice(place.position, place.position + 1)
    whole = int(arrangement.end[place.position] - arrangement.start[place.position])
    return whole - int(
        nested_time(arrangement, place.lane, arrangement.start[position], arrangement.end[position])[0]
    )


def nested_time(arrangement: Lanes, lane: int, begins: Int64, finishes: Int64) -> Int64:
    """int64[k]: how much of each window of a lane the slices nested one deeper cover, ns."""
    below = lane + 1
    if (
        below >= len(arrangement.track)
        or arrangement.root[below]
        or arrangement.track[below] != arrangement.track[lane]
    ):
        return np.zeros(len(begins), np.int64)
    low, high = arrangement.bounds[below], arrangement.bounds[below + 1]
    lasting = arrangement.end[low:high] > arrangement.start[low:high]
    children = Intervals(arrangement.start[low:high][lasting], arrangement.end[low:high][lasting])
    return covered(children, begins, finishes)


def slice_at(trace: Trace, thread: int, time: int, *wanted: Kind) -> int:
    """The innermost slice of a thread that begins at a time, else the innermost around it; NO_CODE if none.

    `wanted` narrows the kinds if given.
    """
    arrangement, what = lanes(trace), kinds(trace)
    begun, around = NO_CODE, NO_CODE
    begun_length = around_length = np.iinfo(np.int64).max
    for lane in np.flatnonzero(np.isin(arrangement.track, _tracks_of(trace, thread))).tolist():
        position = _last_begun(arrangement, lane, time)
        if position is None or (wanted and what[arrangement.rows[position]] not in wanted):
            continue
        start, end = arrangement.start[position], arrangement.end[position]
        if start == time and end - start <= begun_length:
            begun, begun_length = int(arrangement.rows[position]), end - start
        elif end >= time and end - start <= around_length:
            around, around_length = int(arrangement.rows[position]), end - start
    return begun if begun != NO_CODE else around


def _tracks_of(trace: Trace, thread: int) -> list[int]:
    roles = (Role.HOST, Role.DEVICE, Role.ANNOTATION, Role.SYNC)
    return [track for track in tracks(trace).lookup[thread, list(roles)].tolist() if track != NO_CODE]


def python_frames(trace: Trace, row: int) -> Int32:
    """int32[k]: the Python frames around a slice of the same thread, outermost first."""
    events, finish = trace.events, ends(trace)
    start, end = events.start[row], finish[row]
    around = (kinds(trace) == Kind.PYTHON) & (events.start <= start) & (finish >= end)
    rows = np.flatnonzero(around & (events.thread == events.thread[row])).astype(np.int32)
    rows = rows[rows != row]
    order = np.lexsort((rows, -(finish[rows] - events.start[rows]), events.start[rows]))
    ordered: Int32 = rows[order]
    return ordered
