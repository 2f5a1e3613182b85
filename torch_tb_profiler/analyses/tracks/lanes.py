"""Where each slice is drawn: rows of a track in which nothing overlaps.

    track   |-- aten::linear ---------|        lane 0
              |-- aten::t --| |-mm-|           lane 1
                    |-- late ------------|     lane 2: sticks out of aten::t, begins a side stack

Slices nest by time (start, longer first, file order). What overlaps without nesting goes to a side stack of
its own below, where it nests only with its like. Python frames are left out unless asked for: they are most of
the slices where they are recorded, and a fold hides them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.events import drawn
from torch_tb_profiler.analyses.tracks.tracks import tracks_of
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.nesting import nest, nesting_order, place_on_one_axis
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace


class Lanes(msgspec.Struct, frozen=True):
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

    def depths(self, tracks: int) -> list[int]:
        """How many lanes each track has."""
        counts: list[int] = np.bincount(self.track, minlength=tracks).tolist()
        return counts

    def side(self) -> int:
        """How many slices are on side stacks."""
        stack = np.cumsum(self.root) - 1
        aside = stack[np.searchsorted(self.track, self.track)] < stack
        return int(np.diff(self.bounds)[aside].sum())

    def of_tracks(self, tracks: Sequence[int]) -> Int64:
        """int64[m]: the lanes of some tracks, ascending."""
        return np.flatnonzero(np.isin(self.track, tracks))


@derived
def lanes(trace: Trace, python: bool) -> Lanes:
    """Lanes of all slices and of the instants; of the Python frames only if `python`."""
    mask = drawn(trace)
    if not python:
        mask &= event_kinds(trace) != Kind.PYTHON
    return _arrange(trace, np.flatnonzero(mask).astype(np.int32))


def _arrange(trace: Trace, rows: Int32) -> Lanes:
    start, finish = trace.events.start, event_ends(trace)
    parts: list[tuple[Int32, Int32, Int64]] = []  # rows, track, depth; one entry per stack
    while len(rows):
        track = tracks_of(trace, rows)
        begin, end = place_on_one_axis(start[rows], finish[rows], track)
        order = nesting_order(begin, end)
        rows, track = rows[order], track[order]
        _, depth, fits = nest(begin[order], end[order])
        if fits.all():
            parts.append((rows, track, depth))
            break
        parts.append((rows[fits], track[fits], depth[fits]))
        rows = rows[~fits]
    return _join(trace, parts)


def _join(trace: Trace, parts: list[tuple[Int32, Int32, Int64]]) -> Lanes:
    if not parts:
        none, few = np.empty(0, np.int64), np.empty(0, np.int32)
        return Lanes(few, none, none, np.zeros(1, np.int64), few, few, np.empty(0, np.bool_))
    # One integer per (track, stack, depth): sorting by it gathers the lanes, each in order of time already.
    levels, stacks = 1 + max(int(depth.max(initial=0)) for _, _, depth in parts), len(parts)
    key = np.concatenate(
        [(track * np.int64(stacks) + stack) * levels + depth for stack, (_, track, depth) in enumerate(parts)]
    )
    order = np.argsort(key.astype(np.uint16) if key.max(initial=0) < 2**16 else key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    distinct = key[first]
    track = (distinct // (stacks * levels)).astype(np.int32)
    rows = np.concatenate([rows for rows, _, _ in parts])[order]
    return Lanes(
        rows=rows,
        start=trace.events.start[rows],
        end=event_ends(trace)[rows],
        bounds=np.append(first, len(rows)),
        track=track,
        depth=(np.arange(len(track)) - np.searchsorted(track, track)).astype(np.int32),
        root=distinct % levels == 0,
    )
