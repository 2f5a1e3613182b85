"""The Kernels tab: what the devices ran, how often, how long, what limits it, and the engines of a Gaudi card."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Literal

from torch_tb_profiler.analyses.kernels.engines import EngineTimes, engine_times
from torch_tb_profiler.analyses.kernels.table import (
    KernelFilter,
    KernelGrouping,
    KernelTable,
    LaunchParameters,
    family_times,
    find_row_members,
    kernel_sums,
    kernel_table,
    launch_durations,
    launch_parameters,
    memory_operation_sums,
    memory_operations,
    stream_times,
)
from torch_tb_profiler.analyses.roofline.speeds import kernel_speeds, missing_work_reason
from torch_tb_profiler.analyses.shared.origin_times import SharedOrigins, origin_times, shared_origins
from torch_tb_profiler.analyses.shared.utilization import core_time
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.origins.compiled import has_indirect_kernels
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.availability import kernels_reason
from torch_tb_profiler.views._shared.call_payloads import (
    CallDistribution,
    TensorCoreTime,
    build_call_distribution,
    build_tensor_core_time,
    tensor_cores_name,
)
from torch_tb_profiler.views._shared.origins import OriginTimesPayload, origin_rows
from torch_tb_profiler.views._shared.params import set_params
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, reason_texts, sentences, text
from torch_tb_profiler.views.kernels.payload import (
    EngineRow,
    EnginesPayload,
    KernelFamily,
    KernelRow,
    KernelRowParams,
    KernelsParams,
    KernelsPayload,
    KernelStream,
    MemoryOperationRow,
    RecipeRow,
)

DEVICE_BOUND_SHARE = 0.9
"""Engines busy for at least this share of the steps are the bottleneck."""

MIN_NETWORK_SHARE = 0.5
"""Communication is the bottleneck if the network's engines work alone for more than this share of the steps."""

_NETWORK_ENGINES = "NIC"

HOST_BOUND_SHARE = 0.5
"""Engines wait for the host if it builds graphs in at least this share of their idle time."""

_TOP_ROW = {
    "name": "is the top kernel",
    "launch": "has the top launch configuration",
    "family": "is the top family",
}
"""How the headline calls the row with the most time, by grouping."""


def build(trace: Trace, params: KernelsParams) -> KernelsPayload:
    """Build the table, rows by total time, largest first."""
    conditions = _filter(params)
    table = kernel_table(trace, params.group_by, conditions)
    rows = sorted(_build_rows(trace, table, params.group_by), key=lambda row: row.total_ns, reverse=True)
    time = core_time(trace, table.rows)
    cores = build_tensor_core_time(time)
    recorded = steps(trace)
    return KernelsPayload(
        headline=_headline(
            rows, time.total, cores, params, tensor_cores_name(trace), missing_kernels_reason(trace)
        ),
        rows=rows,
        memory_operations=_build_memory_operations(trace, conditions),
        families=[
            KernelFamily(each.family, each.names, each.calls, each.total)
            for each in family_times(trace, conditions)
        ],
        tensor_cores=cores,
        engines=build_engines(trace),
        calls=len(table.rows),
        total_ns=time.total,
        group_by=params.group_by,
        device_type=device_kind(trace),
        streams=[KernelStream(each.device, each.stream, each.calls, each.total) for each in stream_times(trace)],
        steps=list(dict.fromkeys(recorded.names)) if recorded.recorded else [],
        reasons=reason_texts(_reasons(trace, rows, params.group_by)),
    )


def _filter(params: KernelsParams | KernelRowParams) -> KernelFilter:
    return KernelFilter(params.step, params.device, params.stream, params.operator, params.family, params.origin)


