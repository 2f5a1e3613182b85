"""Operators: what the host ran, how often, how long, and what device work it launched."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.operators.table import (
    Filter,
    Table,
    annotation_around,
    operator_table,
    unlinked,
)
from torch_tb_profiler.analyses.shared.call_stacks import has_stacks
from torch_tb_profiler.analyses.shared.shapes import shape_texts, shapes
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.kinds import DEVICE, Kind, of_kind
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.phases import PHASES
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Float64, Int64, Trace
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views.operators import parts as operator_parts
from torch_tb_profiler.views.operators.parts import OperatorsParams


class OperatorRow(msgspec.Struct, frozen=True):
    """Calls that share a row; times in ns.

    event            row of the trace of the first call; names the row in the parts
    input_shape, input_types, input_strides, module, annotation  what the rows are grouped by beside the name;
                     null where the grouping does not ask or the trace does not say
    device_...       null in a trace without device work
    tc_eligible      could run on Tensor (matrix) cores
    tc_self_ratio    share of device_self that runs on them; null without such time or if the kernels do not tell
    """

    event: int
    name: str
    input_shape: str | None
    input_types: str | None
    input_strides: str | None
    module: str | None
    annotation: str | None
    calls: int
    host_self_ns: int
    host_total_ns: int
    host_mean_ns: float
    device_self_ns: int | None
    device_total_ns: int | None
    tc_eligible: bool
    tc_self_ratio: float | None
    tc_total_ratio: float | None


class UnlinkedWork(msgspec.Struct, frozen=True):
    """Device work that no operator launched."""

    calls: int
    device_ns: int


class OperatorTotals(msgspec.Struct, frozen=True):
    """Sums over the rows. Totals of nested operators overlap, so only self times are summed."""

    calls: int
    host_self_ns: int
    device_self_ns: int | None


class OperatorsPayload(msgspec.Struct, frozen=True):
    """The operator table.

    unlinked   null in a trace without device work
    steps, threads, phases  what the filters can be set to; threads as "pid/tid"
    has_stacks  the trace records where operators are called from
    reasons    field -> why it is null
    """

    rows: list[OperatorRow]
    unlinked: UnlinkedWork | None
    totals: OperatorTotals
    group_by: str
    steps: list[str]
    threads: list[str]
    phases: list[str]
    has_stacks: bool
    reasons: Mapping[str, str]


def build(trace: Trace, params: OperatorsParams) -> OperatorsPayload:
    """Rows in order of device self time, else host self time, largest first."""
    kept = Filter(params.step, params.thread, params.phase, params.kernel)
    table = operator_table(trace, params.group_by, kept)
    device = len(of_kind(trace, *DEVICE)) > 0
    rows = _rows(trace, table, params.group_by, device)
    rows.sort(key=lambda row: (row.device_self_ns or 0, row.host_self_ns), reverse=True)
    lost = unlinked(trace, kept)
    threads = np.unique(trace.events.thread[operators(trace).rows]).tolist()
    found = steps(trace)
    return OperatorsPayload(
        rows=rows,
        unlinked=UnlinkedWork(lost.calls, lost.device_ns) if device else None,
        totals=OperatorTotals(
            sum(row.calls for row in rows),
            sum(row.host_self_ns for row in rows),
            sum(row.device_self_ns or 0 for row in rows) if device else None,
        ),
        group_by=params.group_by,
        steps=list(dict.fromkeys(found.names)) if found.recorded else [],
        threads=[f"{trace.threads[code].pid}/{trace.threads[code].tid}" for code in threads],
        phases=list(PHASES),
        has_stacks=has_stacks(trace),
        reasons=_reasons(trace, device, params.group_by),
    )


def _rows(trace: Trace, table: Table, group_by: str, device: bool) -> list[OperatorRow]:
    found, groups = table.found, table.groups
    first = table.rows[groups.first]
    calls = groups.counts
    host_total = table.sums(found.host_total)
    self_, total = table.sums(found.device_self), table.sums(found.device_total)
    eligible = np.bincount(groups.which, found.eligible[table.calls], minlength=len(groups)) > 0
    self_ratio = _ratios(table.sums(found.cores_self), table.sums(found.vague_self), self_)
    total_ratio = _ratios(table.sums(found.cores_total), table.sums(found.vague_total), total)
    names = [trace.strings[code] if code >= 0 else "" for code in trace.events.name[first].tolist()]
    labels = _labels(trace, first, group_by)
    count = len(groups)
    columns = (
        first.tolist(),
        names,
        *(labels.get(key, [None] * count) for key in ("shape", "types", "strides", "module", "annotation")),
        calls.tolist(),
        table.sums(found.host_self).tolist(),
        host_total.tolist(),
        (host_total / np.maximum(calls, 1)).tolist(),
        self_.tolist() if device else [None] * count,
        total.tolist() if device else [None] * count,
        eligible.tolist(),
        self_ratio if device else [None] * count,
        total_ratio if device else [None] * count,
    )
    return [OperatorRow(*row) for row in zip(*columns, strict=True)]


def _ratios(cores: Int64, vague: Int64, whole: Int64) -> list[float | None]:
    """Share on Tensor Cores; unknown without time, and where none is known to use them and no name tells."""
    known = (whole > 0) & ((cores > 0) | (vague < whole))
    ratios: Float64 = cores / np.maximum(whole, 1)
    return [ratio if tells else None for ratio, tells in zip(ratios.tolist(), known.tolist(), strict=True)]


def _labels(trace: Trace, first: np.ndarray, group_by: str) -> dict[str, list[str | None]]:
    def texts(key: str) -> list[str | None]:
        codes, dictionary = trace.arg_codes(key)
        return [dictionary[code] if code >= 0 else None for code in codes[first].tolist()]

    labels: dict[str, list[str | None]] = {}
    if group_by in ("shape", "signature"):
        dictionary = shape_texts(trace)
        labels["shape"] = [dictionary[c] if c >= 0 else None for c in shapes(trace)[first].tolist()]
    if group_by == "signature":
        labels["types"], labels["strides"] = texts("Input type"), texts("Input Strides")
    if group_by == "module":
        found = modules(trace)
        labels["module"] = [
            " > ".join(found.path(code)) if code != NO_CODE else None for code in found.code[first].tolist()
        ]
    if group_by == "annotation":
        rows = annotation_around(trace)[first]
        labels["annotation"] = [
            trace.strings[trace.events.name[row]] if row >= 0 else None for row in rows.tolist()
        ]
    return labels


def _reasons(trace: Trace, device: bool, group_by: str) -> dict[str, str]:
    reasons = {}
    if not device:
        reasons["device_self_ns"] = reasons["device_total_ns"] = reasons["unlinked"] = (
            "no device work is recorded (`activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`)"
        )
    reasons["tc_self_ratio"] = reasons["tc_total_ratio"] = (
        "there is no device time, or the names of the kernels do not tell"
    )
    if not len(shape_texts(trace)):
        reasons["input_shape"] = "no input shapes are recorded (`profile(record_shapes=True)`)"
    if group_by == "module" and not modules(trace).names:
        reasons["module"] = "no nn.Module is recorded (`profile(with_stack=True)` or `with_modules=True`)"
    if not has_stacks(trace):
        reasons["stacks"] = "no call stacks are recorded (`profile(with_stack=True)`)"
    return reasons


def unavailable(trace: Trace) -> str | None:
    """The table needs one operator."""
    if len(of_kind(trace, Kind.CPU_OP)):
        return None
    return "no operators are recorded (`activities=[ProfilerActivity.CPU, ...]` records them)"


TAB = Tab(
    "Where the time goes",
    TraceView("operators", "Operators", OperatorsParams, OperatorsPayload, build),
    unavailable,
    operator_parts.PARTS,
)
