"""The operator table: calls of operators, filtered, grouped into rows and summed; and the stacks of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.call_stacks import MergedFrame, distinct_stacks, merge_stacks
from torch_tb_profiler.analyses.shared.grouping import (
    Groups,
    check_phase,
    checked_phase_mask,
    group,
    input_shape_codes,
    input_shape_texts,
    launch_times,
    rows_named,
    step_mask,
    thread_mask,
)
from torch_tb_profiler.analyses.shared.origin_times import OriginTime, origin_times
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.base.memo import prepared
from torch_tb_profiler.model.calls.calltree import build_call_tree, innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes, family_mask
from torch_tb_profiler.model.kinds import Kind, event_spans, rows_of_kind
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.operators import Operators, operators
from torch_tb_profiler.model.origins.origins import origin_positions, origins
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int32, Int64, Trace, distinct_codes, name_mask

GroupBy = Literal["name", "shape", "signature", "module", "annotation"]
"""name; name + input shapes; name + shapes, dtypes and strides; name + nn.Module; name + annotation around it."""


class OperatorFilter(msgspec.Struct, frozen=True):
    """Which calls count; "" filters nothing.

    thread          "pid/tid"
    kernel, family  name and family of device work that the calls launched
    """

    step: str = ""
    thread: str = ""
    phase: str = ""
    kernel: str = ""
    family: str = ""


class OperatorTable(msgspec.Struct, frozen=True):
    """Operator calls grouped into rows; `calls` are positions in `operators.rows`, int64[k]."""

    operators: Operators
    calls: Int64
    groups: Groups

    @property
    def rows(self) -> Int32:
        """Return the trace's rows of the calls in the table."""
        return self.operators.rows[self.calls]

    def sums(self, column: Int64) -> Int64:
        """Return the sums of a column of `operators` per group, int64[g]."""
        return self.groups.sums(column[self.calls])


class OperatorSums(msgspec.Struct, frozen=True):
    """One entry per group of calls; times in ns.

    event          int32[g]  row of the trace of the call with the most device time, else host time
    calls          int64[g]
    host_self, host_total, device_self, device_total  int64[g]
    eligible       bool[g]   could run on Tensor (matrix) cores
    tc_self_ratio, tc_total_ratio  float64[g]  share of the device time that runs on them, at least; NaN where
                   no kernel is known to
    tc_self_unknown, tc_total_unknown  float64[g]  share of the device time whose kernel names don't tell; NaN
                   without device time
    """

    event: Int32
    calls: Int64
    host_self: Int64
    host_total: Int64
    device_self: Int64
    device_total: Int64
    eligible: Bool
    tc_self_ratio: Float64
    tc_total_ratio: Float64
    tc_self_unknown: Float64
    tc_total_unknown: Float64


class OperatorLabels(msgspec.Struct, frozen=True):
    """What rows are grouped by besides the name, one text per row; None where the trace doesn't record it."""

    shape: list[str | None]
    types: list[str | None]
    strides: list[str | None]
    module: list[str | None]
    annotation: list[str | None]


class UnlinkedDeviceWork(msgspec.Struct, frozen=True):
    """Device work that no operator launched."""

    calls: int
    device_ns: int


class CallStack(msgspec.Struct, frozen=True):
    """A distinct stack, innermost frame first, and the calls made from it; times in ns, `event` the first call."""

    frames: tuple[str, ...]
    calls: int
    host_self: int
    host_total: int
    device_self: int
    device_total: int
    event: int


class OperatorStacks(msgspec.Struct, frozen=True):
    """The stacks of a row, most time first.

    merged  all of them as one tree
    bare    number of calls without a stack; they are in neither
    """

    stacks: list[CallStack]
    merged: list[MergedFrame]
    bare: int


