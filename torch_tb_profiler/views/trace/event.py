"""One event of the timeline: everything the file says of it, where it stands, what it is linked to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.timeline.colors import classes
from torch_tb_profiler.analyses.tracks.flows import LAUNCH, Edge, edges, launch_of, operator_of
from torch_tb_profiler.analyses.tracks.lanes import lanes_of
from torch_tb_profiler.analyses.tracks.places import ancestors, find, self_time
from torch_tb_profiler.analyses.tracks.sources import Frame, name_of, stack
from torch_tb_profiler.analyses.tracks.tracks import all_slices, track_of
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.kinds import DEVICE, Kind, kinds
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace
from torch_tb_profiler.view import TraceView

MAX_EDGES = 200


class TraceRef(msgspec.Struct, frozen=True):
    """A slice or instant and its place; `depth` is null where it is not drawn (a folded Python frame)."""

    event: int
    name: str
    start_ns: int | None
    duration_ns: int | None
    track: int
    depth: int | None
    colour: int


class EventParams(msgspec.Struct, frozen=True):
    """`event`: row number in the trace; `python`: whether Python frames are unfolded."""

    event: int
    python: bool = False


class TraceEvent(msgspec.Struct, frozen=True):
    """An event in full.

    start_ns     since the trace's start; null if it has none
    duration_ns  as recorded, null for instants and where unknown
    self_ns      what no slice nested in it covers; null where it is not drawn
    track        null for what is no slice and no instant (metadata, flow and counter events)
    colour       index into TracePayload.classes
    step         name of the step it begins in
    args         all of them, decoded
    around       slices around it, outermost first
    stack        frames, innermost first; `stack_source` is "call stack" or "python frames"
    operator, launch  of device work and host calls: the operator, the call that launched it
    operator_name, kernel_name  the row of the Operators and Kernels view it belongs to
    reasons      field -> why it is null
    """

    event: int
    name: str
    category: str
    phase: str
    kind: str
    colour: int
    thread: str
    track: int | None
    depth: int | None
    start_ns: int | None
    duration_ns: int | None
    self_ns: int | None
    step: str | None
    args: Mapping[str, Any]
    around: list[TraceRef]
    stack: list[Frame]
    stack_source: str | None
    operator: TraceRef | None
    launch: TraceRef | None
    operator_name: str | None
    kernel_name: str | None
    reasons: Mapping[str, str]


def build_event(trace: Trace, params: EventParams) -> TraceEvent:
    """One event; NotFoundError if the trace has no such row."""
    row = check_event(trace, params.event)
    events = trace.events
    laid = lanes_of(trace, params.python)
    place = find(trace, laid, row)
    operator, launch = operator_of(trace, row), launch_of(trace, row)
    frames, source = stack(trace, row, operator)
    kind = Kind(int(kinds(trace)[row]))
    own = row if kind == Kind.CPU_OP else operator
    thread = trace.threads[events.thread[row]]
    track = int(track_of(trace, np.array([row]))[0])
    return TraceEvent(
        event=row,
        name=name_of(trace, row),
        category=trace.strings[events.category[row]] if events.category[row] >= 0 else "",
        phase=chr(events.phase[row]) if events.phase[row] else "",
        kind=kind.name.lower(),
        colour=int(classes(trace)[row]),
        thread=f"{thread.pid}/{thread.tid}",
        track=track if track != NO_CODE else None,
        depth=int(laid.depth[place.lane]) if place is not None else None,
        start_ns=known(events.start[row]),
        duration_ns=known(events.duration[row]),
        self_ns=self_time(laid, place) if place is not None and all_slices(trace)[row] else None,
        step=_step(trace, row),
        args=arguments(trace, row),
        around=[ref(trace, each, params.python) for each in (ancestors(laid, place) if place else [])],
        stack=frames,
        stack_source=source,
        operator=ref(trace, operator, params.python) if operator != NO_CODE else None,
        launch=ref(trace, launch, params.python) if launch != NO_CODE else None,
        operator_name=name_of(trace, own) if own != NO_CODE else None,
        kernel_name=name_of(trace, row) if kind == Kind.KERNEL else None,
        reasons=_reasons(kind, launch, operator, frames),
    )


def check_event(trace: Trace, event: int) -> int:
    """The row, if the trace has it; NotFoundError otherwise."""
    if not 0 <= event < len(trace):
        raise NotFoundError(f"there is no event {event}", hint=f"events: 0 to {len(trace) - 1}")
    return event


def known(value: Any) -> int | None:
    """None for ABSENT."""
    return None if value == ABSENT else int(value)


def ref(trace: Trace, row: int, python: bool) -> TraceRef:
    """A slice or instant and its place."""
    laid = lanes_of(trace, python)
    place = find(trace, laid, row)
    return TraceRef(
        row,
        name_of(trace, row),
        known(trace.events.start[row]),
        known(trace.events.duration[row]),
        int(track_of(trace, np.array([row]))[0]),
        int(laid.depth[place.lane]) if place is not None else None,
        int(classes(trace)[row]),
    )


def arguments(trace: Trace, row: int) -> dict[str, Any]:
    """All arguments of an event, decoded; keys of the event itself begin with "@"."""
    found: dict[str, Any] = {}
    for key, column in trace.args.items():
        at = int(np.searchsorted(column.rows, row))
        if at == len(column.rows) or column.rows[at] != row:
            continue
        value = column.values[at].item()
        if column.kind == "text":
            value = column.dictionary[value]
        elif column.kind == "json":
            value = _decoded(column.dictionary[value])
        found[key] = value
    return found


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _step(trace: Trace, row: int) -> str | None:
    found, start = steps(trace), trace.events.start[row]
    inside = np.flatnonzero((found.starts <= start) & (start < found.ends))
    return found.names[int(inside[0])] if found.recorded and len(inside) else None


def _reasons(kind: Kind, launch: int, operator: int, frames: list[Frame]) -> dict[str, str]:
    reasons = {}
    if kind in DEVICE and launch == NO_CODE:
        reasons["launch"] = "no runtime or driver call with the same `correlation` is recorded"
    if kind in DEVICE and operator == NO_CODE:
        reasons["operator"] = "no operator is around the launch"
    if not frames:
        reasons["stack"] = "no Python source is recorded here (`profile(with_stack=True)`)"
    return reasons


class TraceEdge(msgspec.Struct, frozen=True):
    """A link from one slice to another; `kind` is "launch", "forward -> backward", or the flow's category."""

    kind: str
    source: TraceRef
    target: TraceRef
    delay_ns: int | None


