"""A tile: the boxes of a window as columns that the page draws without looking at any of them twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.timeline.boxes import Boxes, merge
from torch_tb_profiler.analyses.timeline.colors import SliceColor, color_codes
from torch_tb_profiler.analyses.timeline.grid import Grid
from torch_tb_profiler.analyses.timeline.pyramid import Arrange, K, boxes_in, pyramid
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.model.kernels.short_names import kernel_labels
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

MAX_BOXES = 75_000
"""Boxes in one tile, about 1 MB on the wire; a tile of more tracks and pixels is coarser than asked."""

LABEL_BUCKETS = 12
"""A box narrower than this many buckets has no room for its name."""

MAX_LABEL = 300
"""Characters of a name in a tile."""


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


def tile(trace: Trace, grid: Grid, tracks: Sequence[int], *, python: bool, color: SliceColor) -> Tile:
    """The slices of some tracks (none given: of all) on a grid, or on a coarser one where there would be more than
    MAX_BOXES."""
    layout = lanes(trace, python)
    chosen = layout.of_tracks(tracks) if tracks else np.arange(len(layout.depth))

    def colors(boxes: Boxes) -> npt.NDArray[np.generic]:
        return color_codes(trace, boxes.row, color)

    return _tile(trace, grid, lanes, python, chosen, colors)


def layer(trace: Trace, grid: Grid, arrange: Arrange[K], key: K) -> Tile:
    """All of what an analysis arranges in lanes, colored by their depth; coarser where there is too much."""
    depth = arrange(trace, key).depth

    def colors(boxes: Boxes) -> npt.NDArray[np.generic]:
        return np.repeat(depth, np.diff(boxes.bounds))

    return _tile(trace, grid, arrange, key, np.arange(len(depth)), colors)


def _tile(
    trace: Trace,
    grid: Grid,
    arrange: Arrange[K],
    key: K,
    chosen: Int64,
    colors: Callable[[Boxes], npt.NDArray[np.generic]],
) -> Tile:
    layout, levels = arrange(trace, key), pyramid(trace, arrange, key)
    boxes = boxes_in(levels, chosen, grid.begin, grid.end, grid.resolution)
    while len(boxes.row) > MAX_BOXES:
        grid = grid.coarser()
        boxes = merge(boxes, grid.resolution)
    filled = np.flatnonzero(np.diff(boxes.bounds))
    name = _names(trace, boxes.row)
    wide = boxes.end - boxes.start >= LABEL_BUCKETS * grid.resolution
    names = {code: trace.strings[code][:MAX_LABEL] for code in np.unique(name[wide]).tolist() if code >= 0}
    short = kernel_labels(trace)
    return Tile(
        grid=grid,
        lane_track=layout.track[chosen[filled]].tolist(),
        lane_depth=layout.depth[chosen[filled]].tolist(),
        lane_first=[*boxes.bounds[filled].tolist(), len(boxes.row)],
        start=grid.pack_times(boxes.start),
        duration=grid.pack_durations(boxes.end - boxes.start),
        busy=grid.pack_durations(boxes.busy),
        count=boxes.count.astype("<u4").tobytes(),
        event=boxes.row.astype("<i4").tobytes(),
        name=name.astype("<i4").tobytes(),
        color=colors(boxes).astype("<u2").tobytes(),
        names=names,
        short_names={code: short[code] for code in names if code in short},
    )


def _names(trace: Trace, row: Int32) -> Int32:
    """int32[k]: the codes of the names, NO_CODE also where there is no row."""
    return np.where(row >= 0, trace.events.name[row], NO_CODE).astype(np.int32)
