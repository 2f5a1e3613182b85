"""Where each slice is drawn: rows of a track in which nothing overlaps.

    track   |-- aten::linear ---------|        lane 0
              |-- aten::t --| |-mm-|           lane 1
                    |-- late ------------|     lane 2: sticks out of aten::t, begins a side stack

Slices nest by time (start, longer first, file order). What overlaps without nesting goes to a side stack of
its own below, where it nests only with its like. Python frames are left out unless asked for: they are most of
the slices where they are recorded, and a fold hides them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.tracks import Role, all_slices, roles, track_of
from torch_tb_profiler.model.kinds import Kind, ends, kinds
from torch_tb_profiler.model.nesting import nest, nesting_order, one_axis
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64, Trace, derived


@dataclass(frozen=True)
class Lanes:
    """Slices (or instants) by lane, within a lane by start. In a lane nothing overlaps.

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

    def depths(self, tracks: int) -> Int64:
        """int64[tracks]: how many lanes each track has."""
        return np.bincount(self.track, minlength=tracks)

    def side(self) -> int:
        """How many slices are on side stacks."""
        aside = (np.cumsum(self.root) - 1)[np.searchsorted(self.track, self.track)] < np.cumsum(self.root) - 1
        return int(np.diff(self.bounds)[aside].sum())


@derived
def lanes(trace: Trace) -> Lanes:
    """Lanes of all slices but Python frames, and of the instants."""
    return _arrange(trace, drawn(trace) & (kinds(trace) != Kind.PYTHON))


@derived
def lanes_with_python(trace: Trace) -> Lanes:
    """Lanes of all slices and of the instants."""
    return _arrange(trace, drawn(trace))


def lanes_of(trace: Trace, python: bool) -> Lanes:
    """Lanes with or without Python frames."""
    return lanes_with_python(trace) if python else lanes(trace)


def drawn(trace: Trace) -> Bool:
    """bool[n]: slices and instants that have a time."""
    found: Bool = (all_slices(trace) | (roles(trace) == Role.INSTANT)) & (trace.events.start != ABSENT)
    return found


def _arrange(trace: Trace, which: Bool) -> Lanes:
    rows = np.flatnonzero(which).astype(np.int32)
    track = track_of(trace, rows)
    start, end = trace.events.start[rows], ends(trace)[rows]
    parts: list[tuple[Int32, Int64, Int64, Int32, Int32, int]] = []
    stack = 0
    while len(rows):
        begin, finish = one_axis(start, end, track)
        order = nesting_order(begin, finish)
        rows, track, start, end = rows[order], track[order], start[order], end[order]
        _, level, fits = nest(begin[order], finish[order])
        depth = level.astype(np.int32)
        parts.append((rows[fits], start[fits], end[fits], track[fits], depth[fits], stack))
        rows, track, start, end = rows[~fits], track[~fits], start[~fits], end[~fits]
        stack += 1
    return _join(parts)


def _join(parts: list[tuple[Int32, Int64, Int64, Int32, Int32, int]]) -> Lanes:
    if not parts:
        none = np.empty(0, np.int64)
        few = np.empty(0, np.int32)
        return Lanes(few, none, none, np.zeros(1, np.int64), few, few, np.empty(0, np.bool_))
    rows, start, end, track, depth = (np.concatenate([part[i] for part in parts]) for i in range(5))
    stack = np.concatenate([np.full(len(part[0]), part[5], np.int64) for part in parts])
    # One integer per (track, stack, depth): sorting by it gathers the lanes, each in order of time already.
    levels, stacks = int(depth.max()) + 1, int(stack.max()) + 1
    key = (track.astype(np.int64) * stacks + stack) * levels + depth
    order = np.argsort(key, kind="stable")
    distinct, first = np.unique(key[order], return_index=True)
    lane_track = (distinct // (stacks * levels)).astype(np.int32)
    place = np.arange(len(distinct)) - np.searchsorted(lane_track, lane_track)
    return Lanes(
        rows[order],
        start[order],
        end[order],
        np.append(first, len(order)),
        lane_track,
        place.astype(np.int32),
        distinct % levels == 0,
    )