def operator_table(trace: Trace, group_by: GroupBy, filters: OperatorFilter) -> OperatorTable:
    """Group the calls that pass `filters`.

    NotFoundError for an unknown step, thread or phase, UsageError for an unknown family.
    """
    all_calls = operators(trace)
    calls = np.flatnonzero(_filter_mask(trace, all_calls, filters))
    rows = all_calls.rows[calls]
    keys = [trace.events.name[rows], *_group_keys(trace, rows, group_by)]
    return OperatorTable(all_calls, calls, group(*keys))


def calls_in_same_row(table: OperatorTable, event: int) -> Int64:
    """Return the calls, positions in `table.operators`, that share a row of the table with the call `event`.

    NotFoundError if the event is not a call in the table.
    """
    positions = np.flatnonzero(table.rows == event)
    if len(positions) == 0:
        raise NotFoundError(f"event {event} is not an operator call of this table")
    return table.calls[table.groups.members(int(table.groups.which[positions[0]]))]


def _filter_mask(trace: Trace, calls: Operators, filters: OperatorFilter) -> Bool:
    rows = calls.rows
    mask = np.ones(len(rows), np.bool_)
    if filters.step:
        mask &= step_mask(trace, trace.events.start[rows], filters.step)
    if filters.thread:
        mask &= thread_mask(trace, rows, filters.thread)
    if filters.phase:
        mask &= checked_phase_mask(trace, rows, filters.phase)
    if filters.kernel or filters.family:
        work = device_links(trace).rows
        owners = calls.owner[work[_work_mask(trace, work, filters)]]
        launched = np.zeros(len(rows), np.bool_)
        launched[owners[owners >= 0]] = True
        mask &= launched
    return mask


def _work_mask(trace: Trace, work: Int32, filters: OperatorFilter) -> Bool:
    """Return which device work has the kernel name and the family of a filter, bool[k]."""
    mask = np.ones(len(work), np.bool_)
    if filters.kernel:
        mask &= rows_named(trace, work, filters.kernel)
    if filters.family:
        mask &= family_mask(trace, work, filters.family)
    return mask


def _group_keys(trace: Trace, rows: Int32, group_by: GroupBy) -> list[Int32]:
    if group_by == "shape":
        return [input_shape_codes(trace)[rows]]
    if group_by == "signature":
        types_and_strides = [trace.arg_codes(key, rows)[0] for key in ("Input type", "Input Strides")]
        return [input_shape_codes(trace)[rows], *types_and_strides]
    if group_by == "module":
        return [modules(trace).code[rows]]
    if group_by == "annotation":
        around = annotation_around(trace)[rows]
        return [np.where(around >= 0, trace.events.name[around], NO_CODE).astype(np.int32)]
    return []


@prepared
def annotation_around(trace: Trace) -> Int32:
    """Return the row of the innermost user annotation around each event, int32[n]; steps don't count."""
    rows = rows_of_kind(trace, Kind.ANNOTATION)
    rows = rows[~name_mask(trace.strings, is_step)[trace.events.name[rows]]]
    return innermost_enclosing(trace, build_call_tree(trace, rows))


def unlinked_device_work(trace: Trace, filters: OperatorFilter) -> UnlinkedDeviceWork:
    """Return the device work that belongs to no operator, filtered like the operators.

    Sum of device self over the operators + this = sum of the kernel, memcpy and memset events. A filter by
    thread looks at the launching call; work without a launch is on no thread and in no phase but forward.
    """
    rows = _filter_work(trace, operators(trace).owner[device_links(trace).rows] < 0, filters)
    starts, ends = event_spans(trace, rows)
    return UnlinkedDeviceWork(len(rows), int((ends - starts).sum()))


