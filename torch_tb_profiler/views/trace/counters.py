"""The counters of a window, by level of detail."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.timeline.grid import Grid
from torch_tb_profiler.analyses.timeline.kept.counters import counter_columns as kept_columns
from torch_tb_profiler.analyses.timeline.kept.counters import restore_counters
from torch_tb_profiler.analyses.timeline.samples import counter_columns
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import CachedColumns, Float64s, Int32s, TraceView
from torch_tb_profiler.views.trace.params import (
    TILE_BUCKETS,
    Time,
    Width,
    check_order,
    first_tiles,
    track_ids,
)


class CounterParams(msgspec.Struct, frozen=True):
    """A window as for tiles; `tracks` are ids of counters, empty: all."""

    begin: Time
    end: Time
    width: Width = 1500
    tracks: str = ""

    def __post_init__(self) -> None:
        check_order(self.begin, self.end)


class TraceCounters(msgspec.Struct, frozen=True):
    """Samples by counter; columns are little-endian arrays, one entry per bucket in which the value changes.

    series_first   counter `series_track[i]` holds the entries series_first[i]..series_first[i + 1]
    start          int32    of the first sample in the bucket, units of `unit_ns` from begin_ns
    low, high      float64  least and greatest value during the bucket
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
    """The counters of a window, merged below a bucket."""
    grid = Grid.of(params.begin, params.end, params.width)
    columns = counter_columns(trace, grid, track_ids(trace, params.tracks))
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


PARTS = (
    TraceView(
        "trace/counters",
        "Timeline counters",
        CounterParams,
        TraceCounters,
        build_counters,
        first=lambda trace: tuple(CounterParams(*window, TILE_BUCKETS) for window in first_tiles(trace)),
        columns=CachedColumns(kept_columns, restore_counters),
    ),
)
