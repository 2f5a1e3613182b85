"""Kernels: what the devices ran, how often, how long, and how well it filled them."""

from __future__ import annotations

from math import isnan

from torch_tb_profiler.analyses.kernels.by_family import family_times
from torch_tb_profiler.analyses.kernels.summary import (
    Launches,
    durations,
    kernel_sums,
    launches,
    memory_operation_sums,
    stream_times,
)
from torch_tb_profiler.analyses.kernels.table import (
    Filter,
    GroupBy,
    Table,
    kernel_table,
    launches_beside,
    memory_operations,
)
from torch_tb_profiler.analyses.roofline.speeds import kernel_speeds, untold
from torch_tb_profiler.analyses.shared.core_time import core_time
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import missing_device_work_reason, recording_option
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.call_payloads import (
    CallDistribution,
    build_call_distribution,
    build_tensor_core_time,
    tensor_cores_name,
)
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.kernels.engines import engines_of
from torch_tb_profiler.views.kernels.payload import (
    KernelFamily,
    KernelRow,
    KernelRowParams,
    KernelsParams,
    KernelsPayload,
    KernelStream,
    MemoryOperationRow,
)
from torch_tb_profiler.views.kernels.words import headline


def build(trace: Trace, params: KernelsParams) -> KernelsPayload:
    """Rows in order of total time, largest first."""
    kept = _filter(params)
    table = kernel_table(trace, params.group_by, kept)
    rows = sorted(_rows(trace, table, params.group_by), key=lambda row: row.total_ns, reverse=True)
    time = core_time(trace, table.rows)
    cores = build_tensor_core_time(time)
    recorded = steps(trace)
    return KernelsPayload(
        headline=headline(
            rows, time.total, cores, params, tensor_cores_name(trace), missing_kernels_reason(trace)
        ),
        rows=rows,
        memory_operations=_memory_operations(trace, kept),
        families=[
            KernelFamily(each.family, each.names, each.calls, each.total) for each in family_times(trace, kept)
        ],
        tensor_cores=cores,
        engines=engines_of(trace),
        calls=len(table.rows),
        total_ns=time.total,
        group_by=params.group_by,
        device_type=device_kind(trace),
        streams=[KernelStream(each.device, each.stream, each.calls, each.total) for each in stream_times(trace)],
        steps=list(dict.fromkeys(recorded.names)) if recorded.recorded else [],
        reasons=reason_texts(_reasons(trace, rows, params.group_by)),
    )


def _filter(params: KernelsParams | KernelRowParams) -> Filter:
    return Filter(params.step, params.device, params.stream, params.operator, params.family)


def _rows(trace: Trace, table: Table, group_by: GroupBy) -> list[KernelRow]:
    count = len(table.groups)
    if count == 0:
        return []
    sums = kernel_sums(trace, table)
    launch = launches(trace, sums.event) if group_by == "launch" else _no_launches(count)
    family = [FAMILIES[number] for number in family_codes(trace)[sums.event].tolist()]
    names = family if group_by == "family" else [name_of(trace, row) for row in sums.event.tolist()]
    short = {} if group_by == "family" else short_kernel_names(trace)
    columns = (
        sums.event.tolist(),
        names,
        [short.get(name, name) for name in names],
        family,
        launch.operator,
        launch.grid,
        launch.block,
        launch.registers,
        launch.shared_memory,
        sums.calls.tolist(),
        sums.total.tolist(),
        (sums.total / sums.calls).tolist(),
        sums.median.tolist(),
        sums.p95.tolist(),
        sums.most.tolist(),
        sums.least.tolist(),
        _known(sums.blocks_per_sm.tolist()),
        _known(sums.occupancy.tolist()),
        sums.tc_used,
        sums.tc_reason,
        sums.limiter,
        kernel_speeds(trace, table.rows, table.groups.which, count),
    )
    return [KernelRow(*row) for row in zip(*columns, strict=True)]


def _no_launches(count: int) -> Launches:
    return Launches([None] * count, [None] * count, [None] * count, [None] * count, [None] * count)


def _known(values: list[float]) -> list[float | None]:
    return [None if isnan(value) else value for value in values]


def _memory_operations(trace: Trace, kept: Filter) -> list[MemoryOperationRow]:
    table = memory_operations(trace, kept)
    if len(table.groups) == 0:
        return []
    sums = memory_operation_sums(trace, table)
    rows = []
    for i, event in enumerate(sums.event.tolist()):
        moved = int(sums.bytes[i]) if sums.known[i] else None
        total, calls, direction = int(sums.total[i]), int(sums.calls[i]), sums.direction[i]
        rows.append(
            MemoryOperationRow(
                event=event,
                name=name_of(trace, event) + (f" ({direction})" if direction else ""),
                kind="memset" if sums.memset[i] else "memcpy",
                calls=calls,
                bytes=moved,
                total_ns=total,
                mean_ns=total / calls,
                max_ns=int(sums.most[i]),
                bandwidth=moved / (total / 1e9) if moved is not None and total > 0 else None,
            )
        )
    return sorted(rows, key=lambda row: row.total_ns, reverse=True)


def _reasons(trace: Trace, rows: list[KernelRow], group_by: GroupBy) -> dict[str, str]:
    reasons = {}
    differ = ", or the kernels of each family differ" if group_by == "family" else ""
    if (silent := untold(trace)) is not None:
        reasons["speed"] = silent
    if all(row.mean_blocks_per_sm is None for row in rows):
        reasons["mean_blocks_per_sm"] = "the profiler of this device does not record `blocks per SM`"
    if all(row.mean_occupancy is None for row in rows):
        reasons["mean_occupancy"] = "the profiler of this device does not estimate the occupancy"
    if all(row.tc_used is None for row in rows):
        reasons["tc_used"] = f"the names of these kernels do not tell{differ}"
    if all(row.limiter is None for row in rows):
        reasons["limiter"] = f"the trace does not have the device's limits, or not the kernels' registers{differ}"
    return reasons


def build_instances(trace: Trace, params: KernelRowParams) -> CallDistribution:
    """How long the launches of a row take; NotFoundError if the event is not in the tables."""
    rows = launches_beside(trace, params.group_by, _filter(params), params.event)
    return build_call_distribution(trace, rows, durations(trace, rows))


def unavailable(trace: Trace) -> str | None:
    """The table needs one kernel, copy or memset."""
    if len(rows_of_kind(trace, *DEVICE_KINDS)):
        return None
    if devices(trace):
        return f"no kernels are recorded; {recording_option(trace, 'kernels')}"
    return missing_device_work_reason(trace)


TAB = Tab(
    "Where the time goes",
    TraceView(
        "kernels",
        "Kernels",
        KernelsParams,
        KernelsPayload,
        build,
        cached="on_request",
        answers="Kernels, copies and memsets: how often they ran, how long, and what limits them.",
    ),
    unavailable,
    (
        TraceView(
            "kernels/instances",
            "Durations",
            KernelRowParams,
            CallDistribution,
            build_instances,
            rows="longest",
            answers="How long the launches of a kernel take: median, tail, outliers.",
        ),
    ),
)
