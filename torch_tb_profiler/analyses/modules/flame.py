"""A flame graph of the model: modules, below each its operators and its backward pass, by host or device time."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.modules.times import (
    NEVER_CALLED,
    ModuleOperators,
    first_calls,
    module_operators,
    module_times,
    subtree_sums,
)
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import event_lengths
from torch_tb_profiler.model.modules import Modules
from torch_tb_profiler.model.origins.compiled import has_indirect_kernels
from torch_tb_profiler.model.origins.origins import origin_positions, origins
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

FlameKind = Literal["module", "operator", "backward"]


class FlameFrames(msgspec.Struct, frozen=True):
    """The frames of a flame graph, parents before children. What the children don't cover is self time.

    parent  int32[k]  position of the frame around it, NO_CODE for the outermost
    value   int64[k]  ns, including all frames inside
    place   int32[k]  the module's code; its operators and its backward pass have the same
    event   int64[k]  row of the trace to show: the longest of the frame's events
    first   int64[k]  ns of the start of its first event; NEVER_CALLED if none is recorded
    """

    names: tuple[str, ...]
    kinds: tuple[FlameKind, ...]
    parent: Int32
    value: Int64
    place: Int32
    event: Int64
    first: Int64


def build_module_flame(trace: Trace, model: Modules, time: Literal["host", "device"]) -> FlameFrames:
    """Build the frames of all places with time; no time is in two of them, so that widths add up."""
    operators = module_operators(trace, model)
    times = module_times(trace, model, operators)
    if time == "host":
        rows, values = operators.rows, operators.host_ns
    else:
        rows, values = _sum_operator_device_times(trace, model, operators)
    backward = times.backward_host_self if time == "host" else times.backward_self
    forward = times.host_self + times.operators_time if time == "host" else times.forward_self
    builder, start, first = _FlameBuilder(), trace.events.start, first_calls(trace, model)
    total = subtree_sums(forward + backward, model.parent)
    position: dict[int, int] = {NO_CODE: NO_CODE}
    for code in range(len(model.names)):
        if total[code] > 0:
            above = position[int(model.parent[code])]
            event = int(times.event[code])
            position[code] = builder.add(model.names[code], "module", above, total[code], code, event, first[code])
    names = len(trace.strings) + 1  # with none
    keys = model.code[rows].astype(np.int64) * names + trace.events.name[rows] + 1
    distinct, which = np.unique(keys, return_inverse=True)
    sums, longest = _sum_and_find_longest(which, rows, values, len(distinct))
    starts = _min_per_group(which, start[rows], len(distinct))
    columns = (sums.tolist(), longest.tolist(), starts.tolist())
    for key, value, event, first_start in zip(distinct.tolist(), *columns, strict=True):
        if value > 0:
            code, text = divmod(key, names)
            name = trace.strings[text - 1] if text > 0 else ""
            builder.add(name, "operator", position[code], value, code, event, first_start)
    if time == "device":
        for operator in _find_replayed_operators(trace, model):
            place = int(model.code[operator.event])
            start_ns = int(start[operator.event])
            builder.add(operator.name, "operator", position[place], operator.ns, place, operator.event, start_ns)
    task = dict(zip(model.code[model.tasks].tolist(), model.tasks.tolist(), strict=True))
    starts = _min_per_group(model.code[model.tasks], start[model.tasks], len(model.names))
    for code in np.flatnonzero(backward > 0).tolist():
        event = task.get(code, NO_CODE)
        builder.add("backward", "backward", position[code], backward[code], code, event, starts[code])
    return builder.build()


class _FlameBuilder:
    def __init__(self) -> None:
        self._rows: list[tuple[str, FlameKind, int, int, int, int, int]] = []

    def add(self, name: str, kind: FlameKind, parent: int, value: int, place: int, event: int, first: int) -> int:
        """Add a frame and return its position."""
        self._rows.append((name, kind, parent, int(value), place, event, int(first)))
        return len(self._rows) - 1

    def build(self) -> FlameFrames:
        columns = zip(*self._rows, strict=True) if self._rows else ((),) * 7
        names, kinds, parent, value, place, event, first = columns
        return FlameFrames(
            names,
            kinds,
            np.array(parent, np.int32),
            np.array(value, np.int64),
            np.array(place, np.int32),
            np.array(event, np.int64),
            np.array(first, np.int64),
        )


class _ReplayedOperator(msgspec.Struct, frozen=True):
    """Kernels that graphs replayed of one operator in one module, forward; `event` is the longest."""

    name: str
    ns: int
    event: int


def _find_replayed_operators(trace: Trace, model: Modules) -> list[_ReplayedOperator]:
    """Return the replayed kernels in the forward pass of modules by the operator at capture, most time first."""
    rows = device_links(trace).rows
    if not has_indirect_kernels(trace):
        return []
    rows = rows[replayed_mask(trace) & (model.code[rows] >= 0) & ~model.backward[rows]]
    found, position = origins(trace), origin_positions(trace)[rows]
    rows, operator = rows[found.operator[position] >= 0], found.operator[position]
    operator = operator[operator >= 0]
    keys = np.stack([model.code[rows], operator], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    durations = event_lengths(trace, rows)
    sums, longest = _sum_and_find_longest(which.reshape(-1), rows, durations, len(distinct))
    return [
        _ReplayedOperator(found.tables["operator"][int(distinct[i][1])], int(sums[i]), int(longest[i]))
        for i in np.argsort(-sums, kind="stable").tolist()
        if sums[i] > 0
    ]


def _sum_operator_device_times(trace: Trace, model: Modules, operators: ModuleOperators) -> tuple[Int32, Int64]:
    """Return direct operators and the device time launched in them, forward."""
    links = device_links(trace)
    durations = event_lengths(trace, links.rows)
    operator = np.where(links.operator >= 0, operators.owner[links.operator], NO_CODE)
    mask = (operator >= 0) & ~model.backward[links.rows] & (model.code[links.rows] >= 0)
    mask[mask] = model.code[operator[mask]] == model.code[links.rows[mask]]
    rows, which = np.unique(operator[mask], return_inverse=True)
    sums = np.zeros(len(rows), np.int64)
    np.add.at(sums, which, durations[mask])
    return rows.astype(np.int32), sums


def _min_per_group(which: Int32 | Int64, values: Int64, count: int) -> Int64:
    """Return the smallest value of each group, NEVER_CALLED for an empty one."""
    smallest = np.full(count, NEVER_CALLED)
    np.minimum.at(smallest, which, values)
    return smallest


def _sum_and_find_longest(which: Int64, rows: Int32, values: Int64, count: int) -> tuple[Int64, Int64]:
    """Return the sum of the values of each group, and the row of its largest value."""
    sums, longest = np.zeros(count, np.int64), np.full(count, NO_CODE, np.int64)
    np.add.at(sums, which, values)
    order = np.argsort(values, kind="stable")
    longest[which[order]] = rows[order]
    return sums, longest
