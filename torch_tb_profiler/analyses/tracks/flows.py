"""What an event comes from and leads to: the call that launched it, its operator, and the flows of the file.

Computed for one event at a time by looking up ids in sparse columns, so that selecting a slice takes milliseconds
whatever the size of the trace.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.events import FLOW_PHASES, event_phase_mask
from torch_tb_profiler.analyses.tracks.lanes import ancestors, lanes, position_of, slice_at
from torch_tb_profiler.base.markers import BACKWARD_FLOWS
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import external_ids
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, slice_mask
from torch_tb_profiler.model.origins.graph_nodes import FIRST_DEPENDENCY_FLOW, NODE_KEY
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace

LAUNCH = "launch"
"""Kind of the link from a host call to the device work that it launched."""

BACKWARD = "forward -> backward"
"""Kind of the link from a forward operator to its backward operator."""

DEPENDENCY = "graph dependency"
"""Kind of the link from a node of a CUDA graph to one that waits for it."""

_LAUNCH_CATEGORIES = ("ac2g", "async_cpu_to_gpu", "async_gpu", "async")
"""What files call the flows from launches to device work: the category, or the name of flows without one."""


@derived
def correlations(trace: Trace) -> tuple[Int32, Int64]:
    """Return (rows int32[k], numbers int64[k]) of the events that have a `correlation`, in file order."""
    column = trace.args.get("correlation")
    rows = np.empty(0, np.int32) if column is None else column.rows
    return rows, trace.arg_int("correlation", rows)


def launch_of(trace: Trace, row: int) -> int:
    """Return the runtime or driver call that launched a device event, NO_CODE if none was recorded."""
    rows, numbers = correlations(trace)
    number = numbers[rows == row]
    if len(number) == 0 or number[0] == ABSENT or event_kinds(trace)[row] not in DEVICE_KINDS:
        return NO_CODE
    calls = rows[numbers == number[0]]
    calls = calls[_call_mask(trace, calls)]
    return int(calls[0]) if len(calls) else NO_CODE


def launches_inside(trace: Trace, row: int) -> list[tuple[int, int]]:
    """Return (call, device event) of each launch by or inside a host slice, in file order of the device events."""
    events, (rows, numbers) = trace.events, correlations(trace)
    is_call = _call_mask(trace, rows)
    inside = (events.thread[rows] == events.thread[row]) & (events.start[rows] >= events.start[row])
    inside &= (event_ends(trace)[rows] <= event_ends(trace)[row]) & is_call & (numbers != ABSENT)
    if not inside.any():
        return []
    related = np.isin(numbers, numbers[inside])
    linked, keys = rows[related], numbers[related]
    work = np.isin(event_kinds(trace)[linked], DEVICE_KINDS) & slice_mask(trace)[linked]
    call = is_call[related]
    distinct, first = np.unique(keys[call], return_index=True)
    sources = linked[call][first[np.searchsorted(distinct, keys[work])]]
    within = np.isin(sources, rows[inside])  # a number may belong to an earlier call of another thread
    return list(zip(sources[within].tolist(), linked[work][within].tolist(), strict=True))


def _call_mask(trace: Trace, rows: Int32) -> Bool:
    mask: Bool = np.isin(event_kinds(trace)[rows], (Kind.RUNTIME, Kind.DRIVER)) & slice_mask(trace)[rows]
    return mask


def operator_of(trace: Trace, row: int) -> int:
    """Return the innermost operator around a host slice or around a device event's launch; NO_CODE if none.

    As in `model.calls.links`, an `External id` decides only where nesting finds nothing.
    """
    kind, layout = event_kinds(trace), lanes(trace, False)
    start = launch_of(trace, row) if kind[row] in DEVICE_KINDS else row
    position = position_of(trace, layout, start) if start != NO_CODE else None
    around = ancestors(layout, position) if position is not None else []
    operators = [slice_row for slice_row in around if kind[slice_row] == Kind.CPU_OP]
    if operators:
        return operators[-1]
    return _operator_by_id(trace, row) if kind[row] in DEVICE_KINDS else NO_CODE


def _operator_by_id(trace: Trace, row: int) -> int:
    rows, numbers = correlations(trace)
    ids = external_ids(trace)
    if ids[row] in (ABSENT, 0, *numbers[rows == row].tolist()):
        return NO_CODE
    same = np.flatnonzero((ids == ids[row]) & (event_kinds(trace) == Kind.CPU_OP) & slice_mask(trace))
    return int(same[0]) if len(same) else NO_CODE


class FlowEdge(msgspec.Struct, frozen=True):
    """A link from one slice to another; `kind` is LAUNCH, BACKWARD, DEPENDENCY or the flow's category."""

    kind: str
    source: int
    target: int


def flow_edges(trace: Trace, row: int) -> list[FlowEdge]:
    """Return all links of an event, each pair once, in order of the targets' time.

    An operator or annotation is linked to the device work launched inside it.
    """
    by_ends: dict[tuple[int, int], FlowEdge] = {}
    for edge in [
        *_find_launch_edges(trace, row),
        *_find_backward_edges(trace, row),
        *_find_file_edges(trace, row),
    ]:
        if edge.source != edge.target:
            by_ends.setdefault((edge.source, edge.target), edge)
    start = trace.events.start
    return sorted(by_ends.values(), key=lambda edge: (start[edge.target], start[edge.source]))


