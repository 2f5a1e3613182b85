"""Python frames where no operator runs, drawn while all other frames are folded: a working thread is never blank.

    operators   |- mm -|                        |- add -|
    frames    |-- train ------------------------------------|
                        |-- preprocess ----|
    drawn     |t|       |-- preprocess ----|train|       |train|

Where no operator and no call of the runtime runs, the outermost frame that contains none of them is drawn. The
rest of the time belongs to the innermost frame that is running, of which only that part is drawn. Annotations
(steps, `record_function`) may be around or between all of these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.analyses.tracks.events import all_slices
from torch_tb_profiler.analyses.tracks.lanes import Lanes, depth_of, lanes
from torch_tb_profiler.analyses.tracks.tracks import tracks, tracks_of
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals, merge, subtract
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.nesting import nest, nesting_order
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64, Trace

MIN_PART_NS = 1000
"""Shortest part of a frame that is drawn, ns; shorter ones are what Python itself takes between two calls."""


@derived
def frames_between_operators(trace: Trace) -> Lanes:
    """Arrange the parts of Python frames that are drawn beside the slices of `lanes(trace, False)`.

    Each lane has the depth at which its track is free at that time. Only tracks with other slices, and that of the
    main thread, have any.
    """
    rows = np.flatnonzero((event_kinds(trace) == Kind.PYTHON) & all_slices(trace)).astype(np.int32)
    rows = rows[trace.events.start[rows] != ABSENT]
    track, visible = tracks_of(trace, rows), set(lanes(trace, False).track.tolist()) if len(rows) else set()
    found = [
        (id, _build_track_parts(trace, id, rows[track == id]))
        for id in distinct_numbers(track)
        if id in visible or tracks(trace).tracks[id].role == "main"
    ]
    no_rows, no_times = np.empty(0, np.int32), np.empty(0, np.int64)
    track = np.concatenate([no_rows, *(np.full(len(parts.row), id, np.int32) for id, parts in found)])
    row = np.concatenate([no_rows, *(parts.row for _, parts in found)])
    start = np.concatenate([no_times, *(parts.start for _, parts in found)])
    end = np.concatenate([no_times, *(parts.end for _, parts in found)])
    depth = np.concatenate([no_rows, *(parts.depth for _, parts in found)])
    order = np.lexsort((start, depth, track))
    track, depth = track[order], depth[order]
    first = np.flatnonzero((np.diff(track, prepend=-1) != 0) | (np.diff(depth, prepend=-1) != 0))
    bounds = np.append(first, len(order)).astype(np.int64)
    root = np.ones(len(first), np.bool_)
    return Lanes(row[order], start[order], end[order], bounds, track[first], depth[first], root)


def drawn_depth(trace: Trace, row: int, python: bool) -> int | None:
    """Return the depth at which a slice is drawn in full, or None if it isn't."""
    depth = depth_of(trace, row, python)
    if depth is not None or python or event_kinds(trace)[row] != Kind.PYTHON:
        return depth
    parts = frames_between_operators(trace)
    for position in np.flatnonzero(parts.rows == row).tolist():
        if parts.start[position] == trace.events.start[row] and parts.end[position] == event_ends(trace)[row]:
            return int(parts.depth[np.searchsorted(parts.bounds, position, "right") - 1])
    return None


class _FrameParts(NamedTuple):
    """What is drawn of which frame: int32[k] rows, int64[k] ns, int64[k] ns, int32[k] depths."""

    row: Int32
    start: Int64
    end: Int64
    depth: Int32


def _build_track_parts(trace: Trace, track: int, frames: Int32) -> _FrameParts:
    ends = event_ends(trace)
    frames = frames[nesting_order(trace.events.start[frames], ends[frames])]
    _, _, fits = nest(trace.events.start[frames], ends[frames])
    frames = frames[fits]
    start, end = trace.events.start[frames], ends[frames]
    parent, _, _ = nest(start, end)
    busy, annotations = _find_other_slices(trace, track)
    free = subtract(merge(start, end), busy)
    edges = np.concatenate([annotations.start, annotations.end])
    whole = _outermost_inside(_split(free, edges), start, end)
    rest = _split(subtract(free, merge(start[whole], end[whole])), np.concatenate([edges, start, end]))
    innermost = np.searchsorted(start, rest.starts, "right") - 1
    while (over := (innermost >= 0) & (end[innermost] <= rest.starts)).any():
        innermost[over] = parent[innermost[over]]
    shown = np.concatenate([np.flatnonzero(whole), innermost])
    begin, finish = np.concatenate([start[whole], rest.starts]), np.concatenate([end[whole], rest.ends])
    long = (shown >= 0) & (finish - begin >= MIN_PART_NS)
    begin, finish = begin[long], finish[long]
    depth = np.zeros(len(begin), np.int32)
    for lane in np.unique(annotations.depth).tolist():
        members = annotations.depth == lane
        last = np.searchsorted(annotations.start[members], begin, "right") - 1
        inside = (last >= 0) & (annotations.end[members][last] >= finish)
        depth[inside] = lane + 1
    return _FrameParts(frames[shown[long]], begin, finish, depth)


class _Annotations(NamedTuple):
    """The annotations of a track that nest with its operators, by depth and start."""

    start: Int64
    end: Int64
    depth: Int32


def _find_other_slices(trace: Trace, track: int) -> tuple[Intervals, _Annotations]:
    """Return when operators and calls run on a track, and its annotations."""
    layout = lanes(trace, False)
    chosen = layout.of_tracks([track])
    if len(chosen) == 0:
        no_times = np.empty(0, np.int64)
        return NO_INTERVALS, _Annotations(no_times, no_times, np.empty(0, np.int32))
    span = slice(layout.bounds[chosen[0]], layout.bounds[chosen[-1] + 1])
    start, end = layout.start[span], layout.end[span]
    depth = np.repeat(layout.depth[chosen], np.diff(layout.bounds)[chosen])
    annotations = event_kinds(trace)[layout.rows[span]] == Kind.ANNOTATION
    # Slices that nest with nothing are on side stacks below: frames stay beside the operators.
    side = np.flatnonzero(layout.root[chosen])[1:]
    around = annotations & (depth < (layout.depth[chosen[side[0]]] if len(side) else len(chosen)))
    return merge(start[~annotations], end[~annotations]), _Annotations(start[around], end[around], depth[around])


def _split(free: Intervals, edges: Int64) -> Intervals:
    """Cut intervals at all `edges` inside them; the parts may touch."""
    edges = np.unique(edges)
    at = np.searchsorted(free.starts, edges, "right") - 1
    edges = (
        edges[(at >= 0) & (edges > free.starts[at]) & (edges < free.ends[at])] if len(free.starts) else edges[:0]
    )
    return Intervals(np.sort(np.concatenate([free.starts, edges])), np.sort(np.concatenate([free.ends, edges])))


def _outermost_inside(gaps: Intervals, start: Int64, end: Int64) -> Bool:
    """Return a mask of the intervals (in nesting order) inside a gap, without those nested in another of them."""
    at = np.searchsorted(gaps.starts, start, "right") - 1
    inside = (at >= 0) & (end > start)
    inside[inside] = end[inside] <= gaps.ends[at[inside]]
    candidates = np.flatnonzero(inside)
    reach = np.maximum.accumulate(end[candidates])
    outermost = start[candidates[1:]] >= reach[:-1]
    inside[candidates[1:][~outermost]] = False
    return inside
