"""What the timeline asks for once it is open: slices and counters of a window, by level of detail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.timeline.colors import CLASSES, classes, process_groups
from torch_tb_profiler.analyses.timeline.counters import all_series, sample
from torch_tb_profiler.analyses.timeline.tiles import Boxes, merge, resolution, tile
from torch_tb_profiler.analyses.tracks.lanes import lanes_of
from torch_tb_profiler.analyses.tracks.tracks import tracks
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.trace import Int32, Int64, Trace
from torch_tb_profiler.view import TraceView

MAX_WIDTH = 8192
MAX_BOXES = 75_000
"""Boxes in one answer, about 1 MB on the wire; a tile of more tracks and pixels is coarser than asked."""

LABEL_BUCKETS = 12
"""A box narrower than this many buckets has no room for its name."""

MAX_LABEL = 300
"""Characters of a name in a tile; the whole name stands in `trace/event`."""

_LIMIT = 2**30


Color = Literal["class", "process_group", "module"]


class TileParams(msgspec.Struct, frozen=True):
    """A window [begin, end) in ns, as many buckets as pixels or a few more, some tracks (ids; empty: all).

    `colour` says what the colour codes are: `class` (TracePayload.classes), `process_group` or `module`
    (their texts are in `trace/colours`).
    """

    begin: int
    end: int
    width: int = 1500
    tracks: str = ""
    python: bool = False
    colour: Color = "class"


class TraceTile(msgspec.Struct, frozen=True):
    """Boxes by lane. Columns are little-endian arrays of equal length, one entry per box.

    resolution_ns  a power of two; shorter slices that begin in the same bucket of so many ns share a box; coarser
                   than asked where there would be more than 75,000 boxes
    unit_ns        unit of `start` (from begin_ns), `duration` and `busy`; 1 wherever a bucket is up to 256 ns
    lane_track, lane_depth  of each lane that has boxes; lane i holds the boxes lane_first[i]..lane_first[i + 1]
    start          int32   a box may reach beyond the window on both sides
    duration       int32   from the first start to the last end
    busy           int32   covered by slices; duration of a single slice
    count          uint32  slices in the box; 1: the very slice `event`
    event          int32   row of the (longest) slice
    name           int32   code of its name; -1 none
    colour         uint16
    names          code -> text, cut to 300 characters, of the boxes wide enough for a label
    """

    begin_ns: int
    end_ns: int
    resolution_ns: int
    unit_ns: int
    lane_track: list[int]
    lane_depth: list[int]
    lane_first: list[int]
    start: bytes
    duration: bytes
    busy: bytes
    count: bytes
    event: bytes
    name: bytes
    colour: bytes
    names: Mapping[int, str]


def build_tile(trace: Trace, params: TileParams) -> TraceTile:
    """The slices of a window, merged below a bucket."""
    check_window(params.begin, params.end, params.width)
    laid = lanes_of(trace, params.python)
    wanted = track_ids(trace, params.tracks)
    which = np.flatnonzero(np.isin(laid.track, wanted))
    bucket = resolution(params.begin, params.end, params.width)
    found = tile(trace, params.python, which, params.begin, params.end, bucket)
    while len(found.row) > MAX_BOXES:
        bucket *= 2
        found = merge(found, bucket)
    filled = np.flatnonzero(np.diff(found.bounds))
    unit = max(1, bucket >> 8)
    name = trace.events.name[found.row]
    return TraceTile(
        begin_ns=params.begin,
        end_ns=params.end,
        resolution_ns=bucket,
        unit_ns=unit,
        lane_track=laid.track[which[filled]].tolist(),
        lane_depth=laid.depth[which[filled]].tolist(),
        lane_first=[*found.bounds[filled].tolist(), len(found.row)],
        start=_units(found.start - params.begin, unit),
        duration=_units(found.end - found.start, unit),
        busy=_units(found.busy, unit),
        count=found.count.astype("<u4").tobytes(),
        event=found.row.astype("<i4").tobytes(),
        name=name.astype("<i4").tobytes(),
        colour=_colours(trace, found.row, params.colour).astype("<u2").tobytes(),
        names=_labels(trace, found, name, LABEL_BUCKETS * bucket),
    )


def _units(times: Int64, unit: int) -> bytes:
    return np.clip(times // unit, -_LIMIT, _LIMIT).astype("<i4").tobytes()


def _labels(trace: Trace, found: Boxes, name: Int32, wide: int) -> dict[int, str]:
    codes = np.unique(name[found.end - found.start >= wide]).tolist()
    return {code: trace.strings[code][:MAX_LABEL] for code in codes if code >= 0}


def _colours(trace: Trace, rows: Int32, by: str) -> npt.NDArray[np.generic]:
    if by == "class":
        return classes(trace)[rows]
    if by == "process_group":
        return np.minimum(process_groups(trace)[0][rows], 0xFFFF)
    return np.minimum(modules(trace).code[rows] + 1, 0xFFFF)


def check_window(begin: int, end: int, width: int) -> None:
    """UsageError if this is no window, or one that int64 cannot hold."""
    if not -(2**62) < begin < end < 2**62:
        raise UsageError(f"[{begin}, {end}) is no window", hint="begin and end in ns, begin < end")
    if not 1 <= width <= MAX_WIDTH:
        raise UsageError(f"width cannot be {width}", hint=f"1 to {MAX_WIDTH} buckets")


def track_ids(trace: Trace, text: str) -> list[int]:
    """Track ids of a parameter ("3,4,7"; empty: all of slices and counters)."""
    everything = counter_id(trace, len(all_series(trace)))
    if not text:
        return list(range(everything))
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"tracks cannot be {text!r}", hint="ids with commas between them") from error


def counter_id(trace: Trace, index: int) -> int:
    """Track id of a counter: those of slices come first."""
    return len(tracks(trace).tracks) + index


class NamesParams(msgspec.Struct, frozen=True):
    """Codes of names with commas between them, at most 1000."""

    codes: str


class TraceNames(msgspec.Struct, frozen=True):
    """Texts of names by code, whole."""

    names: Mapping[int, str]


def build_names(trace: Trace, params: NamesParams) -> TraceNames:
    """The texts of some names."""
    try:
        codes = [int(text) for text in params.codes.split(",")[:1000]]
    except ValueError as error:
        raise UsageError(f"codes cannot be {params.codes!r}", hint="numbers with commas between them") from error
    return TraceNames({code: trace.strings[code] for code in codes if 0 <= code < len(trace.strings)})


class ColoursParams(msgspec.Struct, frozen=True):
    """`by`: class, process_group or module."""

    by: Color = "class"


class TraceColours(msgspec.Struct, frozen=True):
    """The legend: texts by colour code; code 0 of process groups and modules is "none"."""

    by: str
    texts: list[str]


def build_colours(trace: Trace, params: ColoursParams) -> TraceColours:
    """What the colour codes of a tile mean."""
    if params.by == "class":
        return TraceColours("class", list(CLASSES))
    if params.by == "process_group":
        return TraceColours(params.by, list(process_groups(trace)[1]))
    found = modules(trace)
    paths = [" / ".join(found.path(code)) for code in range(min(len(found.names), 0xFFFE))]
    return TraceColours(params.by, ["none", *paths])


class CounterParams(msgspec.Struct, frozen=True):
    """A window as for tiles; `tracks` are ids of counters, empty: all."""

    begin: int
    end: int
    width: int = 1500
    tracks: str = ""


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
    start: bytes
    low: bytes
    high: bytes
    mean: bytes
    last: bytes


def build_counters(trace: Trace, params: CounterParams) -> TraceCounters:
    """The counters of a window, merged below a bucket."""
    check_window(params.begin, params.end, params.width)
    bucket = resolution(params.begin, params.end, params.width)
    unit = max(1, bucket >> 8)
    series = all_series(trace)
    wanted = set(track_ids(trace, params.tracks))
    chosen = [i for i in range(len(series)) if counter_id(trace, i) in wanted]
    found = [sample(series[i], params.begin, params.end, bucket) for i in chosen]

    def joined(name: str) -> npt.NDArray[np.float64]:
        return np.concatenate([np.empty(0), *(getattr(samples, name) for samples in found)])

    times = np.concatenate([np.empty(0, np.int64), *(samples.time for samples in found)])
    return TraceCounters(
        begin_ns=params.begin,
        end_ns=params.end,
        resolution_ns=bucket,
        unit_ns=unit,
        series_track=[counter_id(trace, i) for i in chosen],
        series_first=[0, *np.cumsum([len(samples.time) for samples in found]).tolist()],
        start=_units(times - params.begin, unit),
        low=joined("low").astype("<f8").tobytes(),
        high=joined("high").astype("<f8").tobytes(),
        mean=joined("mean").astype("<f8").tobytes(),
        last=joined("last").astype("<f8").tobytes(),
    )


PARTS = (
    TraceView("trace/tile", "Timeline tile", TileParams, TraceTile, build_tile),
    TraceView("trace/names", "Timeline names", NamesParams, TraceNames, build_names),
    TraceView("trace/colours", "Timeline colors", ColoursParams, TraceColours, build_colours),
    TraceView("trace/counters", "Timeline counters", CounterParams, TraceCounters, build_counters),
)