def _filter_work(trace: Trace, wanted: Bool, filters: OperatorFilter) -> Int32:
    """Return the rows of the `wanted` ones of all device work that pass the filters."""
    work = device_links(trace)
    rows, launch = work.rows[wanted], work.launch[wanted]
    mask = np.ones(len(rows), np.bool_)
    if filters.step:
        mask &= step_mask(trace, launch_times(trace, rows), filters.step)
    if filters.thread:
        mask &= (launch >= 0) & thread_mask(trace, launch, filters.thread)
    if filters.phase:
        mask &= checked_phase_mask(trace, rows, filters.phase)
    mask &= _work_mask(trace, rows, filters)
    filtered: Int32 = rows[mask]
    return filtered


def replayed_operator_times(trace: Trace, filters: OperatorFilter) -> list[OriginTime]:
    """Return what graphs replayed by the operator that was captured, filtered like `unlinked_device_work`.

    Of the phases, only backward is known of a replayed kernel, from its capture or its node; all others count as
    forward.
    """
    if not replayed_mask(trace).any():
        return []
    rows = _filter_work(trace, replayed_mask(trace), msgspec.structs.replace(filters, phase=""))
    if filters.phase:
        check_phase(filters.phase)
        is_backward = origins(trace).backward[origin_positions(trace)[rows]] == 1
        rows = rows[is_backward if filters.phase == "backward" else ~is_backward & (filters.phase == "forward")]
    return origin_times(trace, rows)


def origins_in_calls(trace: Trace, calls: Int64) -> list[OriginTime]:
    """Return by origin what some calls, positions in `operators`, launched, and the compiled kernels in them.

    In a trace without device work, the compiled kernels' time is that on the host.
    """
    table, found = operators(trace), origins(trace)
    inside = np.zeros(len(table.rows) + 1, np.bool_)
    inside[calls] = True
    inside[:-1] |= _has_ancestor(table.parent, inside)
    has_device = bool(found.is_device.any())
    rows = found.rows[found.is_device == has_device]
    return origin_times(trace, rows[inside[table.owner[rows]]])


def _has_ancestor(parent: Int32, wanted: Bool) -> Bool:
    """Return which nodes lie in a wanted one, given the parent of each, NO_CODE for none."""
    has = np.zeros(len(parent), np.bool_)
    above = parent.copy()
    while (climbing := above >= 0).any():
        has |= climbing & wanted[above]
        above = np.where(climbing & ~has, np.append(parent, NO_CODE)[above], NO_CODE).astype(np.int32)
    return has


def launched_families(trace: Trace) -> list[str]:
    """Return the families of the device work that operators launched, in order of FAMILIES."""
    work = device_links(trace).rows
    owned = work[operators(trace).owner[work] >= 0]
    return [FAMILIES[code] for code in distinct_codes(family_codes(trace)[owned].astype(np.int32))]


def operator_threads(trace: Trace) -> list[str]:
    """Return the threads that call operators, as "pid/tid"."""
    codes = distinct_numbers(trace.events.thread[operators(trace).rows])
    return [trace.threads[code].label for code in codes]


def operator_sums(table: OperatorTable) -> OperatorSums:
    """Sum every group of a table."""
    calls, groups = table.operators, table.groups
    device_self, device_total = table.sums(calls.device_self), table.sums(calls.device_total)
    return OperatorSums(
        event=_find_longest_calls(table),
        calls=groups.counts,
        host_self=table.sums(calls.host_self),
        host_total=table.sums(calls.host_total),
        device_self=device_self,
        device_total=device_total,
        eligible=np.bincount(groups.which, calls.eligible[table.calls], minlength=len(groups)) > 0,
        tc_self_ratio=_tc_ratio(table.sums(calls.cores_self), table.sums(calls.tc_unknown_self), device_self),
        tc_total_ratio=_tc_ratio(table.sums(calls.cores_total), table.sums(calls.tc_unknown_total), device_total),
        tc_self_unknown=_share(table.sums(calls.tc_unknown_self), device_self),
        tc_total_unknown=_share(table.sums(calls.tc_unknown_total), device_total),
    )


