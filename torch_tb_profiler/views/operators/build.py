"""Operators: what the host ran, how often, how long, and what device work it launched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isnan

from torch_tb_profiler.analyses.operators import (
    OperatorFilter,
    OperatorTable,
    calls_in_same_row,
    launched_families,
    operator_labels,
    operator_stacks,
    operator_sums,
    operator_table,
    operator_threads,
    origins_in_calls,
    replayed_operator_times,
    unlinked_device_work,
)
from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason, operator_speeds
from torch_tb_profiler.analyses.shared.call_stacks import MergedFrame, has_stacks
from torch_tb_profiler.analyses.shared.grouping import input_shape_texts
from torch_tb_profiler.analyses.shared.origin_times import OriginTime
from torch_tb_profiler.analyses.tracks.sources import name_of, parse_frame
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.base.markers import is_user_frame
from torch_tb_profiler.model.devices import device_kind, device_name
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.origins.compiled import has_compiled_calls
from torch_tb_profiler.model.phases import PHASES
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Int64, Trace
from torch_tb_profiler.model.vendors.recording_options import missing_device_work_reason, recording_option
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.availability import operators_reason
from torch_tb_profiler.views._shared.call_payloads import (
    CallDistribution,
    build_call_distribution,
    tensor_cores_name,
)
from torch_tb_profiler.views._shared.origins import OriginTimesPayload, origin_rows
from torch_tb_profiler.views._shared.params import set_params
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, reason_texts, sentences, text
from torch_tb_profiler.views.operators.payload import (
    OperatorRow,
    OperatorRowParams,
    OperatorsParams,
    OperatorsPayload,
    OperatorStackRow,
    OperatorStacksPayload,
    OperatorTotals,
    StackFrame,
    UnlinkedWork,
)

HEADLINE_SHARE = 0.6
"""The headline names operators until they take this share of the time together."""

MAX_REPLAYED_ROWS = 500
"""Most rows of what graphs replayed."""

MAX_NAMES = 3
"""Most operators that the headline names."""


def build(trace: Trace, params: OperatorsParams) -> OperatorsPayload:
    """Build the table: rows in order of device self time, else host self time, largest first."""
    filters = _filters(params)
    has_device = len(rows_of_kind(trace, *DEVICE_KINDS)) > 0 and device_kind(trace) != "HPU"
    rows = _build_rows(trace, operator_table(trace, params.group_by, filters), params, has_device)
    rows.sort(key=lambda row: (row.device_self_ns or 0, row.host_self_ns), reverse=True)
    totals = OperatorTotals(
        sum(row.calls for row in rows),
        sum(row.host_self_ns for row in rows),
        sum(row.device_self_ns or 0 for row in rows) if has_device else None,
    )
    unlinked = unlinked_device_work(trace, filters)
    replayed = replayed_operator_times(trace, filters)
    recorded = steps(trace)
    return OperatorsPayload(
        headline=headline(rows, totals, params, device_kind(trace), tensor_cores_name(trace))
        if rows or not replayed
        else _replayed_headline(replayed),
        rows=rows,
        unlinked=UnlinkedWork(unlinked.calls, unlinked.device_ns) if has_device else None,
        totals=totals,
        group_by=params.group_by,
        steps=list(dict.fromkeys(recorded.names)) if recorded.recorded else [],
        threads=operator_threads(trace),
        phases=list(PHASES),
        families=launched_families(trace),
        has_stacks=has_stacks(trace),
        replayed=origin_rows(replayed[:MAX_REPLAYED_ROWS]),
        has_compiled=has_compiled_calls(trace),
        reasons=reason_texts(_reasons(trace, has_device, params.group_by)),
    )


def _filters(params: OperatorsParams | OperatorRowParams) -> OperatorFilter:
    return OperatorFilter(params.step, params.thread, params.phase, params.kernel, params.family)


def _build_rows(
    trace: Trace, table: OperatorTable, params: OperatorsParams, has_device: bool
) -> list[OperatorRow]:
    sums = operator_sums(table)
    labels = operator_labels(trace, sums.event, params.group_by)
    missing = [None] * len(table.groups)
    columns = (
        sums.event.tolist(),
        [name_of(trace, row) for row in sums.event.tolist()],
        labels.shape,
        labels.types,
        labels.strides,
        labels.module,
        labels.annotation,
        sums.calls.tolist(),
        sums.host_self.tolist(),
        sums.host_total.tolist(),
        (sums.host_total / sums.calls).tolist(),
        sums.device_self.tolist() if has_device else missing,
        sums.device_total.tolist() if has_device else missing,
        sums.eligible.tolist(),
        _none_if_nan(sums.tc_self_ratio.tolist()) if has_device else missing,
        _none_if_nan(sums.tc_total_ratio.tolist()) if has_device else missing,
        _none_if_nan(sums.tc_self_unknown.tolist()) if has_device else missing,
        _none_if_nan(sums.tc_total_unknown.tolist()) if has_device else missing,
        operator_speeds(trace, table.rows, table.groups.which, len(table.groups)),
    )
    return [OperatorRow(*row) for row in zip(*columns, strict=True)]


def _none_if_nan(values: list[float]) -> list[float | None]:
    return [None if isnan(value) else value for value in values]


def _reasons(trace: Trace, has_device: bool, group_by: str) -> dict[str, str]:
    reasons: dict[str, str] = {}
    if not has_device:
        no_device = (
            "operators are compiled into graphs, and Gaudi's profiler doesn't record which node belongs to which"
            if device_kind(trace) == "HPU"
            else missing_device_work_reason(trace)
        )
        reasons |= dict.fromkeys(("device_self_ns", "device_total_ns", "unlinked"), no_device)
    no_cores = "there is no device time, or the kernel names don't tell"
    reasons |= dict.fromkeys(("tc_self_ratio", "tc_total_ratio"), no_cores)
    if (no_work := missing_work_reason(trace)) is not None:
        reasons["speed"] = no_work
    if not len(input_shape_texts(trace)):
        reasons["input_shape"] = f"no input shapes are recorded ({recording_option(trace, 'shapes')})"
    if group_by == "module" and not modules(trace).names:
        reasons["module"] = f"no nn.Module is recorded ({recording_option(trace, 'modules')})"
    if not has_stacks(trace):
        reasons["stacks"] = _missing_stacks_reason(trace)
    return reasons


def headline(
    rows: Sequence[OperatorRow], totals: OperatorTotals, params: OperatorsParams, device: str, cores: str
) -> Text:
    """Name the few operators that take most of the device time, else of the host time.

    `device` is the kind of the devices, `cores` what their Tensor Cores are called.
    """
    by_device = bool(totals.device_self_ns)

    def time(row: OperatorRow) -> int:
        return (row.device_self_ns or 0) if by_device else row.host_self_ns

    total = sum(time(row) for row in rows)
    if total == 0:
        return text("No operator took any time.")
    top: list[OperatorRow] = []
    for row in sorted(rows, key=time, reverse=True)[:MAX_NAMES]:
        top.append(row)
        if sum(map(time, top)) >= HEADLINE_SHARE * total:
            break
    keys: dict[str, str] = {}
    for row in top:
        keys.setdefault(row.name.removeprefix("aten::"), operator_key(row))
    set_values = set_params(params)
    names = [Phrase(name, link("operators", **set_values, select=key)) for name, key in keys.items()]
    ranking = text(
        "{names} {rank}: {share} of operator {time}.",
        names=join_phrases(names),
        rank="are the top operators" if len(names) > 1 else "is the top operator",
        share=format_ratio(sum(map(time, top)) / total),
        time=device_name(device, "time") if by_device else "host time",  # "GPU time"
    )
    return sentences(ranking, _tensor_core_sentence(rows, device, cores) if by_device else ())


def _replayed_headline(times: Sequence[OriginTime]) -> Text:
    """Name the replayed operator with the most time, for a trace without other operators."""
    spent: dict[str, int] = defaultdict(int)
    for each in times:
        if each.operator is not None:
            spent[each.operator] += each.ns
    total = sum(each.ns for each in times)
    if not spent or not total:
        return text("Which operators the graphs replayed is unknown.")
    top = max(spent, key=spent.__getitem__)
    return text(
        "{name} is the top replayed operator: {share} of the time of graph replays.",
        name=Phrase(top, link("kernels", operator=top)),
        share=format_ratio(spent[top] / total),
    )


def operator_key(row: OperatorRow) -> str:
    """Return the key of a row in the page's address: its name, and what else the rows are grouped by."""
    grouped_by = (row.input_shape, row.input_types, row.input_strides, row.module, row.annotation)
    return " | ".join([row.name, *(value for value in grouped_by if value is not None)])


