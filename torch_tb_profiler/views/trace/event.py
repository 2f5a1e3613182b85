"""One event of the timeline: what the file records about it, where it is drawn, and what it is linked to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from torch_tb_profiler.analyses.timeline.colors import class_of
from torch_tb_profiler.analyses.timeline.event import (
    ancestors_of,
    arguments_of,
    duration_of,
    module_of,
    self_time_of,
    start_of,
    step_of,
)
from torch_tb_profiler.analyses.tracks.flows import LAUNCH, FlowEdge, flow_edges, launch_of, operator_of
from torch_tb_profiler.analyses.tracks.python_gaps import drawn_depth
from torch_tb_profiler.analyses.tracks.sources import SourceFrame, call_stack, name_of
from torch_tb_profiler.analyses.tracks.tracks import track_of
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_kinds
from torch_tb_profiler.model.steps import step_noun
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words

MAX_EDGES = 200
"""Most links of an event in one answer."""


class EventParams(msgspec.Struct, frozen=True):
    """`event`: row number in the trace; `python`: whether Python frames are unfolded."""

    event: int
    python: bool = False


class TraceRef(msgspec.Struct, frozen=True):
    """A slice or instant and where it is drawn; `depth` is null where it is not (a folded Python frame).

    short_name  for a kernel its name in the Kernels view, else `name`
    """

    event: int
    name: str
    short_name: str
    start_ns: int | None
    duration_ns: int | None
    track: int
    depth: int | None
    color: int


class TraceEvent(msgspec.Struct, frozen=True):
    """Everything about one event.

    headline     what it is, how long it took, and in which step
    short_name   of a kernel as the Kernels view has it, of all else the name
    start_ns     since the trace's start; null if it has none
    duration_ns  as recorded, null for instants and where unknown
    self_ns      time that no nested slice covers; null if the event isn't drawn
    track        null for what is no slice and no instant (metadata, flow and counter events)
    color        index into TracePayload.classes
    step         name of the step it begins in
    args         all of them, decoded
    around       slices around it, outermost first
    stack        frames, innermost first; `stack_source` is "call stack" or "python frames"
    operator, launch  of device work and host calls: the operator, the call that launched it
    operator_name, kernel_name  the row of the Operators and Kernels view it belongs to
    reasons      field -> why it is null
    """

    headline: Text
    event: int
    name: str
    short_name: str
    category: str
    phase: str
    kind: str
    color: int
    thread: str
    track: int | None
    depth: int | None
    start_ns: int | None
    duration_ns: int | None
    self_ns: int | None
    step: str | None
    args: Mapping[str, Any]
    around: list[TraceRef]
    stack: list[SourceFrame]
    stack_source: str | None
    operator: TraceRef | None
    launch: TraceRef | None
    operator_name: str | None
    kernel_name: str | None
    reasons: Mapping[str, Text]


def build_event(trace: Trace, params: EventParams) -> TraceEvent:
    """Build the details of one event. Raise NotFoundError if the trace has no such row."""
    row, python = _check_event(trace, params.event), params.python
    events = trace.events
    operator, launch = operator_of(trace, row), launch_of(trace, row)
    frames, source = call_stack(trace, row, operator)
    kind = Kind(int(event_kinds(trace)[row]))
    nearest_operator = row if kind == Kind.CPU_OP else operator
    thread, track = trace.threads[events.thread[row]], track_of(trace, row)
    duration, self_time, step = duration_of(trace, row), self_time_of(trace, row, python), step_of(trace, row)
    return TraceEvent(
        headline=words.event(kind, duration, self_time, step, step_noun(trace)),
        event=row,
        name=name_of(trace, row),
        short_name=display_name(trace, row, name_of(trace, row)),
        category=trace.strings[events.category[row]] if events.category[row] >= 0 else "",
        phase=chr(events.phase[row]) if events.phase[row] else "",
        kind=kind.name.lower(),
        color=class_of(trace, row),
        thread=thread.label,
        track=track if track != NO_CODE else None,
        depth=drawn_depth(trace, row, python),
        start_ns=start_of(trace, row),
        duration_ns=duration,
        self_ns=self_time,
        step=step,
        args=arguments_of(trace, row),
        around=[event_ref(trace, ancestor, python) for ancestor in ancestors_of(trace, row, python)],
        stack=frames,
        stack_source=source,
        operator=event_ref(trace, operator, python) if operator != NO_CODE else None,
        launch=event_ref(trace, launch, python) if launch != NO_CODE else None,
        operator_name=name_of(trace, nearest_operator) if nearest_operator != NO_CODE else None,
        kernel_name=name_of(trace, row) if kind == Kind.KERNEL else None,
        reasons=words.missing_links(
            trace,
            launch=kind in DEVICE_KINDS and launch == NO_CODE,
            operator=kind in DEVICE_KINDS and operator == NO_CODE,
            stack=not frames,
            is_replayed=kind in DEVICE_KINDS and launch != NO_CODE and "GraphLaunch" in name_of(trace, launch),
        ),
    )


def _check_event(trace: Trace, event: int) -> int:
    """Return the row of an event; raise NotFoundError if the trace doesn't have it."""
    if not 0 <= event < len(trace):
        raise NotFoundError(f"there is no event {event}", hint=f"events: 0 to {len(trace) - 1}")
    return event