def _find_longest_calls(table: OperatorTable) -> Int32:
    """Return the longest call of each group, int32[g], the first of equally long ones."""
    calls, which = table.operators, table.groups.which
    host, device = calls.host_total[table.calls], calls.device_total[table.calls]
    chosen = np.arange(len(which))
    for time in (device, host):
        most = np.zeros(len(table.groups), np.int64)
        np.maximum.at(most, which[chosen], time[chosen])
        chosen = chosen[time[chosen] == most[which[chosen]]]
    first = np.empty(len(table.groups), np.int64)
    first[which[chosen[::-1]]] = chosen[::-1]  # the last write wins: the first call
    longest: Int32 = table.rows[first]
    return longest


def _tc_ratio(used: Int64, unknown: Int64, total: Int64) -> Float64:
    """Return the share on Tensor Cores; NaN without time, or if none is known to use them and no name tells."""
    known = (total > 0) & ((used > 0) | (unknown < total))
    return np.where(known, _share(used, total), np.nan)


def _share(part: Int64, total: Int64) -> Float64:
    return np.where(total > 0, part / np.maximum(total, 1), np.nan)


def operator_labels(trace: Trace, rows: Int32, group_by: GroupBy) -> OperatorLabels:
    """Return the labels of some calls; None for those that `group_by` doesn't need."""
    empty: list[str | None] = [None] * len(rows)
    by_signature = group_by == "signature"
    by_shape = by_signature or group_by == "shape"
    return OperatorLabels(
        shape=_texts(input_shape_codes(trace)[rows], input_shape_texts(trace)) if by_shape else empty,
        types=_texts(*trace.arg_codes("Input type", rows)) if by_signature else empty,
        strides=_texts(*trace.arg_codes("Input Strides", rows)) if by_signature else empty,
        module=_module_paths(trace, rows) if group_by == "module" else empty,
        annotation=_annotations(trace, rows) if group_by == "annotation" else empty,
    )


def _texts(codes: Int32, dictionary: Sequence[str]) -> list[str | None]:
    return [dictionary[code] if code >= 0 else None for code in codes.tolist()]


def _module_paths(trace: Trace, rows: Int32) -> list[str | None]:
    tree = modules(trace)
    return [" > ".join(tree.path(code)) if code != NO_CODE else None for code in tree.code[rows].tolist()]


def _annotations(trace: Trace, rows: Int32) -> list[str | None]:
    around = annotation_around(trace)[rows].tolist()
    return [trace.strings[trace.events.name[row]] if row >= 0 else None for row in around]


def operator_stacks(trace: Trace, calls: Int64, by_device: bool) -> OperatorStacks:
    """Return the stacks of some calls, positions in `operators`, in order of host or device total time."""
    table = operators(trace)
    rows = table.rows[calls]
    stacks = distinct_stacks(trace, rows)
    count = len(stacks.frames)

    def sums(column: Int64) -> Int64:
        total = np.zeros(count, np.int64)
        np.add.at(total, stacks.which, column[calls])
        return total

    calls_of = np.bincount(stacks.which, minlength=count)
    host, device = sums(table.host_total), sums(table.device_total)
    host_self, device_self = sums(table.host_self), sums(table.device_self)
    first = np.full(count, len(rows), np.int64)
    np.minimum.at(first, stacks.which, np.arange(len(rows)))
    order = np.lexsort((-host, -device if by_device else -host))
    listed = [i for i in order.tolist() if stacks.frames[i]]
    return OperatorStacks(
        stacks=[
            CallStack(
                stacks.frames[i],
                calls=int(calls_of[i]),
                host_self=int(host_self[i]),
                host_total=int(host[i]),
                device_self=int(device_self[i]),
                device_total=int(device[i]),
                event=int(rows[first[i]]),
            )
            for i in listed
        ],
        merged=merge_stacks([stacks.frames[i] for i in listed], calls_of[listed], host[listed], device[listed]),
        bare=stacks.bare,
    )
