"""Operators: what the host ran, how often, how long, and what device work it launched."""

from __future__ import annotations

from math import isnan

from torch_tb_profiler.analyses.operators.summary import labels, operator_sums, operator_threads
from torch_tb_profiler.analyses.operators.table import Filter, Table, launched_families, operator_table, unlinked
from torch_tb_profiler.analyses.roofline.speeds import operator_speeds, untold
from torch_tb_profiler.analyses.shared.call_stacks import has_stacks
from torch_tb_profiler.analyses.shared.shapes import shape_texts
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.phases import PHASES
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.records import no_device_work, option
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.tensor_cores import cores_name
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.operators.parts import PARTS, no_stacks
from torch_tb_profiler.views.operators.payload import (
    OperatorRow,
    OperatorsParams,
    OperatorsPayload,
    OperatorTotals,
    UnlinkedWork,
)
from torch_tb_profiler.views.operators.words import headline


def build(trace: Trace, params: OperatorsParams) -> OperatorsPayload:
    """Rows in order of device self time, else host self time, largest first."""
    kept = Filter(params.step, params.thread, params.phase, params.kernel, params.family)
    device = len(rows_of_kind(trace, *DEVICE_KINDS)) > 0 and device_kind(trace) != "HPU"
    rows = _rows(trace, operator_table(trace, params.group_by, kept), params, device)
    rows.sort(key=lambda row: (row.device_self_ns or 0, row.host_self_ns), reverse=True)
    totals = OperatorTotals(
        sum(row.calls for row in rows),
        sum(row.host_self_ns for row in rows),
        sum(row.device_self_ns or 0 for row in rows) if device else None,
    )
    lost = unlinked(trace, kept)
    recorded = steps(trace)
    return OperatorsPayload(
        headline=headline(rows, totals, params, cores_name(trace)),
        rows=rows,
        unlinked=UnlinkedWork(lost.calls, lost.device_ns) if device else None,
        totals=totals,
        group_by=params.group_by,
        steps=list(dict.fromkeys(recorded.names)) if recorded.recorded else [],
        threads=operator_threads(trace),
        phases=list(PHASES),
        families=launched_families(trace),
        has_stacks=has_stacks(trace),
        reasons=reason_texts(_reasons(trace, device, params.group_by)),
    )


def _rows(trace: Trace, table: Table, params: OperatorsParams, device: bool) -> list[OperatorRow]:
    sums = operator_sums(table)
    texts = labels(trace, sums.event, params.group_by)
    unknown = [None] * len(table.groups)
    columns = (
        sums.event.tolist(),
        [name_of(trace, row) for row in sums.event.tolist()],
        texts.shape,
        texts.types,
        texts.strides,
        texts.module,
        texts.annotation,
        sums.calls.tolist(),
        sums.host_self.tolist(),
        sums.host_total.tolist(),
        (sums.host_total / sums.calls).tolist(),
        sums.device_self.tolist() if device else unknown,
        sums.device_total.tolist() if device else unknown,
        sums.eligible.tolist(),
        _known(sums.tc_self_ratio.tolist()) if device else unknown,
        _known(sums.tc_total_ratio.tolist()) if device else unknown,
        _known(sums.tc_self_unknown.tolist()) if device else unknown,
        _known(sums.tc_total_unknown.tolist()) if device else unknown,
        operator_speeds(trace, table.rows, table.groups.which, len(table.groups)),
    )
    return [OperatorRow(*row) for row in zip(*columns, strict=True)]


def _known(values: list[float]) -> list[float | None]:
    return [None if isnan(value) else value for value in values]


def _reasons(trace: Trace, device: bool, group_by: str) -> dict[str, str]:
    reasons = {}
    if not device:
        reasons["device_self_ns"] = reasons["device_total_ns"] = reasons["unlinked"] = (
            "operators are compiled into graphs, and the profiler of Gaudi does not say which node is whose"
            if device_kind(trace) == "HPU"
            else no_device_work(trace)
        )
    reasons["tc_self_ratio"] = reasons["tc_total_ratio"] = (
        "there is no device time, or the names of the kernels do not tell"
    )
    if (silent := untold(trace)) is not None:
        reasons["speed"] = silent
    if not len(shape_texts(trace)):
        reasons["input_shape"] = f"no input shapes are recorded ({option(trace, 'shapes')})"
    if group_by == "module" and not modules(trace).names:
        reasons["module"] = f"no nn.Module is recorded ({option(trace, 'modules')})"
    if not has_stacks(trace):
        reasons["stacks"] = no_stacks(trace)
    return reasons


def unavailable(trace: Trace) -> str | None:
    """The table needs one operator."""
    if len(rows_of_kind(trace, Kind.CPU_OP)):
        return None
    return f"no operators are recorded ({option(trace, 'operators')})"


TAB = Tab(
    "Where the time goes",
    TraceView(
        "operators",
        "Operators",
        OperatorsParams,
        OperatorsPayload,
        build,
        kept="asked",
        filters=(OperatorsParams(phase="backward"), OperatorsParams("module")),
        answers="Operators by name, shape or module: how often they ran, how long on the host and the device.",
    ),
    unavailable,
    PARTS,
)
