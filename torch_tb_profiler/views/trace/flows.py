"""What an event is linked to."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.tracks.flows import LAUNCH, Edge, edges
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.event import TraceRef, check_event, ref
from torch_tb_profiler.views.trace.params import EventParams

MAX_EDGES = 200


class TraceEdge(msgspec.Struct, frozen=True):
    """A link from one slice to another; `kind` is "launch", "forward -> backward", or the flow's category."""

    kind: str
    source: TraceRef
    target: TraceRef
    delay_ns: int | None


class TraceFlows(msgspec.Struct, frozen=True):
    """Links of an event in order of the targets' time.

    headline        how long it waited in the queue, what it launched; empty if neither applies
    previous, next  the slices one step back and ahead; `total` links there are, the first 200 are listed
    kernels         rows of all device work launched inside a host slice, to be lit
    """

    headline: Text
    event: int
    total: int
    edges: list[TraceEdge]
    previous: list[int]
    next: list[int]
    kernels: list[int]


def build_flows(trace: Trace, params: EventParams) -> TraceFlows:
    """What an event comes from and leads to."""
    row = check_event(trace, params.event)
    links = edges(trace, row)
    listed = [_edge(trace, link, params.python) for link in links[:MAX_EDGES]]
    kernels = [link.target for link in links if link.kind == LAUNCH and link.target != row]
    queued = [edge.delay_ns for edge in listed if edge.kind == LAUNCH and edge.target.event == row]
    return TraceFlows(
        headline=words.flows(next((delay for delay in queued if delay is not None), None), len(kernels)),
        event=row,
        total=len(links),
        edges=listed,
        previous=[link.source for link in links if link.target == row],
        next=[link.target for link in links if link.source == row],
        kernels=kernels,
    )


def _edge(trace: Trace, edge: Edge, python: bool) -> TraceEdge:
    source, target = ref(trace, edge.source, python), ref(trace, edge.target, python)
    delay = None
    if source.start_ns is not None and target.start_ns is not None:
        delay = target.start_ns - source.start_ns
    return TraceEdge(edge.kind, source, target, delay)


PARTS = (TraceView("trace/flows", "Flows", EventParams, TraceFlows, build_flows),)
