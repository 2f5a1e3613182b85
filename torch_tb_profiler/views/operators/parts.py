"""What the operator table asks for when a row is chosen: its stacks and how its durations are spread."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.operators.table import Filter, GroupBy, Table, operator_table
from torch_tb_profiler.analyses.shared.call_stacks import distinct_stacks, has_stacks, merge_stacks
from torch_tb_profiler.analyses.tracks.sources import Frame, frame
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import NO_CODE, Int64, Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.instances import Instances, instances


class OperatorsParams(msgspec.Struct, frozen=True):
    """`group_by`: name, shape, signature (shapes, dtypes, strides), module or annotation; the rest are filters.

    thread  "pid/tid"
    phase   forward, backward, optimizer or data
    kernel  only operators that launched device work of this name
    """

    group_by: GroupBy = "name"
    step: str = ""
    thread: str = ""
    phase: str = ""
    kernel: str = ""


class RowParams(msgspec.Struct, frozen=True):
    """A row of the table as it is grouped and filtered: `event` of it; `time` is host or device."""

    event: int
    group_by: GroupBy = "name"
    step: str = ""
    thread: str = ""
    phase: str = ""
    kernel: str = ""
    time: Literal["host", "device"] = "host"


def _row(trace: Trace, params: RowParams) -> tuple[Table, Int64]:
    """The table and the positions of the row's calls in it."""
    kept = Filter(params.step, params.thread, params.phase, params.kernel)
    table = operator_table(trace, params.group_by, kept)
    at = np.flatnonzero(table.rows == params.event)
    if len(at) == 0:
        raise NotFoundError(f"event {params.event} is no operator call of this table")
    return table, table.groups.members(int(table.groups.which[at[0]]))


class OperatorStack(msgspec.Struct, frozen=True):
    """A distinct stack, innermost frame first, and the calls made from it; times in ns."""

    frames: list[Frame]
    calls: int
    host_self_ns: int
    host_total_ns: int
    device_self_ns: int
    device_total_ns: int
    event: int


class StackFrame(msgspec.Struct, frozen=True):
    """A frame of all stacks merged; `parent` is the index of the frame around it, null for outermost ones."""

    text: str
    file: str | None
    line: int | None
    function: str | None
    parent: int | None
    calls: int
    host_ns: int
    device_ns: int


class OperatorStacks(msgspec.Struct, frozen=True):
    """Stacks of one row, most time first, and all of them as one tree (host and device total time).

    bare    calls without a stack; they are in neither
    reason  why there are none
    """

    name: str
    stacks: list[OperatorStack]
    frames: list[StackFrame]
    bare: int
    reason: str | None


def build_stacks(trace: Trace, params: RowParams) -> OperatorStacks:
    """NotFoundError if the event is no call in the table."""
    table, members = _row(trace, params)
    found, calls = table.found, table.calls[members]
    rows = found.rows[calls]
    stacks = distinct_stacks(trace, rows)

    def sums(column: Int64) -> Int64:
        total = np.zeros(len(stacks.frames), np.int64)
        np.add.at(total, stacks.which, column[calls])
        return total

    counts = np.bincount(stacks.which, minlength=len(stacks.frames))
    columns = [sums(c) for c in (found.host_self, found.host_total, found.device_self, found.device_total)]
    first = np.full(len(stacks.frames), len(rows), np.int64)
    np.minimum.at(first, stacks.which, np.arange(len(rows)))
    order = np.lexsort((-columns[1], -columns[3] if params.time == "device" else -columns[1]))
    listed = [i for i in order.tolist() if stacks.frames[i]]
    merged = merge_stacks(
        [stacks.frames[i] for i in listed], counts[listed], columns[1][listed], columns[3][listed]
    )
    none = "no call stacks are recorded (`profile(with_stack=True)`)"
    return OperatorStacks(
        name=trace.strings[trace.events.name[params.event]],
        stacks=[
            OperatorStack(
                [frame(text) for text in stacks.frames[i]],
                calls=int(counts[i]),
                host_self_ns=int(columns[0][i]),
                host_total_ns=int(columns[1][i]),
                device_self_ns=int(columns[2][i]),
                device_total_ns=int(columns[3][i]),
                event=int(rows[first[i]]),
            )
            for i in listed
        ],
        frames=[_merged(each) for each in merged],
        bare=stacks.bare,
        reason=None if listed else none if not has_stacks(trace) else "no frame is around these calls",
    )


def _merged(each: Any) -> StackFrame:
    told = frame(each.text)
    parent = None if each.parent == NO_CODE else each.parent
    return StackFrame(
        told.text, told.file, told.line, told.function, parent, each.calls, each.host_ns, each.device_ns
    )


def build_instances(trace: Trace, params: RowParams) -> Instances:
    """How long the calls of a row take; by device time only those that launched some count."""
    table, members = _row(trace, params)
    calls = table.calls[members]
    column = table.found.host_total if params.time == "host" else table.found.device_total
    if params.time == "device":
        calls = calls[column[calls] > 0]
    return instances(trace, table.found.rows[calls], column[calls])


PARTS = (
    TraceView("operators/stacks", "Call stacks", RowParams, OperatorStacks, build_stacks),
    TraceView("operators/instances", "Durations", RowParams, Instances, build_instances),
)
