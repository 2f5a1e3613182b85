"""The payload of the Trace tab (tracks, steps, counts), and the parameters that its parts share."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from typing import Annotated, Literal, NamedTuple

import msgspec

from torch_tb_profiler.analyses.timeline.counters import all_series, counter_id
from torch_tb_profiler.analyses.tracks.extent import extent, opening_extent
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.params import parse_numbers
from torch_tb_profiler.views._shared.text import Text

MAX_WIDTH = 8192
"""Most buckets that a request may ask for."""

Time = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]
"""ns since the trace's start, within what int64 holds without overflow."""

Width = Annotated[int, msgspec.Meta(ge=1, le=MAX_WIDTH)]
"""Fewest buckets that a window is divided into."""


def check_order(begin: int, end: int) -> None:
    """Raise ValueError unless [begin, end) holds any time."""
    if begin >= end:
        raise ValueError(f"[{begin}, {end}) is not a window: begin must be less than end")


class WindowParams(msgspec.Struct, frozen=True):
    """A window [begin, end) in ns since the trace's start."""

    begin: Time
    end: Time

    def __post_init__(self) -> None:
        check_order(self.begin, self.end)


def track_ids(trace: Trace, text: str) -> list[int]:
    """Parse the track ids of a parameter ("3,4,7"; empty: all tracks of slices and counters)."""
    return parse_numbers("tracks", text) or list(range(counter_id(trace, len(all_series(trace)))))


TILE_BUCKETS = 1024
"""Number of buckets of the page's tiles, each of which begins at a multiple of its length."""

MIN_TIMELINE_WIDTH, MAX_TIMELINE_WIDTH = 480, 2200
"""Width of the timeline on pages from 900 to 2560 pixels wide, in pixels."""

_MARGIN_RATIO, _MIN_MARGIN_NS = 0.02, 50
"""Margin at both ends of the slices: share of their time range, and its minimum in ns."""


class TimeWindow(NamedTuple):
    """[begin, end) in ns since the trace's start."""

    begin: int
    end: int


def first_window(trace: Trace) -> TimeWindow:
    """Return the window that the page opens with: all slices, with a margin at both ends.

    The geometry here is the page's (fe/src/timeline: viewport.ts, tiles/store.ts).
    """
    begin, end, _ = opening_extent(trace)
    margin = max((end - begin) * _MARGIN_RATIO, _MIN_MARGIN_NS)
    return TimeWindow(floor(begin - margin), ceil(end + margin))


def first_tiles(trace: Trace) -> tuple[TimeWindow, ...]:
    """Return the windows of the tiles that `first_window` needs, at each resolution that the page may choose.

    A bucket is a pixel's time rounded down to a power of two.
    """
    (left, right), recording = first_window(trace), extent(trace)
    finest, coarsest = (
        max((right - left) // width, 1).bit_length() - 1 for width in (MAX_TIMELINE_WIDTH, MIN_TIMELINE_WIDTH)
    )
    tiles = []
    for length in (TILE_BUCKETS << level for level in range(finest, coarsest + 1)):
        visible = range(max(left, recording.begin) // length, min(right, recording.end) // length + 1)
        tiles += [TimeWindow(i * length, (i + 1) * length) for i in visible]
    return tuple(tiles)


class TraceParams(msgspec.Struct, frozen=True):
    """`python`: unfold the Python frames (their lanes count in `depth`)."""

    python: bool = False


class TraceGroup(msgspec.Struct, frozen=True):
    """Tracks that belong together: a process, a device, the profiler's own spans, counters of the file."""

    kind: Literal["process", "device", "profiler", "counters"]
    name: str
    pid: str
    device: int | None


class TraceTrack(msgspec.Struct, frozen=True):
    """One track; the list is in display order, `id` names a track in the parts.

    kind     steps (the ruler, drawn from `steps`) | thread | stream | instants | counter |
             blame (how a device spends its time, drawn from `trace/blame`)
    role     thread: main, backward, ""; stream: compute, communication, copy, annotation, sync, graph;
             instants: memory (nothing but allocations), "";
             counter: utilization, sm_efficiency, memory, "" (of the file)
    group    index into `groups`, null for the ruler
    thread   `pid/tid` as the `thread` parameter of other views takes it
    depth    lanes, 0 for counters
    slices   "X" events and matched "B"/"E" pairs, including the `python_slices`, which are folded unless
             requested, except where no operator runs
    untimed  slices or instants that have no time and cannot be drawn
    unit     of counters: ratio, bytes, bytes/s, /s or ""; `low` and `high` are the smallest and largest value
    """

    id: int
    kind: Literal["steps", "blame", "thread", "stream", "instants", "counter"]
    role: str
    name: str
    group: int | None
    thread: str | None
    device: int | None
    stream: int | None
    depth: int
    slices: int
    python_slices: int
    untimed: int
    instants: int
    samples: int
    unit: str
    low: float | None
    high: float | None


class TraceStep(msgspec.Struct, frozen=True):
    """One step of the ruler; `complete` if the recording holds all of it."""

    name: str
    start_ns: int
    duration_ns: int
    complete: bool


class TraceCounts(msgspec.Struct, frozen=True):
    """Events of the file by what they are.

    untimed  slices and instants without a time
    outside  slices with an absurd time
    side     slices that overlap without nesting and so have side lanes
    other    none of these and no metadata: asynchronous events, a begin without an end; they are in the file but
             not on the timeline
    """

    slices: int
    python_slices: int
    instants: int
    counters: int
    flows: int
    untimed: int
    outside: int
    side: int
    other: int


class TracePayload(msgspec.Struct, frozen=True):
    """What there is to draw; the slices themselves come by window from `trace/tile`.

    headline          how busy the busiest device is over the entire recording, or what was recorded instead
    begin_ns, end_ns  the window that shows all of it (ns since the trace's start); `counts.outside` slices
                      have absurd times and lie beyond
    first_begin_ns, first_end_ns  the window that the page opens with: all slices, but no far instants and counters
    classes           what the color codes of `trace/tile?color=class` mean
    categories        what the color codes of `trace/blame` mean: work, then causes of idle time
    perfetto          whether ui.perfetto.dev can open the file as stored; else it gets a `slice` without a window
    wall_ns           ns since the epoch (UTC) at the trace's start, null if the clock doesn't provide it
    step_noun         what a step is in a sentence: "step", or "iteration" of an inference engine
    reasons           why `steps`, a counter or `wall_ns` is missing
    """

    headline: Text
    trace_start_ns: int
    base_ns: int
    wall_ns: int | None
    begin_ns: int
    end_ns: int
    first_begin_ns: int
    first_end_ns: int
    groups: list[TraceGroup]
    tracks: list[TraceTrack]
    counts: TraceCounts
    steps: list[TraceStep]
    steps_recorded: bool
    classes: list[str]
    categories: list[str]
    python: bool
    perfetto: bool
    reasons: Mapping[str, Text]
    step_noun: str = "step"
