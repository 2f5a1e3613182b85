"""Where one slice is drawn, and what is drawn around it. Nothing here walks over all slices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.analyses.tracks.lanes import Lanes, lanes
from torch_tb_profiler.analyses.tracks.roles import Role
from torch_tb_profiler.analyses.tracks.tracks import track_of, tracks
from torch_tb_profiler.base.intervals import Intervals, covered_time
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace


class Position(NamedTuple):
    """Where the lanes hold a slice: its lane, and where in the columns of all lanes it is."""

    lane: int
    at: int


def position_of(trace: Trace, layout: Lanes, row: int) -> Position | None:
    """The position of a row, None if it is not drawn (no time, or a folded Python frame)."""
    time, track = trace.events.start[row], track_of(trace, row)
    first, last = np.searchsorted(layout.track, [track, track + 1]).tolist()
    for lane in range(first, last):
        low, high = layout.bounds[lane], layout.bounds[lane + 1]
        begin, end = (low + np.searchsorted(layout.start[low:high], [time, time + 1], "left")).tolist()
        matches = np.flatnonzero(layout.rows[begin:end] == row)
        if len(matches):
            return Position(lane, begin + int(matches[0]))
    return None


def depth_of(trace: Trace, row: int, python: bool) -> int | None:
    """The lane of its track that a row is drawn in, None if it is not drawn."""
    layout = lanes(trace, python)
    position = position_of(trace, layout, row)
    return None if position is None else int(layout.depth[position.lane])


def ancestors(layout: Lanes, position: Position) -> list[int]:
    """Rows of the slices around one, outermost first."""
    above = []
    lane, start, end = position.lane, layout.start[position.at], layout.end[position.at]
    while not layout.root[lane]:
        lane -= 1
        index = _last_begun(layout, lane, start)
        if index is not None and layout.end[index] >= end:
            above.append(int(layout.rows[index]))
    return above[::-1]


def _last_begun(layout: Lanes, lane: int, time: int) -> int | None:
    """Index of the last slice of a lane that begins at a time or before."""
    low, high = layout.bounds[lane], layout.bounds[lane + 1]
    index = int(low + np.searchsorted(layout.start[low:high], time, "right")) - 1
    return index if index >= low else None


def self_time(layout: Lanes, position: Position) -> int:
    """ns of a slice that no nested slice covers."""
    one = slice(position.at, position.at + 1)
    start, end = layout.start[one], layout.end[one]
    return int((end - start - nested_time(layout, position.lane, start, end))[0])


def nested_time(layout: Lanes, lane: int, begins: Int64, finishes: Int64) -> Int64:
    """int64[k]: how much of each stretch of a lane the slices nested one deeper cover, ns."""
    below = lane + 1
    if below >= len(layout.track) or layout.root[below] or layout.track[below] != layout.track[lane]:
        return np.zeros(len(begins), np.int64)
    low, high = layout.bounds[below], layout.bounds[below + 1]
    lasting = layout.end[low:high] > layout.start[low:high]
    children = Intervals(layout.start[low:high][lasting], layout.end[low:high][lasting])
    return covered_time(children, begins, finishes)


def slice_at(trace: Trace, thread: int, time: int, *wanted: Kind) -> int:
    """The innermost slice of a thread that begins at a time, else the innermost around it; NO_CODE if none.

    `wanted` narrows the kinds if given.
    """
    layout, kind = lanes(trace, False), event_kinds(trace)
    begun, around = NO_CODE, NO_CODE
    begun_length = around_length = np.iinfo(np.int64).max
    for lane in layout.of_tracks(_slice_tracks_of(trace, thread)).tolist():
        index = _last_begun(layout, lane, time)
        if index is None or (wanted and kind[layout.rows[index]] not in wanted):
            continue
        start, end = layout.start[index], layout.end[index]
        if start == time and end - start <= begun_length:
            begun, begun_length = int(layout.rows[index]), end - start
        elif end >= time and end - start <= around_length:
            around, around_length = int(layout.rows[index]), end - start
    return begun if begun != NO_CODE else around


def _slice_tracks_of(trace: Trace, thread: int) -> list[int]:
    roles = (Role.HOST, Role.DEVICE, Role.ANNOTATION, Role.SYNC, Role.TRAINER)
    return [track for track in tracks(trace).lookup[thread, list(roles)].tolist() if track != NO_CODE]


def python_frames(trace: Trace, row: int) -> Int32:
    """int32[k]: the Python frames around a slice of the same thread, outermost first."""
    events, finish = trace.events, event_ends(trace)
    start, end = events.start[row], finish[row]
    around = (event_kinds(trace) == Kind.PYTHON) & (events.start <= start) & (finish >= end)
    rows = np.flatnonzero(around & (events.thread == events.thread[row])).astype(np.int32)
    rows = rows[rows != row]
    order = np.lexsort((rows, -(finish[rows] - events.start[rows]), events.start[rows]))
    ordered: Int32 = rows[order]
    return ordered
