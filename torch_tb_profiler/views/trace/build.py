"""The Trace view: what runs where and when, from the entire recording down to a nanosecond."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from torch_tb_profiler.analyses.idle.device_time import DEVICE_TIME_CATEGORIES
from torch_tb_profiler.analyses.timeline.colors import CLASSES
from torch_tb_profiler.analyses.timeline.counters import CounterSeries, all_series, counter_id
from torch_tb_profiler.analyses.timeline.window import recorded_device_usage
from torch_tb_profiler.analyses.tracks.events import FLOW_PHASES, count_other, count_phases
from torch_tb_profiler.analyses.tracks.extent import extent, opening_extent
from torch_tb_profiler.analyses.tracks.lanes import LaneCounts, count_lanes
from torch_tb_profiler.analyses.tracks.python_gaps import frames_between_operators
from torch_tb_profiler.analyses.tracks.tracks import Track, device_labels, tracks
from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.steps import Steps, step_noun, steps
from torch_tb_profiler.model.trace import COMPOSER, PYTORCH, Trace
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.blame import blame_tracks
from torch_tb_profiler.views.trace.payload import (
    TraceCounts,
    TraceGroup,
    TraceParams,
    TracePayload,
    TraceStep,
    TraceTrack,
)

_RULER = TraceTrack(
    id=0,
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
"""The track of the steps, and the default values of all other tracks."""


def build(trace: Trace, params: TraceParams) -> TracePayload:
    """Build the payload of the timeline: tracks in display order, steps, and counts."""
    recording, opening = extent(trace), opening_extent(trace)
    # The lanes of these frames may need those of all slices, which are then counted in no time.
    between = () if params.python else _depths_between(trace)
    arranged, table = count_lanes(trace, params.python), steps(trace)
    groups = [TraceGroup(group.kind, group.name, group.pid, group.device) for group in tracks(trace).groups]
    series, wall = all_series(trace), trace.wall_start_ns
    if any(counter.group is None for counter in series):
        groups.append(TraceGroup("counters", "Counters", "", None))
    counts = _count_slices(trace, arranged, recording.outside)
    if is_truncated(trace.health):
        headline = truncation_sentence()
    else:
        usages, labels = recorded_device_usage(trace), device_labels(trace)
        headline = words.headline(usages, labels, counts, recording.begin, recording.end)
    return TracePayload(
        headline=headline,
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        wall_ns=wall,
        begin_ns=recording.begin,
        end_ns=recording.end,
        first_begin_ns=opening.begin,
        first_end_ns=opening.end,
        groups=groups,
        tracks=_build_tracks(trace, _find_depths(arranged, between), series, len(groups) - 1),
        counts=counts,
        steps=_build_steps(table),
        steps_recorded=table.recorded,
        classes=list(CLASSES),
        categories=list(DEVICE_TIME_CATEGORIES),
        python=params.python,
        perfetto=trace.producer in (PYTORCH, COMPOSER),  # these producers write Chrome or Perfetto traces
        reasons=words.missing_reasons(
            steps=not table.recorded,
            sm_efficiency=bool(devices(trace)) and all(counter.role != "sm_efficiency" for counter in series),
            memory=all(counter.role != "memory" for counter in series),
            trace=trace,
            clock=trace.clock if wall is None else None,
        ),
        step_noun=step_noun(trace),
    )


def _build_steps(table: Steps) -> list[TraceStep]:
    columns = table.starts.tolist(), table.ends.tolist(), table.complete.tolist()
    return [
        TraceStep(name, start, end - start, complete)
        for name, start, end, complete in zip(table.names, *columns, strict=True)
    ]


def _build_tracks(
    trace: Trace, depths: Sequence[int], series: tuple[CounterSeries, ...], last_group: int
) -> list[TraceTrack]:
    slice_tracks = tracks(trace).tracks
    rows = [_blame_track(trace, id, device) for device, id in blame_tracks(trace)]
    rows += [_build_slice_track(trace, id, track, depths[id]) for id, track in enumerate(slice_tracks)]
    rows += [
        _build_counter_track(counter_id(trace, i), counter, last_group if counter.group is None else counter.group)
        for i, counter in enumerate(series)
    ]
    # Device time is above the device's streams, counters are below the slices of their group.
    rows.sort(key=lambda track: -1 if track.group is None else track.group)
    name = f"{capitalize(step_noun(trace))}s"
    return [replace(_RULER, id=counter_id(trace, len(series)), name=name), *rows]


def _depths_between(trace: Trace) -> Iterable[tuple[int, int]]:
    """Return (track, depth) of each lane of the Python frames that are drawn between operators."""
    frames = frames_between_operators(trace)
    return zip(frames.track.tolist(), frames.depth.tolist(), strict=True)


def _find_depths(arranged: LaneCounts, between: Iterable[tuple[int, int]]) -> list[int]:
    """Return the number of lanes of each track, with those of the Python frames between operators."""
    depths = [*arranged.depths]
    for track, depth in between:
        depths[track] = max(depths[track], depth + 1)
    return depths


def _build_slice_track(trace: Trace, id: int, track: Track, depth: int) -> TraceTrack:
    thread = trace.threads[track.code]
    return replace(
        _RULER,
        id=id,
        kind=track.kind,
        role=track.role,
        name=track.name,
        group=track.group,
        thread=thread.label,
        device=track.device,
        stream=track.stream,
        depth=depth,
        slices=track.slices,
        python_slices=track.python_slices,
        untimed=track.untimed,
        instants=track.instants,
    )


def _blame_track(trace: Trace, id: int, device: int) -> TraceTrack:
    group = next(i for i, group in enumerate(tracks(trace).groups) if group.device == device)
    return replace(_RULER, id=id, kind="blame", name="Why idle", group=group, device=device)


def _build_counter_track(id: int, series: CounterSeries, group: int) -> TraceTrack:
    low, high = series.range
    return replace(
        _RULER,
        id=id,
        kind="counter",
        role=series.role,
        name=series.name,
        group=group,
        device=series.device,
        depth=0,
        samples=len(series.values),
        unit=series.unit,
        low=low,
        high=high,
    )


def _count_slices(trace: Trace, arranged: LaneCounts, outside: int) -> TraceCounts:
    slice_tracks = tracks(trace).tracks
    return TraceCounts(
        slices=sum(track.slices for track in slice_tracks),
        python_slices=sum(track.python_slices for track in slice_tracks),
        instants=sum(track.instants for track in slice_tracks),
        counters=count_phases(trace, b"C"),
        flows=count_phases(trace, FLOW_PHASES),
        untimed=sum(track.untimed for track in slice_tracks),
        outside=outside,
        side=arranged.side_slices,
        other=count_other(trace),
    )