def _build_rows(trace: Trace, table: KernelTable, group_by: KernelGrouping) -> list[KernelRow]:
    count = len(table.groups)
    if count == 0:
        return []
    sums = kernel_sums(trace, table)
    launch = launch_parameters(trace, sums.event) if group_by == "launch" else _unknown_launches(count)
    family = [FAMILIES[number] for number in family_codes(trace)[sums.event].tolist()]
    names = family if group_by == "family" else [name_of(trace, row) for row in sums.event.tolist()]
    origins = _origins(trace, table)
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
        sums.max.tolist(),
        sums.min.tolist(),
        _none_if_nan(sums.blocks_per_sm.tolist()),
        _none_if_nan(sums.occupancy.tolist()),
        sums.tc_used,
        sums.tc_reason,
        sums.limiter,
        kernel_speeds(trace, table.rows, table.groups.which, count),
        origins.operator,
        origins.module,
        origins.line,
        origins.reason,
        origins.places,
    )
    return [KernelRow(*row) for row in zip(*columns, strict=True)]


def _origins(trace: Trace, table: KernelTable) -> SharedOrigins:
    """Return where the kernels of each row come from; nothing where the launch says it."""
    if has_indirect_kernels(trace):
        return shared_origins(trace, table.rows, table.groups)
    none: list[str | None] = [None] * len(table.groups)
    return SharedOrigins(none, none, none, none, [0] * len(none))


def _unknown_launches(count: int) -> LaunchParameters:
    return LaunchParameters([None] * count, [None] * count, [None] * count, [None] * count, [None] * count)


def _none_if_nan(values: list[float]) -> list[float | None]:
    return [None if isnan(value) else value for value in values]


def _build_memory_operations(trace: Trace, conditions: KernelFilter) -> list[MemoryOperationRow]:
    table = memory_operations(trace, conditions)
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
                max_ns=int(sums.max[i]),
                bandwidth=moved / (total / 1e9) if moved is not None and total > 0 else None,
            )
        )
    return sorted(rows, key=lambda row: row.total_ns, reverse=True)


def _reasons(trace: Trace, rows: list[KernelRow], group_by: KernelGrouping) -> dict[str, str]:
    reasons = {}
    differ = ", or the kernels of each family differ" if group_by == "family" else ""
    if (silent := missing_work_reason(trace)) is not None:
        reasons["speed"] = silent
    if not has_indirect_kernels(trace):
        reasons["origin"] = (
            "neither graphs nor compiled code launched kernels, so every origin is known from the launch"
        )
    if all(row.mean_blocks_per_sm is None for row in rows):
        reasons["mean_blocks_per_sm"] = "the trace has no `blocks per SM` for these kernels"
    if all(row.mean_occupancy is None for row in rows):
        reasons["mean_occupancy"] = "the trace has no `est. achieved occupancy %` for these kernels"
    if all(row.tc_used is None for row in rows):
        reasons["tc_used"] = f"the kernel names don't show whether they run on Tensor Cores{differ}"
    if all(row.limiter is None for row in rows):
        reasons["limiter"] = f"the trace lacks the device's limits or the kernels' registers{differ}"
    return reasons


def _headline(
    rows: Sequence[KernelRow],
    total_ns: int,
    cores: TensorCoreTime,
    params: KernelsParams,
    cores_name: str,
    missing: str | None = None,
) -> Text:
    """Return the row with the most time, which is the first, and how much kernel time uses Tensor Cores.

    cores_name  "Tensor Cores", or what the vendor calls them
    missing     why there are no kernels although some may have run
    """
    if not rows and missing is not None:
        return text("{reason}.", reason=capitalize(missing))
    if not rows and params == KernelsParams(group_by=params.group_by):
        return text("No kernels were recorded, only copies and memsets.")
    if not rows:
        return text("No kernel matches the filters.")
    if total_ns == 0:
        return text("All kernels have zero duration.")
    top = rows[0]
    select = _row_key(top, params.group_by == "launch")
    by_family = params.group_by == "family"
    return text(
        "{name} {verb}: {share} of kernel time.{cores}",
        verb=_TOP_ROW[params.group_by],
        name=Phrase(
            capitalize(top.short_name) if by_family else top.short_name,
            link("kernels", **set_params(params), select=select),
        ),
        share=format_ratio(top.total_ns / total_ns),
        cores=_tensor_core_text(cores, total_ns, cores_name),
    )


