"""What an event leads to and comes from: launch -> kernel, forward -> backward, any flow in the file.

Like launches, answered for one event at a time.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.events import FLOW_PHASES, of_phase
from torch_tb_profiler.analyses.tracks.launches import launch_of, launched_in
from torch_tb_profiler.analyses.tracks.positions import slice_at
from torch_tb_profiler.base.markers import BACKWARD_FLOWS
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, slice_mask
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Trace

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
    by_ends: dict[tuple[int, int], Edge] = {}
    for edge in [*_launches(trace, row), *_backward(trace, row), *_of_file(trace, row)]:
        if edge.source != edge.target:
            by_ends.setdefault((edge.source, edge.target), edge)
    start = trace.events.start
    return sorted(by_ends.values(), key=lambda edge: (start[edge.target], start[edge.source]))


def _launches(trace: Trace, row: int) -> list[Edge]:
    if event_kinds(trace)[row] in DEVICE_KINDS:
        launch = launch_of(trace, row)
        return [Edge(LAUNCH, launch, row)] if launch != NO_CODE else []
    return [Edge(LAUNCH, source, target) for source, target in launched_in(trace, row)]


def _backward(trace: Trace, row: int) -> list[Edge]:
    """By sequence number; where the file has flows for it, these say the same or more (`_of_file`)."""
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
    return np.flatnonzero(of_phase(trace, FLOW_PHASES) & (events.start != ABSENT) & (events.id != ABSENT)).astype(
        np.int32
    )


def _of_file(trace: Trace, row: int) -> list[Edge]:
    events, flows = trace.events, flow_rows(trace)
    begin, end = events.start[row], event_ends(trace)[row]
    near = flows[events.thread[flows] == events.thread[row]]
    near = near[(events.start[near] >= begin) & (events.start[near] <= end)]
    links = []
    for flow in near.tolist():
        if bind(trace, flow) != row:
            continue
        chain = _chain(trace, flow)
        at = chain.index(flow)
        kind = _kind(trace, flow)
        bound = [bind(trace, member) for member in chain[max(at - 1, 0) : at + 2]]
        links += [
            Edge(kind, source, target)
            for source, target in zip(bound[:-1], bound[1:], strict=True)
            if NO_CODE not in (source, target)
        ]
    return links


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