def event_ref(trace: Trace, row: int, python: bool) -> TraceRef:
    """Return a slice or instant and where it is drawn."""
    return TraceRef(
        event=row,
        name=name_of(trace, row),
        short_name=display_name(trace, row, name_of(trace, row)),
        start_ns=start_of(trace, row),
        duration_ns=duration_of(trace, row),
        track=track_of(trace, row),
        depth=drawn_depth(trace, row, python),
        color=class_of(trace, row),
    )


class TraceModule(msgspec.Struct, frozen=True):
    """The nn.Module an event belongs to, outermost first; [] if to none, which `reason` explains.

    Requested separately, because the first time it takes a walk over the entire trace.
    """

    event: int
    path: list[str]
    backward: bool
    reason: Text | None


def build_module(trace: Trace, params: EventParams) -> TraceModule:
    """Build the module of an event: for device work by its launch, for backward work by its forward operator."""
    row = _check_event(trace, params.event)
    module = module_of(trace, row)
    reason = None if module.path else words.missing_module(trace, module.recorded)
    return TraceModule(row, list(module.path), module.backward, reason)


class TraceEdge(msgspec.Struct, frozen=True):
    """A link from one slice to another; `kind` is "launch", "forward -> backward", or the flow's category."""

    kind: str
    source: TraceRef
    target: TraceRef
    delay_ns: int | None


class TraceFlows(msgspec.Struct, frozen=True):
    """Links of an event in order of the targets' time.

    headline        how long it waited in the queue, what it launched; empty if neither applies
    previous, next  the slices one link before and after
    total           number of links, of which the first 200 are listed
    kernels         rows of all device work launched inside a host slice, to be highlighted
    """

    headline: Text
    event: int
    total: int
    edges: list[TraceEdge]
    previous: list[int]
    next: list[int]
    kernels: list[int]


def build_flows(trace: Trace, params: EventParams) -> TraceFlows:
    """Build the links of an event: what it comes from and what it leads to."""
    row = _check_event(trace, params.event)
    edges = flow_edges(trace, row)
    listed = [_build_edge(trace, edge, params.python) for edge in edges[:MAX_EDGES]]
    kernels = [edge.target for edge in edges if edge.kind == LAUNCH and edge.target != row]
    queue_delays = [edge.delay_ns for edge in listed if edge.kind == LAUNCH and edge.target.event == row]
    return TraceFlows(
        headline=words.flows(next((delay for delay in queue_delays if delay is not None), None), len(kernels)),
        event=row,
        total=len(edges),
        edges=listed,
        previous=[edge.source for edge in edges if edge.target == row],
        next=[edge.target for edge in edges if edge.source == row],
        kernels=kernels,
    )


def _build_edge(trace: Trace, edge: FlowEdge, python: bool) -> TraceEdge:
    source, target = event_ref(trace, edge.source, python), event_ref(trace, edge.target, python)
    delay = None
    if source.start_ns is not None and target.start_ns is not None:
        delay = target.start_ns - source.start_ns
    return TraceEdge(edge.kind, source, target, delay)


PARTS = (
    TraceView("trace/event", "Event", EventParams, TraceEvent, build_event),
    TraceView("trace/module", "Module of an event", EventParams, TraceModule, build_module),
    TraceView("trace/flows", "Flows", EventParams, TraceFlows, build_flows),
)
