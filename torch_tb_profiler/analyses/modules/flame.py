"""A flame graph of the model: modules, below each its operators and its backward pass, by host or device time."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.modules.order import NEVER, first_calls
from torch_tb_profiler.analyses.modules.times import (
    module_times,
    operator_times,
    operators_and_calls,
    owning_operator,
    subtree_sums,
)
from torch_tb_profiler.model.calls.calltree import CallTree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.modules.modules import Modules
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

FlameKind = Literal["module", "operator", "backward"]


class Flame(msgspec.Struct, frozen=True):
    """Frames, each after the one around it. What a frame's children leave uncovered is its self time.

    parent  int32[k]  position of the frame around it, NO_CODE for the outermost
    value   int64[k]  ns, that of all frames inside included
    place   int32[k]  the module's code, of the module itself and of its operators and backward pass
    event   int64[k]  row of the trace to show: the longest of the frame's events
    first   int64[k]  ns, when the first of them begins; NEVER if none is recorded
    """

    names: tuple[str, ...]
    kinds: tuple[FlameKind, ...]
    parent: Int32
    value: Int64
    place: Int32
    event: Int64
    first: Int64


def module_flame(trace: Trace, model: Modules, time: Literal["host", "device"]) -> Flame:
    """Frames of all places with time; nothing is in two of them, so that widths add up."""
    times = module_times(trace, model)
    tree = operators_and_calls(trace, model)
    rows, values = operator_times(trace, model, tree) if time == "host" else _launched(trace, model, tree)
    backward = times.backward_host_self if time == "host" else times.backward_self
    forward = times.host_self + times.operators_time if time == "host" else times.forward_self
    builder, start, first = _Builder(), trace.events.start, first_calls(trace, model)
    total = subtree_sums(forward + backward, model.parent)
    position: dict[int, int] = {NO_CODE: NO_CODE}
    for code in range(len(model.names)):
        if total[code] > 0:
            above = position[int(model.parent[code])]
            event = int(times.event[code])
            position[code] = builder.add(model.names[code], "module", above, total[code], code, event, first[code])
    keys = np.stack([model.code[rows], trace.events.name[rows]], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.reshape(-1)
    sums, longest = _grouped(which, rows, values, len(distinct))
    begin = _least(which, start[rows], len(distinct))
    columns = (sums.tolist(), longest.tolist(), begin.tolist())
    for (code, text), value, event, since in zip(distinct.tolist(), *columns, strict=True):
        if value > 0:
            name = trace.strings[text] if text >= 0 else ""
            builder.add(name, "operator", position[code], value, code, event, since)
    task = dict(zip(model.code[model.tasks].tolist(), model.tasks.tolist(), strict=True))
    begin = _least(model.code[model.tasks], start[model.tasks], len(model.names))
    for code in np.flatnonzero(backward > 0).tolist():
        event = task.get(code, NO_CODE)
        builder.add("backward", "backward", position[code], backward[code], code, event, begin[code])
    return builder.flame()


class _Builder:
    def __init__(self) -> None:
        self._rows: list[tuple[str, FlameKind, int, int, int, int, int]] = []

    def add(self, name: str, kind: FlameKind, parent: int, value: int, place: int, event: int, first: int) -> int:
        self._rows.append((name, kind, parent, int(value), place, event, int(first)))
        return len(self._rows) - 1

    def flame(self) -> Flame:
        columns = zip(*self._rows, strict=True) if self._rows else ((),) * 7
        names, kinds, parent, value, place, event, first = columns
        return Flame(
            names,
            kinds,
            np.array(parent, np.int32),
            np.array(value, np.int64),
            np.array(place, np.int32),
            np.array(event, np.int64),
            np.array(first, np.int64),
        )


def _launched(trace: Trace, model: Modules, tree: CallTree) -> tuple[Int32, Int64]:
    """Direct operators and the device time launched in them, forward."""
    owner = owning_operator(trace, model, tree)
    links = device_links(trace)
    durations = (event_ends(trace) - trace.events.start)[links.rows]
    operator = np.where(links.operator >= 0, owner[links.operator], NO_CODE)
    kept = (operator >= 0) & ~model.backward[links.rows] & (model.code[links.rows] >= 0)
    kept[kept] = model.code[operator[kept]] == model.code[links.rows[kept]]
    rows, which = np.unique(operator[kept], return_inverse=True)
    sums = np.zeros(len(rows), np.int64)
    np.add.at(sums, which, durations[kept])
    return rows.astype(np.int32), sums


def _least(which: Int32 | Int64, values: Int64, count: int) -> Int64:
    """Per group: the least of the values, NEVER of none."""
    least = np.full(count, NEVER)
    np.minimum.at(least, which, values)
    return least


def _grouped(which: Int64, rows: Int32, values: Int64, count: int) -> tuple[Int64, Int64]:
    """Per group: the sum of the values, and the row of the greatest."""
    sums, longest = np.zeros(count, np.int64), np.full(count, NO_CODE, np.int64)
    np.add.at(sums, which, values)
    order = np.argsort(values, kind="stable")
    longest[which[order]] = rows[order]
    return sums, longest
