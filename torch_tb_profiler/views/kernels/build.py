"""Kernels: what the devices ran, how often, how long, and how well it filled them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.kernels.table import (
    LIMITERS,
    Filter,
    GroupBy,
    Table,
    kernel_table,
    limiters,
    memory_operations,
    moved,
    operator_name,
    weighted_means,
)
from torch_tb_profiler.analyses.shared.grouping import group, order_statistics
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.devices import device_of, devices, stream_of
from torch_tb_profiler.model.kinds import DEVICE, Kind, ends, of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.tensor_cores import UNKNOWN, YES, uses_tensor_cores
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Float64, Trace
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.instances import Instances, instances


class KernelsParams(msgspec.Struct, frozen=True):
    """`group_by`: name, or launch (name, operator, grid, block, registers, shared memory); the rest are filters.

    operator  only kernels that operators of this name launched
    """

    group_by: GroupBy = "name"
    step: str = ""
    device: int | None = None
    stream: int | None = None
    operator: str = ""


class KernelRow(msgspec.Struct, frozen=True):
    """Launches that share a row; times in ns.

    event               row of the trace of the first launch; names the row in the parts
    operator            null: not linked to one (or not grouped by it)
    registers           per thread; shared_memory: bytes per block
    mean_blocks_per_sm, mean_occupancy  weighted by duration; occupancy as a ratio, estimated by the profiler
    tc_used             runs on Tensor (matrix) cores; null if the name does not tell
    limiter             what keeps more blocks off a multiprocessor: threads, registers, shared memory, grid
    """

    event: int
    name: str
    operator: str | None
    grid: str | None
    block: str | None
    registers: int | None
    shared_memory: int | None
    calls: int
    total_ns: int
    mean_ns: float
    median_ns: float
    p95_ns: float
    max_ns: int
    min_ns: int
    mean_blocks_per_sm: float | None
    mean_occupancy: float | None
    tc_used: bool | None
    limiter: str | None


class MemoryOperationRow(msgspec.Struct, frozen=True):
    """Copies or fills of one name. bandwidth: bytes per second over their summed time, null without bytes."""

    event: int
    name: str
    kind: str
    calls: int
    bytes: int | None
    total_ns: int
    mean_ns: float
    max_ns: int
    bandwidth: float | None


class KernelStream(msgspec.Struct, frozen=True):
    """A stream with work, for the filters."""

    device: int
    stream: int
    calls: int
    total_ns: int


class TensorCoreTime(msgspec.Struct, frozen=True):
    """Kernel time on Tensor (matrix) cores, off them, and of kernels whose names do not tell."""

    used_ns: int
    not_used_ns: int
    unknown_ns: int


class KernelsPayload(msgspec.Struct, frozen=True):
    """The kernel table and that of copies and fills; `reasons`: field -> why it is null in every row."""

    rows: list[KernelRow]
    memory_operations: list[MemoryOperationRow]
    tensor_cores: TensorCoreTime
    calls: int
    total_ns: int
    group_by: str
    streams: list[KernelStream]
    steps: list[str]
    reasons: Mapping[str, str]


def build(trace: Trace, params: KernelsParams) -> KernelsPayload:
    """Rows in order of total time, largest first."""
    kept = _filter(params)
    table = kernel_table(trace, params.group_by, kept)
    rows = sorted(_rows(trace, table, params.group_by), key=lambda row: row.total_ns, reverse=True)
    length = (ends(trace) - trace.events.start)[table.rows]
    uses = uses_tensor_cores(trace)[table.rows]
    used, unknown = int(length[uses == YES].sum()), int(length[uses == UNKNOWN].sum())
    found = steps(trace)
    return KernelsPayload(
        rows=rows,
        memory_operations=_memory_operations(trace, kept),
        tensor_cores=TensorCoreTime(used, int(length.sum()) - used - unknown, unknown),
        calls=len(table.rows),
        total_ns=int(length.sum()),
        group_by=params.group_by,
        streams=_streams(trace),
        steps=list(dict.fromkeys(found.names)) if found.recorded else [],
        reasons=_reasons(trace, rows),
    )


def _filter(params: Any) -> Filter:
    return Filter(params.step, params.device, params.stream, params.operator)


def _rows(trace: Trace, table: Table, group_by: str) -> list[KernelRow]:
    groups = table.groups
    if len(groups) == 0:
        return []
    first = table.rows[groups.first]
    length = (ends(trace) - trace.events.start)[table.rows]
    total, calls = groups.sums(length), groups.counts
    order = order_statistics(groups, length, 0.5, 0.95)
    blocks = weighted_means(groups, trace.arg_float("blocks per SM", table.rows), length)
    occupancy = weighted_means(groups, trace.arg_float("est. achieved occupancy %", table.rows), length) / 100
    uses = {YES: True, UNKNOWN: None}
    by_launch = group_by == "launch"
    limits = limiters(trace, first).tolist() if by_launch else _common(groups, limiters(trace, table.rows))
    nothing: list[Any] = [None] * len(groups)
    columns = (
        first.tolist(),
        [trace.strings[code] if code >= 0 else "" for code in trace.events.name[first].tolist()],
        *(_launch(trace, first) if by_launch else [nothing] * 5),
        calls.tolist(),
        total.tolist(),
        (total / calls).tolist(),
        *(quantile.tolist() for quantile in order.quantiles),
        order.most.tolist(),
        order.least.tolist(),
        _known(blocks),
        _known(occupancy),
        [uses.get(use, False) for use in uses_tensor_cores(trace)[first].tolist()],
        [LIMITERS[code] if code != NO_CODE else None for code in limits],
    )
    return [KernelRow(*row) for row in zip(*columns, strict=True)]


def _common(groups: Any, codes: Any) -> list[int]:
    """The code that all launches of a group share, else NO_CODE."""
    if (codes == NO_CODE).all():
        return [NO_CODE] * len(groups)
    low = np.full(len(groups), np.iinfo(np.int32).max)
    high = np.full(len(groups), NO_CODE)
    np.minimum.at(low, groups.which, codes)
    np.maximum.at(high, groups.which, codes)
    shared: list[int] = np.where(low == high, high, NO_CODE).tolist()
    return shared


def _launch(trace: Trace, first: Any) -> list[list[Any]]:
    def texts(key: str) -> list[str | None]:
        codes, dictionary = trace.arg_codes(key)
        return [dictionary[code] if code >= 0 else None for code in codes[first].tolist()]

    def numbers(key: str) -> list[int | None]:
        return [None if value == ABSENT else value for value in trace.arg_int(key, first).tolist()]

    names = [trace.strings[code] if code >= 0 else None for code in operator_name(trace, first).tolist()]
    return [names, texts("grid"), texts("block"), numbers("registers per thread"), numbers("shared memory")]


def _known(values: Float64) -> list[float | None]:
    return [value if value == value else None for value in values.tolist()]


def _memory_operations(trace: Trace, kept: Filter) -> list[MemoryOperationRow]:
    table = memory_operations(trace, kept)
    groups = table.groups
    if len(groups) == 0:
        return []
    length = (ends(trace) - trace.events.start)[table.rows]
    size, known = moved(trace, table.rows)
    total, calls, moved_bytes = groups.sums(length), groups.counts, groups.sums(size)
    all_known = np.bincount(groups.which, known, minlength=len(groups)) == calls
    fills = set(of_kind(trace, Kind.MEMSET).tolist())
    listed = []
    for i, row in enumerate(table.rows[groups.first].tolist()):
        told = int(moved_bytes[i]) if all_known[i] else None
        listed.append(
            MemoryOperationRow(
                event=row,
                name=trace.strings[trace.events.name[row]] if trace.events.name[row] >= 0 else "",
                kind="memset" if row in fills else "memcpy",
                calls=int(calls[i]),
                bytes=told,
                total_ns=int(total[i]),
                mean_ns=float(total[i] / calls[i]),
                max_ns=int(length[groups.members(i)].max()),
                bandwidth=float(told / (total[i] / 1e9)) if told is not None and total[i] > 0 else None,
            )
        )
    return sorted(listed, key=lambda row: row.total_ns, reverse=True)


def _streams(trace: Trace) -> list[KernelStream]:
    work = of_kind(trace, *DEVICE)
    device, stream = device_of(trace)[work], stream_of(trace)[work]
    groups = group(device, stream)
    calls, total = groups.counts.tolist(), groups.sums((ends(trace) - trace.events.start)[work]).tolist()
    pairs = zip(device[groups.first].tolist(), stream[groups.first].tolist(), calls, total, strict=True)
    return sorted(
        (KernelStream(*each) for each in pairs if ABSENT not in each[:2]),
        key=lambda each: (each.device, each.stream),
    )


def _reasons(trace: Trace, rows: list[KernelRow]) -> dict[str, str]:
    reasons = {}
    if all(row.mean_blocks_per_sm is None for row in rows):
        reasons["mean_blocks_per_sm"] = "the profiler of this device does not record `blocks per SM`"
    if all(row.mean_occupancy is None for row in rows):
        reasons["mean_occupancy"] = "the profiler of this device does not estimate the occupancy"
    if all(row.tc_used is None for row in rows):
        reasons["tc_used"] = "the names of these kernels do not tell"
    if all(row.limiter is None for row in rows):
        reasons["limiter"] = "the trace does not have the device's limits, or not the kernels' registers"
    return reasons


class KernelRowParams(msgspec.Struct, frozen=True):
    """A row of the table as it is grouped and filtered: `event` of it (of a kernel, a copy or a fill)."""

    event: int
    group_by: GroupBy = "name"
    step: str = ""
    device: int | None = None
    stream: int | None = None
    operator: str = ""


def build_instances(trace: Trace, params: KernelRowParams) -> Instances:
    """How long the launches of a row take; NotFoundError if the event is none of the table."""
    for table in (
        kernel_table(trace, params.group_by, _filter(params)),
        memory_operations(trace, _filter(params)),
    ):
        at = np.flatnonzero(table.rows == params.event)
        if len(at):
            rows = table.rows[table.groups.members(int(table.groups.which[at[0]]))]
            return instances(trace, rows, (ends(trace) - trace.events.start)[rows])
    raise NotFoundError(f"event {params.event} is no device work of this table")


def unavailable(trace: Trace) -> str | None:
    """The table needs one kernel, copy or fill."""
    if len(of_kind(trace, *DEVICE)):
        return None
    if devices(trace):
        return "no kernels are recorded; `activities=[..., ProfilerActivity.CUDA]` (or XPU, MTIA) records them"
    return "no device work is recorded; `activities=[..., ProfilerActivity.CUDA]` (or XPU, MTIA) records it"


TAB = Tab(
    "Where the time goes",
    TraceView("kernels", "Kernels", KernelsParams, KernelsPayload, build),
    unavailable,
    (TraceView("kernels/instances", "Durations", KernelRowParams, Instances, build_instances),),
)