def _find_launch_edges(trace: Trace, row: int) -> list[FlowEdge]:
    if event_kinds(trace)[row] in DEVICE_KINDS:
        launch = launch_of(trace, row)
        return [FlowEdge(LAUNCH, launch, row)] if launch != NO_CODE else []
    return [FlowEdge(LAUNCH, source, target) for source, target in launches_inside(trace, row)]


def _find_backward_edges(trace: Trace, row: int) -> list[FlowEdge]:
    """Link forward and backward operators by sequence number, unless the file has flows for them."""
    if has_backward_flows(trace) or event_kinds(trace)[row] != Kind.CPU_OP or "Sequence number" not in trace.args:
        return []
    column = trace.args["Sequence number"]
    sequence, origin = trace.arg_int("Sequence number"), trace.arg_int("Fwd thread id")
    number = sequence[row]
    if number == ABSENT or number < 0:
        return []
    same = column.rows[sequence[column.rows] == number]
    same = same[(event_kinds(trace)[same] == Kind.CPU_OP) & slice_mask(trace)[same]]
    is_backward = (origin[same] != ABSENT) & (origin[same] != 0)
    forward = same[~is_backward]
    # The last forward operator with a number is the innermost: the one that autograd recorded.
    pairs = (
        [FlowEdge(BACKWARD, int(forward[-1]), target) for target in same[is_backward].tolist()]
        if len(forward)
        else []
    )
    return [edge for edge in pairs if row in (edge.source, edge.target)]


@derived
def has_backward_flows(trace: Trace) -> bool:
    """Return whether the file has flows from forward to backward operators."""
    codes = [code for code, text in enumerate(trace.strings) if text in BACKWARD_FLOWS]
    return bool(np.isin(trace.events.category[flow_rows(trace)], np.array(codes, np.int32)).any())


@derived
def flow_rows(trace: Trace) -> Int32:
    """Return int32[k], the flow events ("s", "t", "f") with an id and a time, in file order."""
    events = trace.events
    return np.flatnonzero(
        event_phase_mask(trace, FLOW_PHASES) & (events.start != ABSENT) & (events.id != ABSENT)
    ).astype(np.int32)


def _find_file_edges(trace: Trace, row: int) -> list[FlowEdge]:
    events, flows = trace.events, flow_rows(trace)
    begin, end = events.start[row], event_ends(trace)[row]
    near = flows[events.thread[flows] == events.thread[row]]
    near = near[(events.start[near] >= begin) & (events.start[near] <= end)]
    edges = []
    for flow in near.tolist():
        if bound_slice(trace, flow) != row:
            continue
        chain = _find_flow_chain(trace, flow)
        position = chain.index(flow)
        kind = _flow_kind(trace, flow)
        bound = [bound_slice(trace, member) for member in chain[max(position - 1, 0) : position + 2]]
        edges += [
            FlowEdge(kind, source, target)
            for source, target in zip(bound[:-1], bound[1:], strict=True)
            if NO_CODE not in (source, target)
        ]
    return edges


def bound_slice(trace: Trace, flow: int) -> int:
    """Return the slice that a flow event belongs to: the one that starts there, or else the one around it."""
    wanted = (Kind.CPU_OP,) if _flow_kind(trace, flow) == BACKWARD else ()
    return slice_at(trace, int(trace.events.thread[flow]), int(trace.events.start[flow]), *wanted)


def _find_flow_chain(trace: Trace, flow: int) -> list[int]:
    """Return the events of one flow (same id, category and name) in order of time."""
    events, flows = trace.events, flow_rows(trace)
    same = flows[events.id[flows] == events.id[flow]]
    same = same[(events.category[same] == events.category[flow]) & (events.name[same] == events.name[flow])]
    phase = np.searchsorted(np.frombuffer(b"fst", np.uint8), events.phase[same])
    order = np.lexsort((same, np.array([2, 0, 1])[phase], events.start[same]))
    chain: list[int] = same[order].tolist()
    # Ids are reused: a flow starts with "s" and ends before the next "s".
    position = chain.index(flow)
    begin = max((i for i in range(position + 1) if events.phase[chain[i]] == ord("s")), default=0)
    finish = min(
        (i for i in range(position + 1, len(chain)) if events.phase[chain[i]] == ord("s")), default=len(chain)
    )
    return chain[begin:finish]


def _flow_kind(trace: Trace, flow: int) -> str:
    category, name = trace.events.category[flow], trace.events.name[flow]
    text = trace.strings[category] if category >= 0 else trace.strings[name] if name >= 0 else "flow"
    if text in BACKWARD_FLOWS:
        return BACKWARD
    if text in _LAUNCH_CATEGORIES:
        between_nodes = NODE_KEY in trace.args and trace.events.id[flow] >= FIRST_DEPENDENCY_FLOW
        return DEPENDENCY if between_nodes else LAUNCH
    return text
