"""A tile: the boxes of a window as columns that the page draws in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.timeline.boxes import (
    Arrange,
    Boxes,
    Grid,
    K,
    boxes_in,
    clip_boxes,
    join_lanes,
    merge_boxes,
    pyramid,
    select_boxes,
    unmerged_boxes,
)
from torch_tb_profiler.analyses.timeline.colors import SliceColor, color_codes
from torch_tb_profiler.analyses.tracks.lanes import Lanes, lanes
from torch_tb_profiler.analyses.tracks.python_gaps import frames_between_operators
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.model.kernels.short_names import kernel_labels
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

MAX_BOXES = 75_000
"""Most boxes in one tile, about 1 MB on the wire; a tile that would have more is coarser than requested."""

MIN_LABEL_BUCKETS = 12
"""Fewest buckets of a box that is wide enough for a label."""

MAX_NAME_LENGTH = 300
"""Longest name in a tile, in characters; longer ones are cut."""


class Tile(msgspec.Struct, frozen=True):
    """Boxes by lane; columns are little-endian arrays of equal length, one entry per box.

    grid                    times are in its unit
    lane_track, lane_depth  of each lane that has boxes; lane i holds the boxes lane_first[i]..lane_first[i + 1]
    start, duration, busy   int32
    count                   uint32
    event, name             int32
    color                   uint16
    names                   code -> text, cut to 300 characters, of the boxes wide enough for a label
    short_names             code -> short name, of those that are names of kernels alone
    """

    grid: Grid
    lane_track: list[int]
    lane_depth: list[int]
    lane_first: list[int]
    start: bytes
    duration: bytes
    busy: bytes
    count: bytes
    event: bytes
    name: bytes
    color: bytes
    names: dict[int, str]
    short_names: dict[int, str]


def slice_tile(trace: Trace, grid: Grid, tracks: Sequence[int], *, python: bool, color: SliceColor) -> Tile:
    """Build a tile of the slices of some tracks (of all if none are given).

    The grid gets coarser where there would be more than MAX_BOXES. With folded Python frames, those that fill the
    time between operators have lanes of their own, which follow the others.
    """
    layout = lanes(trace, python)
    chosen = layout.of_tracks(tracks) if tracks else np.arange(len(layout.depth))
    grid, boxes = _select_boxes(trace, grid, lanes, python, chosen)
    track, depth = layout.track[chosen], layout.depth[chosen]
    if not python:
        frames = frames_between_operators(trace)
        chosen = frames.of_tracks(tracks) if tracks else np.arange(len(frames.depth))
        boxes = join_lanes(boxes, _select_visible_parts(frames, chosen, grid))
        track, depth = np.append(track, frames.track[chosen]), np.append(depth, frames.depth[chosen])
    return _build_tile(trace, grid, boxes, track, depth, color_codes(trace, boxes.row, color))


def _select_visible_parts(frames: Lanes, chosen: Int64, grid: Grid) -> Boxes:
    """Return the parts of Python frames that last a bucket or longer; shorter ones would hide operators."""
    boxes = clip_boxes(unmerged_boxes(frames), chosen, grid.begin, grid.end)
    return select_boxes(boxes, boxes.end - boxes.start >= grid.resolution)


def arranged_tile(trace: Trace, grid: Grid, arrange: Arrange[K], key: K) -> Tile:
    """Build a tile of all lanes that an analysis arranges, colored by depth; coarser if it would be too large."""
    layout = arrange(trace, key)
    grid, boxes = _select_boxes(trace, grid, arrange, key, np.arange(len(layout.depth)))
    color = np.repeat(layout.depth, np.diff(boxes.bounds))
    return _build_tile(trace, grid, boxes, layout.track, layout.depth, color)


def _select_boxes(trace: Trace, grid: Grid, arrange: Arrange[K], key: K, chosen: Int64) -> tuple[Grid, Boxes]:
    """Return the boxes of the chosen lanes, at most MAX_BOXES, and the grid that they fit."""
    boxes = boxes_in(pyramid(trace, arrange, key), chosen, grid.begin, grid.end, grid.resolution)
    while len(boxes.row) > MAX_BOXES:
        grid = grid.coarser()
        boxes = merge_boxes(boxes, grid.resolution)
    return grid, boxes


def _build_tile(
    trace: Trace, grid: Grid, boxes: Boxes, track: Int32, depth: Int32, color: npt.NDArray[np.generic]
) -> Tile:
    filled = np.flatnonzero(np.diff(boxes.bounds))
    name = _name_codes(trace, boxes.row)
    wide = boxes.end - boxes.start >= MIN_LABEL_BUCKETS * grid.resolution
    names = {code: trace.strings[code][:MAX_NAME_LENGTH] for code in distinct_numbers(name[wide]) if code >= 0}
    short = kernel_labels(trace)
    return Tile(
        grid=grid,
        lane_track=track[filled].tolist(),
        lane_depth=depth[filled].tolist(),
        lane_first=[*boxes.bounds[filled].tolist(), len(boxes.row)],
        start=grid.pack_times(boxes.start),
        duration=grid.pack_durations(boxes.end - boxes.start),
        busy=grid.pack_durations(boxes.busy),
        count=boxes.count.astype("<u4").tobytes(),
        event=boxes.row.astype("<i4").tobytes(),
        name=name.astype("<i4").tobytes(),
        color=color.astype("<u2").tobytes(),
        names=names,
        short_names={code: short[code] for code in names if code in short},
    )


def _name_codes(trace: Trace, row: Int32) -> Int32:
    """Return int32[k], the name codes of these rows, NO_CODE also where there is no row."""
    return np.where(row >= 0, trace.events.name[row], NO_CODE).astype(np.int32)
