"""What the rows of the operator table sum to, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.operators.table import GroupBy, Table, annotation_around
from torch_tb_profiler.analyses.shared.shapes import shape_texts, shapes
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int32, Int64, Trace


class OperatorSums(msgspec.Struct, frozen=True):
    """One entry per group of calls; times in ns.

    event          int32[g]  row of the trace of the call with the most device time, else host time
    calls          int64[g]
    host_self, host_total, device_self, device_total  int64[g]
    eligible       bool[g]   could run on Tensor (matrix) cores
    tc_self_ratio, tc_total_ratio  float64[g]  share of the device time that runs on them, at least; NaN where
                   no kernel is known to
    tc_self_unknown, tc_total_unknown  float64[g]  share of the device time whose kernels do not tell; NaN without
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


def operator_sums(table: Table) -> OperatorSums:
    """The sums of every group of a table."""
    calls, groups = table.operators, table.groups
    device_self, device_total = table.sums(calls.device_self), table.sums(calls.device_total)
    return OperatorSums(
        event=_longest(table),
        calls=groups.counts,
        host_self=table.sums(calls.host_self),
        host_total=table.sums(calls.host_total),
        device_self=device_self,
        device_total=device_total,
        eligible=np.bincount(groups.which, calls.eligible[table.calls], minlength=len(groups)) > 0,
        tc_self_ratio=_ratio(table.sums(calls.cores_self), table.sums(calls.tc_unknown_self), device_self),
        tc_total_ratio=_ratio(table.sums(calls.cores_total), table.sums(calls.tc_unknown_total), device_total),
        tc_self_unknown=_share(table.sums(calls.tc_unknown_self), device_self),
        tc_total_unknown=_share(table.sums(calls.tc_unknown_total), device_total),
    )


def _longest(table: Table) -> Int32:
    """int32[g]: of calls that take as long, the first."""
    calls, which = table.operators, table.groups.which
    host, device = calls.host_total[table.calls], calls.device_total[table.calls]
    order = np.lexsort((np.arange(len(which)), -host, -device, which))
    first = np.searchsorted(which[order], np.arange(len(table.groups)))
    longest: Int32 = table.rows[order[first]]
    return longest


def _ratio(used: Int64, unknown: Int64, whole: Int64) -> Float64:
    """Share on Tensor Cores; NaN without time, and where none is known to use them and no name tells."""
    known = (whole > 0) & ((used > 0) | (unknown < whole))
    return np.where(known, _share(used, whole), np.nan)


def _share(part: Int64, whole: Int64) -> Float64:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


class Labels(msgspec.Struct, frozen=True):
    """What rows are grouped by beside the name, one text per row; None where the trace does not say."""

    shape: list[str | None]
    types: list[str | None]
    strides: list[str | None]
    module: list[str | None]
    annotation: list[str | None]


def labels(trace: Trace, rows: Int32, group_by: GroupBy) -> Labels:
    """The texts of some calls; None for what `group_by` does not ask."""
    nothing: list[str | None] = [None] * len(rows)
    signature = group_by == "signature"
    return Labels(
        shape=_texts(shapes(trace)[rows], shape_texts(trace)) if signature or group_by == "shape" else nothing,
        types=_texts(*trace.arg_codes("Input type", rows)) if signature else nothing,
        strides=_texts(*trace.arg_codes("Input Strides", rows)) if signature else nothing,
        module=_modules(trace, rows) if group_by == "module" else nothing,
        annotation=_annotations(trace, rows) if group_by == "annotation" else nothing,
    )


def _texts(codes: Int32, dictionary: Sequence[str]) -> list[str | None]:
    return [dictionary[code] if code >= 0 else None for code in codes.tolist()]


def _modules(trace: Trace, rows: Int32) -> list[str | None]:
    tree = modules(trace)
    return [" > ".join(tree.path(code)) if code != NO_CODE else None for code in tree.code[rows].tolist()]


def _annotations(trace: Trace, rows: Int32) -> list[str | None]:
    around = annotation_around(trace)[rows].tolist()
    return [trace.strings[trace.events.name[row]] if row >= 0 else None for row in around]


def operator_threads(trace: Trace) -> list[str]:
    """The threads that call operators, as "pid/tid"."""
    codes = np.unique(trace.events.thread[operators(trace).rows]).tolist()
    return [trace.threads[code].label for code in codes]
