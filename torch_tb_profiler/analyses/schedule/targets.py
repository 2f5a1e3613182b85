"""What can be made faster: parts of the host's time, items of the device, waits for the device.

A target is spelled `kind` or `kind:name`: operator:aten::mul, module:Linear_0, line:train.py(12): step,
call:cudaLaunchKernel, kernel:<name>, collective:all_reduce, sync:aten::item, data_loading, allocator, wait,
communication, host, device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import Cause, slice_causes
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.intervals import Intervals, covered_time, covered_time_between, merge
from torch_tb_profiler.base.markers import MODULE_PREFIX
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.communication.names import collective_of_kernel
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.schedule.blocking import WaitKind
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace, derived, name_mask

ALONE = ("data_loading", "allocator", "wait", "communication", "host", "device")
NAMED = ("operator", "module", "line", "call", "kernel", "collective", "sync")


class Target(msgspec.Struct, frozen=True):
    """A part of the program, in terms of the schedule.

    rows   int32[k]  its host slices; those inside another count once
    host   int64[p]  ns of it between each point and the one before
    items  bool[n]   its items
    device int64[n]  ns of it in each item: the duration of its own
    edges  bool[a]   its waits for the device
    """

    rows: Int32
    host: Int64
    items: Bool
    device: Int64
    edges: Bool


def target(trace: Trace, spelled: str) -> Target:
    """UsageError if it cannot be read, NotFoundError if the trace has nothing of it.

    Not kept with the trace: its columns are as long as the schedule, and there are as many targets as names.
    """
    kind, _, name = spelled.partition(":")
    if kind not in (ALONE if not name else NAMED):
        options = ", ".join([*ALONE, *(f"{each}:NAME" for each in NAMED)])
        raise UsageError(f"{spelled!r} names nothing that could be faster", hint=f"one of {options}")
    graph = schedule(trace)
    rows = np.empty(0, np.int32)
    items, edges = np.zeros(len(graph.items), np.bool_), np.zeros(len(graph.edges.target), np.bool_)
    if kind == "host":
        return Target(rows, graph.points.elapsed, items, np.zeros(len(items), np.int64), edges)
    if kind in ("device", "communication", "kernel", "collective"):
        items = _items(trace, kind, name)
    elif kind == "sync":
        edges = (graph.edges.call >= 0) & (sync_names(trace) == trace_code(trace, name))
    else:
        rows = _slices(trace, kind, name)
    if not (len(rows) or items.any() or edges.any()):
        raise NotFoundError(f"the trace has nothing of {spelled!r}")
    device = np.where(items, graph.items.end - graph.items.start, 0)
    return Target(rows, _host_time(trace, rows), items, device, edges)


def time_target(trace: Trace, during: Intervals) -> Target:
    """The time of every host thread in these intervals, on the host's clock."""
    graph = schedule(trace)
    host = np.zeros(len(graph.points), np.int64)
    for code in graph.points.threads.tolist():
        _cover(trace, host, code, during)
    return _nothing(trace, host=host)


def work_target(trace: Trace, rows: Int32, during: Intervals) -> Target:
    """What of this device work passes in these intervals, on the device's own clock."""
    graph = schedule(trace)
    items = np.isin(graph.items.row, rows)
    device = np.zeros(len(items), np.int64)
    mine = graph.items.row[items]
    device[items] = covered_time(during, trace.events.start[mine], event_ends(trace)[mine])
    return _nothing(trace, items=items, device=device)


def call_target(trace: Trace, calls: Int32) -> Target:
    """These calls and their waits for the device, as if they were not made."""
    edges = np.isin(schedule(trace).edges.call, calls)
    return _nothing(trace, rows=calls, host=_host_time(trace, calls), edges=edges)


def together(targets: Sequence[Target]) -> Target:
    """All of them as one; what belongs to several counts once where they cover the same time."""
    return Target(
        rows=np.unique(np.concatenate([each.rows for each in targets])),
        host=np.maximum.reduce([each.host for each in targets]),
        items=np.logical_or.reduce([each.items for each in targets]),
        device=np.maximum.reduce([each.device for each in targets]),
        edges=np.logical_or.reduce([each.edges for each in targets]),
    )


def _nothing(trace: Trace, **but: Any) -> Target:
    graph = schedule(trace)
    items, edges = len(graph.items), len(graph.edges.target)
    none = Target(
        rows=np.empty(0, np.int32),
        host=np.zeros(len(graph.points), np.int64),
        items=np.zeros(items, np.bool_),
        device=np.zeros(items, np.int64),
        edges=np.zeros(edges, np.bool_),
    )
    return msgspec.structs.replace(none, **but)


def trace_code(trace: Trace, name: str) -> int:
    """The code of a text; -2, which nothing has, if the trace does not know it."""
    return next((code for code, text in enumerate(trace.strings) if text == name), -2)


def _items(trace: Trace, kind: str, name: str) -> Bool:
    rows = schedule(trace).items.row
    talking = communication_kernels(trace)[rows]
    names = trace.events.name[rows]
    mine: Bool
    if kind in ("device", "kernel"):
        mine = ~talking & ((names == trace_code(trace, name)) | (kind == "device"))
    else:
        collective = name_mask(trace.strings, lambda text: collective_of_kernel(text) == name)[names]
        mine = talking & (collective | (kind == "communication"))
    return mine


def _slices(trace: Trace, kind: str, name: str) -> Int32:
    if kind in ("data_loading", "allocator", "wait"):
        return np.flatnonzero(slice_causes(trace) == Cause[kind.upper()]).astype(np.int32)
    if kind == "module":
        return _of_name(trace, MODULE_PREFIX + name, Kind.PYTHON)
    if kind == "line":
        return _of_name(trace, name, Kind.PYTHON)
    if kind == "call":
        return _of_name(trace, name, Kind.RUNTIME, Kind.DRIVER)
    return _of_name(trace, name, Kind.CPU_OP, Kind.ANNOTATION)


def _of_name(trace: Trace, name: str, *of: Kind) -> Int32:
    rows = rows_of_kind(trace, *of)
    named: Int32 = rows[trace.events.name[rows] == trace_code(trace, name)]
    return named


def _host_time(trace: Trace, rows: Int32) -> Int64:
    points = schedule(trace).points
    time = np.zeros(len(points), np.int64)
    begin, end, thread = trace.events.start[rows], event_ends(trace)[rows], trace.events.thread[rows]
    for code in points.threads.tolist():
        mine = thread == code
        if mine.any():
            _cover(trace, time, code, merge(begin[mine], end[mine]))
    return time


def _cover(trace: Trace, time: Int64, thread: int, during: Intervals) -> None:
    """Puts ns of the intervals between each point of a thread and the one before into `time`, int64[p]."""
    points = schedule(trace).points
    slot = points.thread_index(thread)
    low, high = points.bounds[slot], points.bounds[slot + 1]
    time[low + 1 : high] = covered_time_between(during, points.time[low:high])


@derived
def sync_names(trace: Trace) -> Int32:
    """int32[a]: of each wait for the device the name of the operator around its call, else that of the call."""
    graph = schedule(trace)
    call = graph.edges.call
    around = enclosing_operators(trace)[call]
    row = np.where((around >= 0) & (event_kinds(trace)[around] == Kind.CPU_OP), around, call)
    names = np.where(call >= 0, trace.events.name[row], -1).astype(np.int32)
    queue = np.isin(call, graph.calls.call[graph.calls.kind == WaitKind.QUEUE])
    names[queue] = -1  # a full queue is no synchronization
    return names
