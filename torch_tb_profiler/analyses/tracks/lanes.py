"""Where each slice is drawn: the rows of a track, in which nothing overlaps, and what surrounds a slice there.

    track   |-- aten::linear ---------|        lane 0
              |-- aten::t --| |-mm-|           lane 1
                    |-- late ------------|     lane 2: extends beyond aten::t, starts a side stack

Slices nest by time (start, longer first, file order). What overlaps without nesting goes to a side stack of its
own below, where only such slices nest. Python frames are left out unless requested: they are most of the slices
where they are recorded, and the page folds them. Lookups of a single slice never walk over all slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.tracks.events import drawable_mask
from torch_tb_profiler.analyses.tracks.roles import Role
from torch_tb_profiler.analyses.tracks.tracks import track_of, tracks, tracks_of
from torch_tb_profiler.base.intervals import Intervals, covered_time
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.calls.nesting import active_functions, nest, nesting_order, place_on_one_axis
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, event_spans, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace


class Lanes(msgspec.Struct, frozen=True):
    """Slices (or instants) by lane, within a lane by start. Nothing overlaps in a lane.

    rows    int32[k]    rows in the trace
    start   int64[k]    ns
    end     int64[k]    ns, >= start
    bounds  int64[l+1]  lane i holds the positions bounds[i]..bounds[i+1]
    track   int32[l]    ascending
    depth   int32[l]    counted from 0 in each track
    root    bool[l]     outermost lane of a stack: of the track itself, or of a side stack
    """

    rows: Int32
    start: Int64
    end: Int64
    bounds: Int64
    track: Int32
    depth: Int32
    root: Bool

    def of_tracks(self, tracks: Sequence[int]) -> Int64:
        """Return int64[m], the lanes of some tracks, ascending."""
        return np.flatnonzero(np.isin(self.track, tracks))


class _LaneOrder(msgspec.Struct, frozen=True):
    """Lanes without the times of their slices, which are in the trace: a fifth of the bytes."""

    rows: Int32
    bounds: Int64
    track: Int32
    depth: Int32
    root: Bool


class LaneCounts(NamedTuple):
    """The number of lanes of each track, and the number of slices on side stacks."""

    depths: list[int]
    side_slices: int


class _Nesting(NamedTuple):
    """The stack and the depth of slices, which come by stack, track, start, longer first; columns of length k."""

    rows: Int32
    track: Int32
    stack: Int32
    depth: Int32


@derived
def lanes(trace: Trace, python: bool) -> Lanes:
    """Arrange all slices and instants in lanes; Python frames only if `python`."""
    if python and len(rows_of_kind(trace, Kind.PYTHON)) == 0:
        return lanes(trace, False)
    order = _build_lane_order(trace, python)
    start, end = event_spans(trace, order.rows)
    return Lanes(order.rows, start, end, order.bounds, order.track, order.depth, order.root)


@stored
def count_lanes(trace: Trace, python: bool) -> LaneCounts:
    """Count the lanes of each track; what unfolds them next needs their order anyway."""
    layout, count = lanes(trace, python), len(tracks(trace).tracks)
    stack = np.cumsum(layout.root) - 1
    is_side = stack[np.searchsorted(layout.track, layout.track)] < stack
    side_slices = int(np.diff(layout.bounds)[is_side].sum())
    return LaneCounts(np.bincount(layout.track, minlength=count).tolist(), side_slices)


def _nest(trace: Trace, python: bool) -> _Nesting:
    mask = drawable_mask(trace)
    if not python:
        mask &= event_kinds(trace) != Kind.PYTHON
    rows = np.flatnonzero(mask).astype(np.int32)
    start, finish, track_of_row = trace.events.start, event_ends(trace), np.full(len(trace), NO_CODE, np.int32)
    track_of_row[rows] = tracks_of(trace, rows)
    if compiled := active_functions():
        rows, _, depth, stack = compiled.tree(rows, start, finish, track_of_row, len(tracks(trace).tracks))
        return _Nesting(rows, track_of_row[rows], stack[rows], depth[rows])
    none = np.empty(0, np.int32)
    parts = [_Nesting(none, none, none, none)]  # one more per stack
    while len(rows):
        begin, end = place_on_one_axis(start[rows], finish[rows], track_of_row[rows])
        order = nesting_order(begin, end)
        rows = rows[order]
        _, level, fits = nest(begin[order], end[order])
        nested, stack = rows[fits], np.full(int(fits.sum()), len(parts) - 1, np.int32)
        parts.append(_Nesting(nested, track_of_row[nested], stack, level[fits].astype(np.int32)))
        rows = rows[~fits]
    return _Nesting(*map(np.concatenate, zip(*parts, strict=True)))


def _number_lanes(nesting: _Nesting, tracks: int) -> npt.NDArray[Any]:
    """Return the number of each slice's lane, by track, stack and depth."""
    stacks, levels = 1 + int(nesting.stack.max(initial=0)), 1 + int(nesting.depth.max(initial=0))
    size = stacks * levels
    dtype = np.uint16 if size * tracks < 2**16 else np.int64  # numpy sorts sixteen bits by radix
    lane: npt.NDArray[Any] = nesting.track.astype(dtype) * dtype(size)
    lane += nesting.stack.astype(dtype) * dtype(levels)
    lane += nesting.depth.astype(dtype)
    return lane


