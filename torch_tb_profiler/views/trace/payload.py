"""The payload of the Trace tab: tracks, steps, counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torch_tb_profiler.views._shared.text import Text


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
             blame (what a device's time went to, drawn from `trace/blame`)
    role     thread: main, backward, ""; stream: compute, communication, copy, annotation, sync;
             instants: memory (nothing but allocations), "";
             counter: utilization, sm_efficiency, memory, "" (of the file)
    group    index into `groups`, null for the ruler
    thread   `pid/tid` as the `thread` parameter of other views takes it
    depth    lanes, 0 for counters
    slices   "X" events and matched "B"/"E" pairs, all of them: `python_slices` are Python frames, which are
             folded unless asked for
    untimed  slices or instants that have no time and cannot be drawn
    unit     of counters: ratio, bytes, bytes/s, /s or ""; `low` and `high` are the least and largest value
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
    name: str
    start_ns: int
    duration_ns: int
    complete: bool


class TraceCounts(msgspec.Struct, frozen=True):
    """Events of the file by what they are.

    untimed           slices and instants without a time
    outside           slices with an absurd time
    side              slices that overlap without nesting and so have side lanes
    other             none of these and no metadata: asynchronous events, a begin without an end; they are in the
                      file but not on the timeline
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

    headline          how busy the busiest device is over the whole recording, or what is recorded instead
    begin_ns, end_ns  the window that shows all of it (ns since the trace's start); `counts.outside` slices
                      have absurd times and lie beyond
    first_begin_ns, first_end_ns  what the page opens with: the slices, without marks and counters far from them
    classes           what the color codes of `trace/tile?color=class` mean
    categories        what the color codes of `trace/blame` mean: work, then causes of idle time
    perfetto          ui.perfetto.dev is known to open the file as it is stored; else a `slice` without a window
    wall_ns           ns since the epoch (UTC) at the trace's start, null if its clock is not known to tell them
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
