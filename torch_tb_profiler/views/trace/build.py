"""Trace: the timeline. What runs where and when, from the whole recording down to a nanosecond."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.timeline.colors import CLASSES
from torch_tb_profiler.analyses.timeline.counters import Series, all_series, count_counters
from torch_tb_profiler.analyses.tracks import tracks as analysis
from torch_tb_profiler.analyses.tracks.extent import extent
from torch_tb_profiler.analyses.tracks.lanes import Lanes, lanes_of
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, Trace
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views.trace import event as trace_event
from torch_tb_profiler.views.trace import find as trace_find
from torch_tb_profiler.views.trace import tiles as trace_tiles
from torch_tb_profiler.views.trace.tiles import counter_id


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

    kind     steps (the ruler, drawn from `steps`) | thread | stream | instants | counter
    role     thread: main, backward, ""; stream: compute, communication, copy, annotation, sync;
             instants: memory (nothing but allocations), "";
             counter: utilization, sm_efficiency, memory, "" (of the file)
    group    index into `groups`, null for the ruler
    thread   `pid/tid` as the `thread` parameter of other views takes it
    depth    lanes, 0 for counters
    slices   "X" events and matched "B"/"E" pairs, all of them: `python_slices` are Python frames, which are
             folded unless asked for
    untimed  slices or instants that have no time and cannot be drawn
    unit     of counters: ratio, bytes or ""; `low` and `high` are the least and largest value
    """

    id: int
    kind: Literal["steps", "thread", "stream", "instants", "counter"]
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
    outside           slices with an absurd one
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

    begin_ns, end_ns  the window that shows all of it (ns since the trace's start); `counts.outside` slices
                      have absurd times and lie beyond
    classes           what the colour codes of `trace/tile?colour=class` mean
    reasons           why `steps` or a counter is missing
    """

    trace_start_ns: int
    base_ns: int
    begin_ns: int
    end_ns: int
    groups: list[TraceGroup]
    tracks: list[TraceTrack]
    counts: TraceCounts
    steps: list[TraceStep]
    steps_recorded: bool
    classes: list[str]
    python: bool
    reasons: Mapping[str, str]


def build(trace: Trace, params: TraceParams) -> TracePayload:
    """The tracks of one trace in display order."""
    window = extent(trace)
    laid = lanes_of(trace, params.python)
    groups = [TraceGroup(g.kind, g.name, g.pid, g.device) for g in analysis.tracks(trace).groups]
    series = all_series(trace)
    if any(each.group is None for each in series):
        groups.append(TraceGroup("counters", "Counters", "", None))
    found = steps(trace)
    return TracePayload(
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        begin_ns=window.begin,
        end_ns=window.end,
        groups=groups,
        tracks=_tracks(trace, laid, series, len(groups) - 1),
        counts=_counts(trace, laid, window.outside),
        steps=[
            TraceStep(name, int(found.starts[i]), int(found.ends[i] - found.starts[i]), bool(found.complete[i]))
            for i, name in enumerate(found.names)
        ],
        steps_recorded=found.recorded,
        classes=list(CLASSES),
        python=params.python,
        reasons=_reasons(trace, found.recorded, series),
    )


def _tracks(trace: Trace, laid: Lanes, series: tuple[Series, ...], last_group: int) -> list[TraceTrack]:
    listed = analysis.tracks(trace).tracks
    depths = laid.depths(len(listed)).tolist()
    made = [_slice_track(trace, i, track, depths[i]) for i, track in enumerate(listed)]
    made += [
        _counter_track(counter_id(trace, i), each, last_group if each.group is None else each.group)
        for i, each in enumerate(series)
    ]
    # A group's counters stand beneath its slices.
    made.sort(key=lambda track: -1 if track.group is None else track.group)
    return [_ruler(counter_id(trace, len(series))), *made]


def _slice_track(trace: Trace, id: int, track: analysis.Track, depth: int) -> TraceTrack:
    thread = trace.threads[track.code]
    return TraceTrack(
        id=id,
        kind=track.kind,
        role=track.role,
        name=track.name,
        group=track.group,
        thread=f"{thread.pid}/{thread.tid}",
        device=track.device,
        stream=track.stream,
        depth=depth,
        slices=track.slices,
        python_slices=track.python_slices,
        untimed=track.untimed,
        instants=track.instants,
        samples=0,
        unit="",
        low=None,
        high=None,
    )


def _counter_track(id: int, series: Series, group: int) -> TraceTrack:
    values = series.values[np.isfinite(series.values)]
    return TraceTrack(
        id=id,
        kind="counter",
        role=series.role,
        name=series.name,
        group=group,
        thread=None,
        device=series.device,
        stream=None,
        depth=0,
        slices=0,
        python_slices=0,
        untimed=0,
        instants=0,
        samples=len(series.values),
        unit=series.unit,
        low=float(values.min()) if len(values) else None,
        high=float(values.max()) if len(values) else None,
    )


def _ruler(id: int) -> TraceTrack:
    return TraceTrack(
        id=id,
        kind="steps",
        role="",
        name="Steps",
        group=None,
        thread=None,
        device=None,
        stream=None,
        depth=1,
        slices=0,
        python_slices=0,
        untimed=0,
        instants=0,
        samples=0,
        unit="",
        low=None,
        high=None,
    )


def _counts(trace: Trace, laid: Lanes, outside: int) -> TraceCounts:
    listed = analysis.tracks(trace).tracks
    return TraceCounts(
        slices=sum(track.slices for track in listed),
        python_slices=sum(track.python_slices for track in listed),
        instants=sum(track.instants for track in listed),
        counters=count_counters(trace),
        flows=analysis.count_phases(trace, analysis.FLOW_PHASES),
        untimed=sum(track.untimed for track in listed),
        outside=outside,
        side=laid.side(),
        other=analysis.count_other(trace),
    )


def _reasons(trace: Trace, recorded: bool, series: tuple[Series, ...]) -> dict[str, str]:
    reasons = {}
    if not recorded:
        reasons["steps"] = (
            "no `ProfilerStep` is recorded (call `prof.step()` in the training loop): "
            "the whole trace is shown as one step"
        )
    roles = {each.role for each in series}
    if devices(trace) and "sm_efficiency" not in roles:
        reasons["sm_efficiency"] = "the trace has no `blocks per SM` of kernels"
    if "memory" not in roles:
        reasons["memory"] = "no allocation is recorded (`profile(profile_memory=True)`)"
    return reasons


def unavailable(trace: Trace) -> str | None:
    """A timeline needs one event with a time."""
    if (trace.events.start != ABSENT).any():
        return None
    return "no event of this trace has a time (`ts`), so nothing can be placed on a timeline"


TAB = Tab(
    "Where the time goes",
    TraceView("trace", "Trace", TraceParams, TracePayload, build),
    unavailable,
    (*trace_tiles.PARTS, *trace_event.PARTS, *trace_find.PARTS),
)
