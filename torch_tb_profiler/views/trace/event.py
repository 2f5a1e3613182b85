"""One event of the timeline: everything the file says of it, where it stands, what is around it."""

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
from torch_tb_profiler.analyses.tracks.launches import launch_of, operator_of
from torch_tb_profiler.analyses.tracks.positions import depth_of
from torch_tb_profiler.analyses.tracks.sources import Frame, name_of, stack
from torch_tb_profiler.analyses.tracks.tracks import track_of
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.params import EventParams


class TraceRef(msgspec.Struct, frozen=True):
    """A slice or instant and where it is drawn; `depth` is null where it is not (a folded Python frame).

    short_name  of a kernel as the Kernels view has it, of all else the name
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
    """An event in full.

    headline     what it is, how long it took and in which step
    short_name   of a kernel as the Kernels view has it, of all else the name
    start_ns     since the trace's start; null if it has none
    duration_ns  as recorded, null for instants and where unknown
    self_ns      what no slice nested in it covers; null where it is not drawn
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
    stack: list[Frame]
    stack_source: str | None
    operator: TraceRef | None
    launch: TraceRef | None
    operator_name: str | None
    kernel_name: str | None
    reasons: Mapping[str, Text]


def build_event(trace: Trace, params: EventParams) -> TraceEvent:
    """One event; NotFoundError if the trace has no such row."""
    row, python = check_event(trace, params.event), params.python
    events = trace.events
    operator, launch = operator_of(trace, row), launch_of(trace, row)
    frames, source = stack(trace, row, operator)
    kind = Kind(int(event_kinds(trace)[row]))
    nearest_operator = row if kind == Kind.CPU_OP else operator
    thread, track = trace.threads[events.thread[row]], track_of(trace, row)
    duration, self_time, step = duration_of(trace, row), self_time_of(trace, row, python), step_of(trace, row)
    return TraceEvent(
        headline=words.event(kind, duration, self_time, step),
        event=row,
        name=name_of(trace, row),
        short_name=display_name(trace, row, name_of(trace, row)),
        category=trace.strings[events.category[row]] if events.category[row] >= 0 else "",
        phase=chr(events.phase[row]) if events.phase[row] else "",
        kind=kind.name.lower(),
        color=class_of(trace, row),
        thread=thread.label,
        track=track if track != NO_CODE else None,
        depth=depth_of(trace, row, python),
        start_ns=start_of(trace, row),
        duration_ns=duration,
        self_ns=self_time,
        step=step,
        args=arguments_of(trace, row),
        around=[ref(trace, ancestor, python) for ancestor in ancestors_of(trace, row, python)],
        stack=frames,
        stack_source=source,
        operator=ref(trace, operator, python) if operator != NO_CODE else None,
        launch=ref(trace, launch, python) if launch != NO_CODE else None,
        operator_name=name_of(trace, nearest_operator) if nearest_operator != NO_CODE else None,
        kernel_name=name_of(trace, row) if kind == Kind.KERNEL else None,
        reasons=words.missing_links(
            trace,
            launch=kind in DEVICE_KINDS and launch == NO_CODE,
            operator=kind in DEVICE_KINDS and operator == NO_CODE,
            stack=not frames,
        ),
    )


def check_event(trace: Trace, event: int) -> int:
    """The row, if the trace has it; NotFoundError otherwise."""
    if not 0 <= event < len(trace):
        raise NotFoundError(f"there is no event {event}", hint=f"events: 0 to {len(trace) - 1}")
    return event


def ref(trace: Trace, row: int, python: bool) -> TraceRef:
    """A slice or instant and where it is drawn."""
    return TraceRef(
        event=row,
        name=name_of(trace, row),
        short_name=display_name(trace, row, name_of(trace, row)),
        start_ns=start_of(trace, row),
        duration_ns=duration_of(trace, row),
        track=track_of(trace, row),
        depth=depth_of(trace, row, python),
        color=class_of(trace, row),
    )


class TraceModule(msgspec.Struct, frozen=True):
    """The nn.Module an event belongs to, outermost first; [] if to none, which `reason` explains.

    Asked for by itself: the first time it takes a walk over the whole trace.
    """

    event: int
    path: list[str]
    backward: bool
    reason: Text | None


def build_module(trace: Trace, params: EventParams) -> TraceModule:
    """The module of an event, of device work by its launch, of backward work by its forward operator."""
    row = check_event(trace, params.event)
    module = module_of(trace, row)
    reason = None if module.path else words.no_module(trace, module.recorded)
    return TraceModule(row, list(module.path), module.backward, reason)


PARTS = (
    TraceView("trace/event", "Event", EventParams, TraceEvent, build_event),
    TraceView("trace/module", "Module of an event", EventParams, TraceModule, build_module),
)