def _tensor_core_sentence(rows: Iterable[OperatorRow], device: str, cores: str) -> Text:
    """Give the share of eligible time on Tensor Cores, a lower bound where some kernel names don't tell.

    Nothing is said where no kernel is known to use them and some names don't tell.
    """
    eligible = [row for row in rows if row.tc_eligible and row.device_self_ns]
    time = sum(row.device_self_ns or 0 for row in eligible)
    used = sum((row.device_self_ns or 0) * (row.tc_self_ratio or 0.0) for row in eligible)
    unknown = sum((row.device_self_ns or 0) * (row.tc_self_unknown or 0.0) for row in eligible)
    if time == 0 or (used == 0 and unknown > 0):
        return ()
    share = f"At least {format_ratio(used / time, 'down')}" if unknown > 0 else format_ratio(used / time)
    eligible_time = f"eligible {device_name(device, 'time')}"
    return text(
        "{share} of the {time} uses {cores}.", share=share if used else "None", time=eligible_time, cores=cores
    )


def build_stacks(trace: Trace, params: OperatorRowParams) -> OperatorStacksPayload:
    """Build the stacks of a row; NotFoundError if the event is not a call in the table."""
    found = operator_stacks(trace, _calls_of_row(trace, params), params.time == "device")
    stacks = [
        OperatorStackRow(
            frames=[parse_frame(text) for text in stack.frames],
            calls=stack.calls,
            host_self_ns=stack.host_self,
            host_total_ns=stack.host_total,
            device_self_ns=stack.device_self,
            device_total_ns=stack.device_total,
            event=stack.event,
        )
        for stack in found.stacks
    ]
    missing = (
        "these calls have no Python frame around them" if has_stacks(trace) else _missing_stacks_reason(trace)
    )
    return OperatorStacksPayload(
        name=trace.strings[trace.events.name[params.event]],
        stacks=stacks,
        frames=[_build_stack_frame(merged) for merged in found.merged],
        bare=found.bare,
        reason=None if stacks else text(missing),
    )


