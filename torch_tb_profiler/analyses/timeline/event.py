"""One event: its times, step, arguments and module, looked up in the columns of the trace."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.payload_values import optional_int
from torch_tb_profiler.analyses.tracks.events import all_slices
from torch_tb_profiler.analyses.tracks.lanes import ancestors, lanes, position_of, self_time
from torch_tb_profiler.base.markers import is_step, step_number
from torch_tb_profiler.model.devices import kernel_metric_rows
from torch_tb_profiler.model.kinds import HOST_KINDS, event_kinds
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace


def start_of(trace: Trace, row: int) -> int | None:
    """Return ns since the trace's start, or None if the event has no time."""
    return optional_int(trace.events.start[row])


def duration_of(trace: Trace, row: int) -> int | None:
    """Return the recorded duration in ns, or None for instants and where unknown."""
    return optional_int(trace.events.duration[row])


def self_time_of(trace: Trace, row: int, python: bool) -> int | None:
    """Return the ns not covered by nested slices; None for instants and events that aren't drawn."""
    layout = lanes(trace, python)
    position = position_of(trace, layout, row) if all_slices(trace)[row] else None
    return None if position is None else self_time(layout, position)


def ancestors_of(trace: Trace, row: int, python: bool) -> list[int]:
    """Return the rows of the slices around an event, outermost first; none if it isn't drawn."""
    layout = lanes(trace, python)
    position = position_of(trace, layout, row)
    return [] if position is None else ancestors(layout, position)


def step_of(trace: Trace, row: int) -> str | None:
    """Return the name of the recorded step that an event starts in, or None.

    The host runs ahead of the device, so each has its own step bounds. `ProfilerStep#N` belongs to step N, also
    where it is mirrored onto the device.
    """
    table, start = steps(trace), trace.events.start[row]
    name = trace.strings[trace.events.name[row]]
    if is_step(name) and step_number(name) in table.names:
        return step_number(name)
    on_host = event_kinds(trace)[row] in HOST_KINDS
    starts, finish = (table.host_starts, table.host_ends) if on_host else (table.starts, table.ends)
    inside = np.flatnonzero((starts <= start) & (start < finish))
    return table.names[int(inside[0])] if table.recorded and len(inside) else None


def arguments_of(trace: Trace, row: int) -> dict[str, Any]:
    """Return all arguments of an event, decoded, and the hardware metrics of a kernel."""
    arguments = _read_arguments(trace, row)
    metrics = kernel_metric_rows(trace).get(row)
    return arguments if metrics is None else {**_read_arguments(trace, metrics), **arguments}


def _read_arguments(trace: Trace, row: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for key, column in trace.args.items():
        index = int(np.searchsorted(column.rows, row))
        if index == len(column.rows) or column.rows[index] != row:
            continue
        value = column.values[index].item()
        if column.kind == "text":
            value = column.dictionary[value]
        elif column.kind == "json":
            value = _decode_json(column.dictionary[value])
        arguments[key] = value
    return arguments


def _decode_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


class ModulePath(msgspec.Struct, frozen=True):
    """The nn.Module that an event belongs to.

    path      outermost first; empty if it belongs to none
    backward  it runs in the backward pass of the module
    recorded  the trace has any module at all
    """

    path: tuple[str, ...]
    backward: bool
    recorded: bool


def module_of(trace: Trace, row: int) -> ModulePath:
    """Return the module of an event: for device work by its launch, for backward work by its forward operator."""
    table = modules(trace)
    return ModulePath(
        tuple(table.path(int(table.code[row]))), bool(table.backward[row]), recorded=len(table.names) > 0
    )
