"""The columns that the page draws for a window: slices and their names and colors, and counters."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.timeline.boxes import Grid
from torch_tb_profiler.analyses.timeline.cached_columns import (
    counter_columns,
    restore_counters,
    restore_tiles,
    tile_columns,
)
from torch_tb_profiler.analyses.timeline.colors import ColorBy, SliceColor, legend
from torch_tb_profiler.analyses.timeline.counters import pack_counters
from torch_tb_profiler.analyses.timeline.tile import Tile, slice_tile
from torch_tb_profiler.model.kernels.short_names import kernel_labels
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import CachedColumns, Float64s, Int32s, TraceView, UInt16s, UInt32s
from torch_tb_profiler.views._shared.params import parse_numbers
from torch_tb_profiler.views.trace.payload import TILE_BUCKETS, Width, WindowParams, first_tiles, track_ids

MAX_CODES = 1000
"""Most names in one answer."""


class TileParams(WindowParams, frozen=True):
    """A window [begin, end) in ns, as many buckets as pixels or a few more, some tracks (ids; empty: all).

    `color` says what the color codes are: `class` (TracePayload.classes), `family` of kernels, `process_group` or
    `module` (their texts are in `trace/colors`), `name` (a number made from the text, 0 without one).
    """

    width: Width = 1500
    tracks: str = ""
    python: bool = False
    color: SliceColor = "class"


class TraceTile(msgspec.Struct, frozen=True):
    """Boxes by lane. Columns are little-endian arrays of equal length, one entry per box.

    resolution_ns  a power of two; shorter slices that begin in the same bucket of so many ns share a box; coarser
                   than requested if there would be more than 75,000 boxes
    unit_ns        unit of `start` (from begin_ns), `duration` and `busy`; 1 wherever a bucket is up to 256 ns
    lane_track, lane_depth  of each lane that has boxes; lane i holds the boxes lane_first[i]..lane_first[i + 1];
                   with folded Python frames, lanes of those that fill the time between operators follow
    start          int32   a box may reach beyond the window on both sides
    duration       int32   from the first start to the last end
    busy           int32   covered by slices; duration of a single slice
    count          uint32  slices in the box; 1: the very slice `event`
    event          int32   row of the (longest) slice
    name           int32   code of its name; -1 none
    color          uint16
    names          code -> text, cut to 300 characters, of the boxes wide enough for a label
    short_names    code -> short name, of those that are names of kernels and of nothing else
    """

    begin_ns: int
    end_ns: int
    resolution_ns: int
    unit_ns: int
    lane_track: list[int]
    lane_depth: list[int]
    lane_first: list[int]
    start: Int32s
    duration: Int32s
    busy: Int32s
    count: UInt32s
    event: Int32s
    name: Int32s
    color: UInt16s
    names: Mapping[int, str]
    short_names: Mapping[int, str]


def build_tile(trace: Trace, params: TileParams) -> TraceTile:
    """Build a tile: the slices of a window, merged below a bucket."""
    grid = Grid.of(params.begin, params.end, params.width)
    tracks = parse_numbers("tracks", params.tracks)
    tile = slice_tile(trace, grid, tracks, python=params.python, color=params.color)
    return tile_payload(tile, params.begin, params.end)


def tile_payload(tile: Tile, begin: int, end: int) -> TraceTile:
    """Return the payload of a tile of the window [begin, end)."""
    return TraceTile(
        begin_ns=begin,
        end_ns=end,
        resolution_ns=tile.grid.resolution,
        unit_ns=tile.grid.unit,
        lane_track=tile.lane_track,
        lane_depth=tile.lane_depth,
        lane_first=tile.lane_first,
        start=tile.start,
        duration=tile.duration,
        busy=tile.busy,
        count=tile.count,
        event=tile.event,
        name=tile.name,
        color=tile.color,
        names=tile.names,
        short_names=tile.short_names,
    )


class NamesParams(msgspec.Struct, frozen=True):
    """Codes of names with commas between them, at most 1000."""

    codes: str


class TraceNames(msgspec.Struct, frozen=True):
    """Full texts of names by code; `short_names` of those that are names of kernels and of nothing else."""

    names: Mapping[int, str]
    short_names: Mapping[int, str]


def build_names(trace: Trace, params: NamesParams) -> TraceNames:
    """Build the texts of some names."""
    codes, short = parse_numbers("codes", params.codes)[:MAX_CODES], kernel_labels(trace)
    names = {code: trace.strings[code] for code in codes if 0 <= code < len(trace.strings)}
    return TraceNames(names, {code: short[code] for code in names if code in short})


class CounterParams(WindowParams, frozen=True):
    """A window as for tiles; `tracks` are ids of counters, empty: all."""

    width: Width = 1500
    tracks: str = ""


class TraceCounters(msgspec.Struct, frozen=True):
    """Samples by counter; columns are little-endian arrays, one entry per bucket in which the value changes.

    series_first   counter `series_track[i]` holds the entries series_first[i]..series_first[i + 1]
    start          int32    of the first sample in the bucket, units of `unit_ns` from begin_ns
    low, high      float64  smallest and largest value during the bucket
    mean           float64  over the time of the bucket
    last           float64  holds until the next entry
    """

    begin_ns: int
    end_ns: int
    resolution_ns: int
    unit_ns: int
    series_track: list[int]
    series_first: list[int]
    start: Int32s
    low: Float64s
    high: Float64s
    mean: Float64s
    last: Float64s


def build_counters(trace: Trace, params: CounterParams) -> TraceCounters:
    """Build the counters of a window, merged by bucket."""
    grid = Grid.of(params.begin, params.end, params.width)
    columns = pack_counters(trace, grid, track_ids(trace, params.tracks))
    return TraceCounters(
        begin_ns=params.begin,
        end_ns=params.end,
        resolution_ns=grid.resolution,
        unit_ns=grid.unit,
        series_track=columns.series_track,
        series_first=columns.series_first,
        start=columns.start,
        low=columns.low,
        high=columns.high,
        mean=columns.mean,
        last=columns.last,
    )


class ColorsParams(msgspec.Struct, frozen=True):
    """`by`: class, family (of kernels), process_group or module."""

    by: ColorBy = "class"


class TraceColors(msgspec.Struct, frozen=True):
    """The legend: texts by color code; code 0 of all but classes is "none". "" is a family without work."""

    by: str
    texts: list[str]


def build_colors(trace: Trace, params: ColorsParams) -> TraceColors:
    """Build the legend: what the color codes of a tile mean."""
    return TraceColors(params.by, legend(trace, params.by))


PARTS = (
    TraceView(
        "trace/tile",
        "Timeline tile",
        TileParams,
        TraceTile,
        build_tile,
        answers="The slices of a window, by lane.",
        first=lambda trace: tuple(TileParams(*window, TILE_BUCKETS) for window in first_tiles(trace)),
        columns=CachedColumns(tile_columns, restore_tiles),
    ),
    TraceView("trace/names", "Timeline names", NamesParams, TraceNames, build_names),
    TraceView(
        "trace/counters",
        "Timeline counters",
        CounterParams,
        TraceCounters,
        build_counters,
        first=lambda trace: tuple(CounterParams(*window, TILE_BUCKETS) for window in first_tiles(trace)),
        columns=CachedColumns(counter_columns, restore_counters),
    ),
    TraceView("trace/colors", "Timeline colors", ColorsParams, TraceColors, build_colors),
)
