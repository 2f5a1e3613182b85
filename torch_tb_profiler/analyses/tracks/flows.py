"""What an event leads to and comes from: launch -> kernel, forward -> backward, any flow in the file.

Answered for one event at a time, by looking up ids in sparse columns, so that selecting a slice costs
milliseconds whatever the size of the trace.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.analyses.tracks.places import ancestors, find, slice_at
from torch_tb_profiler.base.markers import BACKWARD_FLOWS
from torch_tb_profiler.model.calls.links import external_ids
from torch_tb_profiler.model.kinds import DEVICE, Kind, ends, is_slice, kinds
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, derived

LAUNCH = "launch"
BACKWARD = "forward -> backward"
_LAUNCH_NAMES = ("ac2g", "async_cpu_to_gpu", "async_gpu", "async")


class Edge(msgspec.Struct, frozen=True):
    """From one slice to another; `kind` is LAUNCH, BACKWARD or the category of the flow in the file."""

    kind: str
    source: int
    target: int


def edges(trace: Trace, row: int) -> list[Edge]:
    """Everything an event is linked to, each pair once, in order of the targets' time.

    An operator or annotation is linked to the device work launched inside of it.
    """
    found: dict[tuple[int, int], Edge] = {}
    for edge in [*_launches(trace, row), *_backward(trace, row), *_of_file(trace, row)]:
        if edge.source != edge.target:
            found.setdefault((edge.source, edge.target), edge)
    start = trace.events.start
    return sorted(found.values(), key=lambda edge: (start[edge.target], start[edge.source]))


@derived
def correlations(trace: Trace) -> tuple[Int32, Int64]:
    """(int32[k] rows, int64[k] numbers): the events that carry a `correlation`, in file order."""
    column = trace.args.get("correlation")
    rows = np.empty(0, np.int32) if column is None else column.rows
    return rows, trace.arg_int("correlation", rows)


def launch_of(trace: Trace, row: int) -> int:
    """The runtime or driver call that launched a device event; NO_CODE if none is recorded."""
    rows, numbers = correlations(trace)
    number = numbers[rows == row]
    if len(number) == 0 or number[0] == ABSENT or kinds(trace)[row] not in DEVICE:
        return NO_CODE
    calls = rows[numbers == number[0]]
    calls = calls[_is_call(trace, calls)]
    return int(calls[0]) if len(calls) else NO_CODE


def launched_in(trace: Trace, row: int) -> list[Edge]:
    """From each call inside a host slice (or itself) to the device events it launched, in file order."""
    events, (rows, numbers) = trace.events, correlations(trace)
    inside = (events.thread[rows] == events.thread[row]) & (events.start[rows] >= events.start[row])
    inside &= (ends(trace)[rows] <= ends(trace)[row]) & _is_call(trace, rows) & (numbers != ABSENT)
    if not inside.any():
        return []
    launched = np.isin(numbers, numbers[inside])
    targets, wanted = rows[launched], numbers[launched]
    work = np.isin(kinds(trace)[targets], DEVICE) & is_slice(trace)[targets]
    calls, keys = rows[launched][_is_call(trace, targets)], wanted[_is_call(trace, targets)]
    distinct, first = np.unique(keys, return_index=True)
    sources = calls[first[np.searchsorted(distinct, wanted[work])]]
    within = np.isin(sources, rows[inside])  # a number may belong to an earlier call of another thread
    pairs = zip(sources[within].tolist(), targets[work][within].tolist(), strict=True)
    return [Edge(LAUNCH, source, target) for source, target in pairs]


def _is_call(trace: Trace, rows: Int32) -> Bool:
    found: Bool = np.isin(kinds(trace)[rows], (Kind.RUNTIME, Kind.DRIVER)) & is_slice(trace)[rows]
    return found


def _launches(trace: Trace, row: int) -> list[Edge]:
    if kinds(trace)[row] in DEVICE:
        launch = launch_of(trace, row)
        return [Edge(LAUNCH, launch, row)] if launch != NO_CODE else []
    return launched_in(trace, row)


def _backward(trace: Trace, row: int) -> list[Edge]:
    """By sequence number; where the file has flows for it, these say the same or more (`_of_file`)."""
    if has_backward_flows(trace) or kinds(trace)[row] != Kind.CPU_OP or "Sequence number" not in trace.args:
        return []
    column = trace.args["Sequence number"]
    sequence, origin = trace.arg_int("Sequence number"), trace.arg_int("Fwd thread id")
    number = sequence[row]
    if number == ABSENT or number < 0:
        return []
    same = column.rows[sequence[column.rows] == number]
    same = same[(kinds(trace)[same] == Kind.CPU_OP) & is_slice(trace)[same]]
    is_backward = (origin[same] != ABSENT) & (origin[same] != 0)
    forward = same[~is_backward]
    # The last forward operator with a number is the innermost: the one that autograd recorded.
    pairs = (
        [Edge(BACKWARD, int(forward[-1]), target) for target in same[is_backward].tolist()] if len(forward) else []
    )
    return [edge for edge in pairs if row in (edge.source, edge.target)]


@derived
def has_backward_flows(trace: Trace) -> bool:
    """Whether the file draws flows from forward to backward operators."""
    codes = [code for code, text in enumerate(trace.strings) if text in BACKWARD_FLOWS]
    return bool(np.isin(trace.events.category[flow_rows(trace)], np.array(codes, np.int32)).any())


@derived
def flow_rows(trace: Trace) -> Int32:
    """int32[k]: flow events ("s", "t", "f") with an id and a time, in file order."""
    events = trace.events
    flow = np.isin(events.phase, np.frombuffer(b"stf", np.uint8))
    return np.flatnonzero(flow & (events.start != ABSENT) & (events.id != ABSENT)).astype(np.int32)


def _of_file(trace: Trace, row: int) -> list[Edge]:
    events, flows = trace.events, flow_rows(trace)
    begin, end = events.start[row], ends(trace)[row]
    near = flows[(events.thread[flows] == events.thread[row])]
    near = near[(events.start[near] >= begin) & (events.start[near] <= end)]
    found = []
    for flow in near.tolist():
        if bind(trace, flow) != row:
            continue
        chain = _chain(trace, flow)
        at = chain.index(flow)
        kind = _kind(trace, flow)
        bound = [bind(trace, each) for each in chain[max(at - 1, 0) : at + 2]]
        found += [
            Edge(kind, source, target)
            for source, target in zip(bound[:-1], bound[1:], strict=True)
            if NO_CODE not in (source, target)
        ]
    return found


def bind(trace: Trace, flow: int) -> int:
    """The slice that a flow event stands on: the one that begins there, else the one around it."""
    wanted = (Kind.CPU_OP,) if _kind(trace, flow) == BACKWARD else ()
    return slice_at(trace, int(trace.events.thread[flow]), int(trace.events.start[flow]), *wanted)


def _chain(trace: Trace, flow: int) -> list[int]:
    """The flow events of one flow in order of time: same id, same category and name."""
    events, flows = trace.events, flow_rows(trace)
    same = flows[events.id[flows] == events.id[flow]]
    same = same[(events.category[same] == events.category[flow]) & (events.name[same] == events.name[flow])]
    phase = np.searchsorted(np.frombuffer(b"fst", np.uint8), events.phase[same])
    order = np.lexsort((same, np.array([2, 0, 1])[phase], events.start[same]))
    chain: list[int] = same[order].tolist()
    # An id may be used again: a flow begins with "s" and ends before the next.
    at = chain.index(flow)
    begin = max((i for i in range(at + 1) if events.phase[chain[i]] == ord("s")), default=0)
    finish = min((i for i in range(at + 1, len(chain)) if events.phase[chain[i]] == ord("s")), default=len(chain))
    return chain[begin:finish]


def _kind(trace: Trace, flow: int) -> str:
    category, name = trace.events.category[flow], trace.events.name[flow]
    text = trace.strings[category] if category >= 0 else trace.strings[name] if name >= 0 else "flow"
    if text in BACKWARD_FLOWS:
        return BACKWARD
    return LAUNCH if text in _LAUNCH_NAMES else text


def operator_of(trace: Trace, row: int) -> int:
    """The innermost operator around a host slice, or around the launch of a device event; NO_CODE if none.

    As `model.links`: an `External id` decides only where nesting finds nothing.
    """
    what = kinds(trace)
    start = launch_of(trace, row) if what[row] in DEVICE else row
    place = find(trace, lanes(trace), start) if start != NO_CODE else None
    around = ancestors(lanes(trace), place) if place is not None else []
    operators = [each for each in around if what[each] == Kind.CPU_OP]
    if operators:
        return operators[-1]
    return _operator_by_id(trace, row) if what[row] in DEVICE else NO_CODE


def _operator_by_id(trace: Trace, row: int) -> int:
    rows, numbers = correlations(trace)
    ids = external_ids(trace)
    if ids[row] in (ABSENT, 0, *numbers[rows == row].tolist()):
        return NO_CODE
    same = np.flatnonzero((ids == ids[row]) & (kinds(trace) == Kind.CPU_OP) & is_slice(trace))
    return int(same[0]) if len(same) else NO_CODE