class TraceFlows(msgspec.Struct, frozen=True):
    """Links of an event in order of the targets' time.

    previous, next  the slices one step back and ahead; `total` links there are, the first 200 are listed
    kernels         rows of all device work launched inside a host slice, to be lit
    """

    event: int
    total: int
    edges: list[TraceEdge]
    previous: list[int]
    next: list[int]
    kernels: list[int]


def build_flows(trace: Trace, params: EventParams) -> TraceFlows:
    """What an event comes from and leads to."""
    row = check_event(trace, params.event)
    found = edges(trace, row)
    return TraceFlows(
        event=row,
        total=len(found),
        edges=[_edge(trace, edge, params.python) for edge in found[:MAX_EDGES]],
        previous=[edge.source for edge in found if edge.target == row],
        next=[edge.target for edge in found if edge.source == row],
        kernels=[edge.target for edge in found if edge.kind == LAUNCH and edge.target != row],
    )


def _edge(trace: Trace, edge: Edge, python: bool) -> TraceEdge:
    source, target = ref(trace, edge.source, python), ref(trace, edge.target, python)
    delay = None
    if source.start_ns is not None and target.start_ns is not None:
        delay = target.start_ns - source.start_ns
    return TraceEdge(edge.kind, source, target, delay)


class TraceModule(msgspec.Struct, frozen=True):
    """The nn.Module an event belongs to, outermost first; [] if to none, which `reason` explains.

    Asked for by itself: the first time it takes a walk over the whole trace.
    """

    event: int
    path: list[str]
    backward: bool
    reason: str | None


def build_module(trace: Trace, params: EventParams) -> TraceModule:
    """The module of an event, of device work by its launch, of backward work by its forward operator."""
    row = check_event(trace, params.event)
    found = modules(trace)
    path = list(found.path(int(found.code[row])))
    reason = None
    if not found.names:
        reason = "no nn.Module is recorded (`profile(with_stack=True)`)"
    elif not path:
        reason = "this runs outside of every module"
    return TraceModule(row, path, bool(found.backward[row]), reason)


PARTS = (
    TraceView("trace/event", "Event", EventParams, TraceEvent, build_event),
    TraceView("trace/module", "Module of an event", EventParams, TraceModule, build_module),
    TraceView("trace/flows", "Flows", EventParams, TraceFlows, build_flows),
)