def build_origins(trace: Trace, params: OperatorRowParams) -> OriginTimesPayload:
    """Build what a row unfolds into; NotFoundError if the event is not a call in the table."""
    found = origins_in_calls(trace, _calls_of_row(trace, params))
    name = trace.strings[trace.events.name[params.event]]
    missing = None if found else text("These calls launched nothing, and contain no compiled kernel.")
    return OriginTimesPayload(name, origin_rows(found), missing)


def _calls_of_row(trace: Trace, params: OperatorRowParams) -> Int64:
    return calls_in_same_row(operator_table(trace, params.group_by, _filters(params)), params.event)


def _missing_stacks_reason(trace: Trace) -> str:
    return f"no call stacks are recorded ({recording_option(trace, 'stacks')})"


def _build_stack_frame(merged: MergedFrame) -> StackFrame:
    source = parse_frame(merged.text)
    return StackFrame(
        source.text,
        source.file,
        source.line,
        source.function,
        not is_user_frame(merged.text),
        None if merged.parent == NO_CODE else merged.parent,
        merged.calls,
        merged.host_ns,
        merged.device_ns,
    )


def build_instances(trace: Trace, params: OperatorRowParams) -> CallDistribution:
    """Build the distribution of durations of a row; by device time, of calls that launched device work."""
    table, calls = operators(trace), _calls_of_row(trace, params)
    if params.time == "device":
        calls = calls[table.device_total[calls] > 0]
        return build_call_distribution(trace, table.rows[calls], table.device_total[calls])
    return build_call_distribution(trace, table.rows[calls], table.host_total[calls])


TAB = Tab(
    "Where the time goes",
    TraceView(
        "operators",
        "Operators",
        OperatorsParams,
        OperatorsPayload,
        build,
        cached="on_request",
        filters=(OperatorsParams(phase="backward"), OperatorsParams("module"), OperatorsParams("annotation")),
        answers="Operators by name, shape or module: how often they ran, how long on the host and the device.",
    ),
    operators_reason,
    (
        TraceView("operators/stacks", "Call stacks", OperatorRowParams, OperatorStacksPayload, build_stacks),
        TraceView("operators/origins", "Origins", OperatorRowParams, OriginTimesPayload, build_origins),
        TraceView(
            "operators/instances",
            "Durations",
            OperatorRowParams,
            CallDistribution,
            build_instances,
            rows="longest",
            answers="How long the calls of an operator take: median, tail, outliers.",
        ),
    ),
)