def _row_key(row: KernelRow, by_launch: bool) -> str:
    """Return how the page names a row in its address: the name, with the launch where rows are grouped by it."""
    if not by_launch:
        return row.name
    launch = (row.operator, row.grid, row.block, row.registers, row.shared_memory)
    return " | ".join([row.name, *("" if value is None else str(value) for value in launch)])


def _tensor_core_text(cores: TensorCoreTime, total_ns: int, cores_name: str) -> str:
    """Return a sentence on Tensor Cores: none where no name shows their use, a lower bound where some don't."""
    if cores.used_ns == 0 and cores.unknown_ns > 0:
        return ""
    if cores.used_ns == 0:
        return f" No kernel time uses {cores_name}."
    used = cores.used_ns / total_ns
    share = f"At least {format_ratio(used, 'down')}" if cores.unknown_ns > 0 else format_ratio(used)
    return f" {share} of kernel time uses {cores_name}."


def build_engines(trace: Trace) -> EnginesPayload | None:
    """Build the engines of a Gaudi card, None for a trace without such engines."""
    times = engine_times(trace)
    if times is None:
        return None
    limit = _find_engine_limit(times)
    return EnginesPayload(
        headline=sentences(_engine_headline(times), _engine_verdict(times, limit)),
        bound=limit,
        classes=[
            EngineRow(each.name, each.engines, each.busy, each.busy / times.window if times.window else None)
            for each in times.classes
        ],
        recipes=[RecipeRow(each.id, each.name, each.nodes, each.busy, each.event) for each in times.recipes],
    )


def _find_engine_limit(times: EngineTimes) -> Literal["device", "host"] | None:
    if times.window and times.busy >= DEVICE_BOUND_SHARE * times.window:
        return "device"
    if times.graphs is not None and times.graphs >= HOST_BOUND_SHARE * (times.window - times.busy) > 0:
        return "host"
    return None


def _engine_headline(times: EngineTimes) -> Text:
    if not times.window:
        return text("Nothing complete was recorded, so there is no busy share of the engines.")
    shares = [f"{each.name} {format_ratio(each.busy / times.window)}" for each in times.classes]
    return text(
        "{engines} are busy for {share} of the time ({classes}).",
        engines=Phrase("The engines", link("trace")),
        share=format_ratio(times.busy / times.window),
        classes=join_phrases(shares),
    )


def _engine_verdict(times: EngineTimes, limit: str | None) -> Text:
    if not times.window:
        return ()
    if limit == "device":
        first, *others = sorted(times.classes, key=lambda each: -each.busy)
        alone = first.busy - sum(each.busy for each in others)
        if first.name == _NETWORK_ENGINES and alone > MIN_NETWORK_SHARE * times.window:
            return text(
                "They are rarely idle, but most of the time only {network} works: communication is the "
                "bottleneck.",
                network=first.name,
            )
        return text("They are rarely idle, so the card is the bottleneck.")
    if times.graphs is None:
        return text("Graph building was not recorded, so the cause of their idle time is unknown.")
    share = format_ratio(times.graphs / (times.window - times.busy))
    if limit == "host":
        return text(
            "They wait for the host, which builds and launches graphs in {share} of their idle time.", share=share
        )
    return text(
        "The host builds and launches graphs in {share} of their idle time; the cause of the rest is unknown.",
        share=share,
    )


def build_instances(trace: Trace, params: KernelRowParams) -> CallDistribution:
    """Build the durations of the launches of a row. NotFoundError if the event is not in the tables."""
    rows = find_row_members(trace, params.group_by, _filter(params), params.event)
    return build_call_distribution(trace, rows, launch_durations(trace, rows))


def build_origins(trace: Trace, params: KernelRowParams) -> OriginTimesPayload:
    """Build the origins of the launches of a row. NotFoundError if the event is not in the tables."""
    rows = find_row_members(trace, params.group_by, _filter(params), params.event)
    # All device work has an origin or its own reason, so that there is no empty list to explain.
    name = name_of(trace, params.event)
    return OriginTimesPayload(
        short_kernel_names(trace).get(name, name), origin_rows(origin_times(trace, rows)), None
    )


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
    kernels_reason,
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
        TraceView("kernels/origins", "Origins", KernelRowParams, OriginTimesPayload, build_origins),
    ),
)