@stored
def _build_lane_order(trace: Trace, python: bool) -> _LaneOrder:
    """Return which slices and instants each lane holds, in order."""
    nesting = _nest(trace, python)
    lane = _number_lanes(nesting, len(tracks(trace).tracks))
    # Sorting by its number gathers each lane, in order of time already.
    order = np.argsort(lane, kind="stable")
    lane = lane[order]
    first = np.flatnonzero(lane[1:] != lane[:-1]) + 1 if len(lane) else np.empty(0, np.int64)
    first = np.append(np.zeros(min(len(lane), 1), np.int64), first)
    rows = nesting.rows[order]
    track, depth = nesting.track[order[first]], nesting.depth[order[first]]
    return _LaneOrder(
        rows=rows,
        bounds=np.append(first, len(rows)),
        track=track,
        depth=(np.arange(len(track)) - np.searchsorted(track, track)).astype(np.int32),
        root=depth == 0,
    )


class LanePosition(NamedTuple):
    """A slice's lane, and its index in the columns of Lanes."""

    lane: int
    slice_index: int


def position_of(trace: Trace, layout: Lanes, row: int) -> LanePosition | None:
    """Return the position of a row, or None if it isn't drawn (no time, or a folded Python frame)."""
    time, track = trace.events.start[row], track_of(trace, row)
    first, last = np.searchsorted(layout.track, [track, track + 1]).tolist()
    for lane in range(first, last):
        low, high = layout.bounds[lane], layout.bounds[lane + 1]
        begin, end = (low + np.searchsorted(layout.start[low:high], [time, time + 1], "left")).tolist()
        matches = np.flatnonzero(layout.rows[begin:end] == row)
        if len(matches):
            return LanePosition(lane, begin + int(matches[0]))
    return None


def depth_of(trace: Trace, row: int, python: bool) -> int | None:
    """Return the depth of a row's lane in its track, or None if the row isn't drawn."""
    layout = lanes(trace, python)
    position = position_of(trace, layout, row)
    return None if position is None else int(layout.depth[position.lane])


def ancestors(layout: Lanes, position: LanePosition) -> list[int]:
    """Return the rows of the slices around one, outermost first."""
    above = []
    lane, start, end = position.lane, layout.start[position.slice_index], layout.end[position.slice_index]
    while not layout.root[lane]:
        lane -= 1
        index = _last_started(layout, lane, start)
        if index is not None and layout.end[index] >= end:
            above.append(int(layout.rows[index]))
    return above[::-1]


def _last_started(layout: Lanes, lane: int, time: int) -> int | None:
    """Return the index of the last slice of a lane that starts at `time` or before, or None."""
    low, high = layout.bounds[lane], layout.bounds[lane + 1]
    index = int(low + np.searchsorted(layout.start[low:high], time, "right")) - 1
    return index if index >= low else None


def self_time(layout: Lanes, position: LanePosition) -> int:
    """Return the time of a slice that no nested slice covers, in ns."""
    one = slice(position.slice_index, position.slice_index + 1)
    start, end = layout.start[one], layout.end[one]
    return int((end - start - nested_time(layout, position.lane, start, end))[0])


def nested_time(layout: Lanes, lane: int, begins: Int64, finishes: Int64) -> Int64:
    """Return int64[k], how much of each interval the slices one lane deeper cover, in ns."""
    below = lane + 1
    if below >= len(layout.track) or layout.root[below] or layout.track[below] != layout.track[lane]:
        return np.zeros(len(begins), np.int64)
    low, high = layout.bounds[below], layout.bounds[below + 1]
    lasting = layout.end[low:high] > layout.start[low:high]
    children = Intervals(layout.start[low:high][lasting], layout.end[low:high][lasting])
    return covered_time(children, begins, finishes)


def slice_at(trace: Trace, thread: int, time: int, *wanted: Kind) -> int:
    """Return the innermost slice of a thread that starts at `time`, or else the innermost around it.

    Return NO_CODE if there is none. Only slices of the `wanted` kinds count, if any are given.
    """
    layout, kind = lanes(trace, False), event_kinds(trace)
    starting, around = NO_CODE, NO_CODE
    starting_length = around_length = np.iinfo(np.int64).max
    for lane in layout.of_tracks(_slice_tracks_of(trace, thread)).tolist():
        index = _last_started(layout, lane, time)
        if index is None or (wanted and kind[layout.rows[index]] not in wanted):
            continue
        start, end = layout.start[index], layout.end[index]
        if start == time and end - start <= starting_length:
            starting, starting_length = int(layout.rows[index]), end - start
        elif end >= time and end - start <= around_length:
            around, around_length = int(layout.rows[index]), end - start
    return starting if starting != NO_CODE else around


def _slice_tracks_of(trace: Trace, thread: int) -> list[int]:
    roles = (Role.HOST, Role.DEVICE, Role.ANNOTATION, Role.SYNC, Role.TRAINER, Role.GRAPH)
    return [track for track in tracks(trace).lookup[thread, list(roles)].tolist() if track != NO_CODE]


def enclosing_python_frames(trace: Trace, row: int) -> Int32:
    """Return int32[k], the Python frames around a slice on its thread, outermost first."""
    events, finish = trace.events, event_ends(trace)
    start, end = events.start[row], finish[row]
    around = (event_kinds(trace) == Kind.PYTHON) & (events.start <= start) & (finish >= end)
    rows = np.flatnonzero(around & (events.thread == events.thread[row])).astype(np.int32)
    rows = rows[rows != row]
    order = np.lexsort((rows, -(finish[rows] - events.start[rows]), events.start[rows]))
    ordered: Int32 = rows[order]
    return ordered
