"""The operator table: calls and times of operators, grouped and filtered."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import (
    Groups,
    group,
    in_phase,
    in_step,
    launch_times,
    named,
    on_thread,
)
from torch_tb_profiler.analyses.shared.shapes import shapes
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.calls.calltree import build_call_tree
from torch_tb_profiler.model.calls.enclosing import innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.calls.operators import Operators, operators
from torch_tb_profiler.model.families import family_codes, family_mask
from torch_tb_profiler.model.kernels.families import FAMILIES
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, derived, distinct_codes, name_mask

GroupBy = Literal["name", "shape", "signature", "module", "annotation"]
"""name; name + input shapes; name + shapes, dtypes and strides; name + nn.Module; name + annotation around it."""


class Filter(msgspec.Struct, frozen=True):
    """Which calls count; "" is no filter. `thread` is "pid/tid".

    kernel, family  name and family of device work that they launched
    """

    step: str = ""
    thread: str = ""
    phase: str = ""
    kernel: str = ""
    family: str = ""


class Table(msgspec.Struct, frozen=True):
    """Groups of operator calls: `calls` are positions in `operators.rows`, int64[k]."""

    operators: Operators
    calls: Int64
    groups: Groups

    @property
    def rows(self) -> Int32:
        """Rows of the trace of the counted calls."""
        return self.operators.rows[self.calls]

    def sums(self, column: Int64) -> Int64:
        """int64[g] of a column of `operators`."""
        return self.groups.sums(column[self.calls])


def operator_table(trace: Trace, group_by: GroupBy, kept: Filter) -> Table:
    """Raises NotFoundError for an unknown step, thread or phase, UsageError for an unknown family."""
    every_call = operators(trace)
    calls = np.flatnonzero(_kept(trace, every_call, kept))
    rows = every_call.rows[calls]
    keys = [trace.events.name[rows], *_keys(trace, rows, group_by)]
    return Table(every_call, calls, group(*keys))


def calls_beside(table: Table, event: int) -> Int64:
    """int64[k]: the calls, positions in `table.operators`, that share a row of the table with the call `event`.

    NotFoundError if the event is not a call in the table.
    """
    at = np.flatnonzero(table.rows == event)
    if len(at) == 0:
        raise NotFoundError(f"event {event} is not an operator call of this table")
    return table.calls[table.groups.members(int(table.groups.which[at[0]]))]


def _kept(trace: Trace, calls: Operators, kept: Filter) -> Bool:
    rows = calls.rows
    keep = np.ones(len(rows), np.bool_)
    if kept.step:
        keep &= in_step(trace, trace.events.start[rows], kept.step)
    if kept.thread:
        keep &= on_thread(trace, rows, kept.thread)
    if kept.phase:
        keep &= in_phase(trace, rows, kept.phase)
    if kept.kernel or kept.family:
        work = device_links(trace).rows
        owners = calls.owner[work[_wanted(trace, work, kept)]]
        launched = np.zeros(len(rows), np.bool_)
        launched[owners[owners >= 0]] = True
        keep &= launched
    return keep


def _wanted(trace: Trace, work: Int32, kept: Filter) -> Bool:
    """bool[k]: which device work has the name and the family of a filter."""
    wanted = np.ones(len(work), np.bool_)
    if kept.kernel:
        wanted &= named(trace, work, kept.kernel)
    if kept.family:
        wanted &= family_mask(trace, work, kept.family)
    return wanted


def launched_families(trace: Trace) -> list[str]:
    """Families of the device work that operators launched, in order of FAMILIES."""
    work = device_links(trace).rows
    owned = work[operators(trace).owner[work] >= 0]
    return [FAMILIES[number] for number in distinct_codes(family_codes(trace)[owned].astype(np.int32))]


def _keys(trace: Trace, rows: Int32, group_by: GroupBy) -> list[Int32]:
    if group_by == "shape":
        return [shapes(trace)[rows]]
    if group_by == "signature":
        more = [trace.arg_codes(key, rows)[0] for key in ("Input type", "Input Strides")]
        return [shapes(trace)[rows], *more]
    if group_by == "module":
        return [modules(trace).code[rows]]
    if group_by == "annotation":
        around = annotation_around(trace)[rows]
        return [np.where(around >= 0, trace.events.name[around], NO_CODE).astype(np.int32)]
    return []


@derived
def annotation_around(trace: Trace) -> Int32:
    """int32[n]: row of the innermost annotation of the user around each event; steps do not count."""
    rows = rows_of_kind(trace, Kind.ANNOTATION)
    rows = rows[~name_mask(trace.strings, is_step)[trace.events.name[rows]]]
    return innermost_enclosing(trace, build_call_tree(trace, rows))


class Unlinked(msgspec.Struct, frozen=True):
    """Device work that no operator launched."""

    calls: int
    device_ns: int


def unlinked(trace: Trace, kept: Filter) -> Unlinked:
    """What of the device work, filtered like the operators, belongs to none.

    Sum of device self over the operators + this = sum of the kernel, memcpy and memset events. A filter by
    thread looks at the launching call; work without a launch is on no thread and in no phase but forward.
    """
    work = device_links(trace)
    lost = operators(trace).owner[work.rows] < 0
    rows, launch = work.rows[lost], work.launch[lost]
    keep = np.ones(len(rows), np.bool_)
    if kept.step:
        keep &= in_step(trace, launch_times(trace, rows), kept.step)
    if kept.thread:
        keep &= (launch >= 0) & on_thread(trace, launch, kept.thread)
    if kept.phase:
        keep &= in_phase(trace, rows, kept.phase)
    keep &= _wanted(trace, rows, kept)
    length = (event_ends(trace) - trace.events.start)[rows[keep]]
    return Unlinked(int(keep.sum()), int(length.sum()))
