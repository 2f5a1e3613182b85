"""Level of detail of counters: samples of a window, merged below a pixel so that no peak is lost at any zoom."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.timeline.counters import Series, all_series, counter_id
from torch_tb_profiler.analyses.timeline.grid import Grid
from torch_tb_profiler.model.trace import Float64, Int64, Trace


class Samples(msgspec.Struct, frozen=True):
    """Merged samples of a window, by bucket.

    time   int64[k]    ns of the first sample of the bucket (of the window's begin for what holds before it)
    low, high, mean, last  float64[k]: during the bucket; `last` holds until the next entry
    """

    time: Int64
    low: Float64
    high: Float64
    mean: Float64
    last: Float64


def sample(series: Series, begin: int, end: int, resolution: int) -> Samples:
    """The counter in [begin, end) merged into buckets (time // resolution)."""
    first, last = np.searchsorted(series.times, [begin, end], "left").tolist()
    times, values = series.times[first:last], series.values[first:last]
    before = series.values[first - 1] if first else np.nan
    if first and (len(times) == 0 or times[0] > begin):
        times, values = np.append(begin, times), np.append(before, values)
    if len(times) == 0:
        none = np.empty(0)
        return Samples(times, none, none, none, none)
    bucket = times // resolution
    opening = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    closing = np.append(opening[1:], len(times)) - 1
    low, high = np.minimum.reduceat(values, opening), np.maximum.reduceat(values, opening)
    # What held before the first sample of a bucket belongs to the bucket as well.
    held = np.append(before if first else np.nan, values[closing[:-1]])
    held_for = np.where(np.isnan(held), 0, times[opening] - bucket[opening] * resolution)
    low, high = np.where(held_for > 0, np.fmin(low, held), low), np.where(held_for > 0, np.fmax(high, held), high)
    until = np.minimum(np.append(times[1:], np.iinfo(np.int64).max), (bucket + 1) * resolution)
    covered = np.add.reduceat(until - times, opening) + held_for
    area = np.add.reduceat(values * (until - times), opening) + np.where(held_for > 0, held, 0) * held_for
    return Samples(times[opening], low, high, area / covered, values[closing])


class CounterColumns(msgspec.Struct, frozen=True):
    """Samples by counter; columns are little-endian arrays, one entry per bucket in which the value changes.

    series_first            counter `series_track[i]` holds the entries series_first[i]..series_first[i + 1]
    start                   int32, in units of the grid
    low, high, mean, last   float64
    """

    series_track: list[int]
    series_first: list[int]
    start: bytes
    low: bytes
    high: bytes
    mean: bytes
    last: bytes


def counter_columns(trace: Trace, grid: Grid, tracks: Sequence[int]) -> CounterColumns:
    """The counters among some tracks on a grid."""
    wanted = set(tracks)
    chosen = {
        counter_id(trace, i): sample(series, grid.begin, grid.end, grid.resolution)
        for i, series in enumerate(all_series(trace))
        if counter_id(trace, i) in wanted
    }

    def packed(name: str) -> bytes:
        columns = [np.empty(0), *(getattr(samples, name) for samples in chosen.values())]
        return np.concatenate(columns).astype("<f8").tobytes()

    times = np.concatenate([np.empty(0, np.int64), *(samples.time for samples in chosen.values())])
    return CounterColumns(
        series_track=list(chosen),
        series_first=[0, *np.cumsum([len(samples.time) for samples in chosen.values()]).tolist()],
        start=grid.pack_times(times),
        low=packed("low"),
        high=packed("high"),
        mean=packed("mean"),
        last=packed("last"),
    )
