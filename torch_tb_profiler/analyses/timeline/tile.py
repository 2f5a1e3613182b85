"""A tile: the boxes of a window as columns that the page draws without looking at any of them twice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.timeline.boxes import Boxes, merge
from torch_tb_profiler.analyses.timeline.colors import ColorBy, color_codes
from torch_tb_profiler.analyses.timeline.grid import Grid
from torch_tb_profiler.analyses.timeline.pyramid import boxes_in
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.model.families import kernel_labels
from torch_tb_profiler.model.trace import Trace

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


def tile(trace: Trace, grid: Grid, tracks: Sequence[int], *, python: bool, color: ColorBy) -> Tile:
    """The slices of some tracks on a grid, or on a coarser one where there would be more than MAX_BOXES."""
    layout = lanes(trace, python)
    chosen = layout.of_tracks(tracks)
    boxes = boxes_in(trace, python, chosen, grid.begin, grid.end, grid.resolution)
    while len(boxes.row) > MAX_BOXES:
        grid = grid.coarser()
        boxes = merge(boxes, grid.resolution)
    filled = np.flatnonzero(np.diff(boxes.bounds))
    names, short = _labels(trace, boxes, LABEL_BUCKETS * grid.resolution), kernel_labels(trace)
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
        name=trace.events.name[boxes.row].astype("<i4").tobytes(),
        color=color_codes(trace, boxes.row, color).astype("<u2").tobytes(),
        names=names,
        short_names={code: short[code] for code in names if code in short},
    )


def _labels(trace: Trace, boxes: Boxes, width: int) -> dict[int, str]:
    """Code -> text of the names of the boxes that are at least so many ns wide."""
    codes = np.unique(trace.events.name[boxes.row[boxes.end - boxes.start >= width]]).tolist()
    return {code: trace.strings[code][:MAX_LABEL] for code in codes if code >= 0}
