"""The kernel table: device work by name, launch parameters or family, and what limits its occupancy."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.device_work import chosen_work
from torch_tb_profiler.analyses.shared.grouping import Groups, group, named
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.devices import copy_directions
from torch_tb_profiler.model.engines import deduplicate_executions
from torch_tb_profiler.model.kernels.families import family_codes, family_mask
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace

GroupBy = Literal["name", "launch", "family"]
"""name; name + operator + grid + block + registers + shared memory; the sort of work."""


class Filter(msgspec.Struct, frozen=True):
    """Which launches count; "" and None are no filter."""

    step: str = ""
    device: int | None = None
    stream: int | None = None
    operator: str = ""
    family: str = ""


class Table(msgspec.Struct, frozen=True):
    """Groups of kernels; `rows` int32[k] are their rows in the trace."""

    rows: Int32
    groups: Groups


def kernel_table(trace: Trace, group_by: GroupBy, kept: Filter) -> Table:
    """Raises NotFoundError for an unknown step."""
    rows = deduplicate_executions(trace, filtered(trace, rows_of_kind(trace, Kind.KERNEL), kept))
    keys: list[Any] = [family_codes(trace)[rows] if group_by == "family" else trace.events.name[rows]]
    if group_by == "launch":
        keys += [
            operator_name(trace, rows),
            trace.arg_codes("grid", rows)[0],
            trace.arg_codes("block", rows)[0],
            trace.arg_int("registers per thread", rows),
            trace.arg_int("shared memory", rows),
        ]
    return Table(rows, group(*keys))


def filtered(trace: Trace, rows: Int32, kept: Filter) -> Int32:
    """The device work that a filter keeps. Raises UsageError for an unknown family."""
    rows = chosen_work(trace, rows, kept.step, kept.device, kept.stream)
    if kept.family:
        rows = rows[family_mask(trace, rows, kept.family)]
    if not kept.operator:
        return rows
    calls = operators(trace)
    wanted = np.append(named(trace, calls.rows, kept.operator), False)
    chosen: Int32 = rows[wanted[calls.owner[rows]]]
    return chosen


def operator_name(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: code of the name of the operator that launched each, NO_CODE if not linked."""
    calls = operators(trace)
    owner = calls.owner[rows]
    names = trace.events.name[calls.rows]
    return np.where(owner >= 0, names[owner] if len(names) else NO_CODE, NO_CODE).astype(np.int32)


def memory_operations(trace: Trace, kept: Filter) -> Table:
    """Copies and memsets by name, and by direction where the file says it beside the name."""
    rows = filtered(trace, rows_of_kind(trace, Kind.MEMCPY, Kind.MEMSET), kept)
    return Table(rows, group(trace.events.name[rows], copy_directions(trace, rows)[0]))


def launches_beside(trace: Trace, group_by: GroupBy, kept: Filter, event: int) -> Int32:
    """int32[k]: the launches, rows of the trace, that share a row of the tables with the device work `event`.

    NotFoundError if the event is in none of them.
    """
    for table in (kernel_table(trace, group_by, kept), memory_operations(trace, kept)):
        at = np.flatnonzero(table.rows == event)
        if len(at):
            return table.rows[table.groups.members(int(table.groups.which[at[0]]))]
    raise NotFoundError(f"event {event} is not device work of this table")
