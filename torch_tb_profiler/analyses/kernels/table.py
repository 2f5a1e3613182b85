"""The kernel table: device work by name, launch parameters or family, with sums, limits and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import (
    Groups,
    dense_codes,
    group,
    order_statistics,
    rows_named,
    select_device_work,
)
from torch_tb_profiler.analyses.shared.origin_times import has_known_origin, rows_from_operator
from torch_tb_profiler.analyses.shared.typical_steps import typical_windows
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import covered_time
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.devices import copy_directions, device_ids, device_kind, moved_bytes, stream_ids
from torch_tb_profiler.model.engines import call_durations, deduplicate_executions
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes, family_mask
from torch_tb_profiler.model.kernels.tensor_cores import TC_UNKNOWN, TC_YES, tensor_core_verdict
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_kinds, event_lengths, event_spans, rows_of_kind
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.origins.compiled import has_indirect_kernels
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int32, Int64, Trace

KernelGrouping = Literal["name", "launch", "family"]
"""Rows by name; by name + operator + grid + block + registers + shared memory; or by the sort of work."""

OriginFilter = Literal["", "known", "unknown"]
"""All kernels; those whose operator or line is known; all others."""

LIMITERS = ("threads", "registers", "shared memory", "grid")

_AGREE = "the names of all its kernels agree"
_DIFFER = "its kernels differ"


class KernelFilter(msgspec.Struct, frozen=True):
    """Conditions on launches; "" and None are no condition."""

    step: str = ""
    device: int | None = None
    stream: int | None = None
    operator: str = ""
    family: str = ""
    origin: OriginFilter = ""


class KernelTable(msgspec.Struct, frozen=True):
    """Groups of kernels; `rows` int32[k] are their rows in the trace."""

    rows: Int32
    groups: Groups


def kernel_table(trace: Trace, group_by: KernelGrouping, conditions: KernelFilter) -> KernelTable:
    """Group the kernels that meet the conditions. NotFoundError for an unknown step."""
    rows = deduplicate_executions(trace, filter_device_work(trace, rows_of_kind(trace, Kind.KERNEL), conditions))
    keys: list[Any] = [family_codes(trace)[rows] if group_by == "family" else trace.events.name[rows]]
    if group_by == "launch":
        keys += [
            launching_operator_codes(trace, rows),
            trace.arg_codes("grid", rows)[0],
            trace.arg_codes("block", rows)[0],
            trace.arg_int("registers per thread", rows),
            trace.arg_int("shared memory", rows),
        ]
    return KernelTable(rows, group(*keys))


def filter_device_work(trace: Trace, rows: Int32, conditions: KernelFilter) -> Int32:
    """Return the rows that meet the conditions. UsageError for an unknown family."""
    rows = select_device_work(trace, rows, conditions.step, conditions.device, conditions.stream)
    if conditions.family:
        rows = rows[family_mask(trace, rows, conditions.family)]
    if conditions.origin:
        rows = rows[has_known_origin(trace, rows) == (conditions.origin == "known")]
    if not conditions.operator:
        return rows
    calls = operators(trace)
    matches = np.append(rows_named(trace, calls.rows, conditions.operator), False)[calls.owner[rows]]
    if has_indirect_kernels(trace):
        matches |= rows_from_operator(trace, rows, conditions.operator)
    chosen: Int32 = rows[matches]
    return chosen


def launching_operator_codes(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k]: codes of the names of the operators that launched each, NO_CODE if not linked."""
    calls = operators(trace)
    owner = calls.owner[rows]
    names = trace.events.name[calls.rows]
    return np.where(owner >= 0, names[owner] if len(names) else NO_CODE, NO_CODE).astype(np.int32)


def memory_operations(trace: Trace, conditions: KernelFilter) -> KernelTable:
    """Group copies and memsets by name, and by direction where the file records it beside the name."""
    rows = filter_device_work(trace, rows_of_kind(trace, Kind.MEMCPY, Kind.MEMSET), conditions)
    return KernelTable(rows, group(trace.events.name[rows], copy_directions(trace, rows)[0]))


def find_row_members(trace: Trace, group_by: KernelGrouping, conditions: KernelFilter, event: int) -> Int32:
    """Return int32[k]: rows of the launches that share a row of the tables with the device work `event`.

    NotFoundError if the event is in neither table.
    """
    for table in (kernel_table(trace, group_by, conditions), memory_operations(trace, conditions)):
        positions = np.flatnonzero(table.rows == event)
        if len(positions):
            return table.rows[table.groups.members(int(table.groups.which[positions[0]]))]
    raise NotFoundError(f"event {event} is not device work of this table")


class KernelSums(msgspec.Struct, frozen=True):
    """One entry per group of launches; times in ns, NaN and None where unknown.

    event       int32[g]  row of the trace of the first launch
    blocks_per_sm, occupancy  float64[g]  means weighted by duration; occupancy as a ratio
    tc_used     runs on Tensor (matrix) cores, None where kernels of a group differ; tc_reason what this rests on
    limiter     what keeps more blocks off a multiprocessor, if it is the same for all launches
    """

    event: Int32
    calls: Int64
    total: Int64
    min: Int64
    max: Int64
    median: Float64
    p95: Float64
    blocks_per_sm: Float64
    occupancy: Float64
    tc_used: list[bool | None]
    tc_reason: list[str]
    limiter: list[str | None]


def kernel_sums(trace: Trace, table: KernelTable) -> KernelSums:
    """Compute the sums of every group of at least one launch."""
    groups, length = table.groups, launch_durations(trace, table.rows)
    order = order_statistics(groups, length, 0.5, 0.95)
    event = table.rows[groups.first]
    limits = shared_codes(groups, occupancy_limiters(trace, table.rows))
    verdicts = _judge_groups(trace, table)
    return KernelSums(
        event=event,
        calls=groups.counts,
        total=groups.sums(length),
        min=order.least,
        max=order.most,
        median=order.quantiles[0],
        p95=order.quantiles[1],
        blocks_per_sm=weighted_means(groups, trace.arg_float("blocks per SM", table.rows), length),
        occupancy=weighted_means(groups, trace.arg_float("est. achieved occupancy %", table.rows), length) / 100,
        tc_used=[None if use == TC_UNKNOWN else use == TC_YES for use, _ in verdicts],
        tc_reason=[why for _, why in verdicts],
        limiter=[LIMITERS[code] if code != NO_CODE else None for code in limits.tolist()],
    )


def _judge_groups(trace: Trace, table: KernelTable) -> list[tuple[int, str]]:
    """Return per group whether it runs on Tensor Cores and why; unknown where its kernels differ."""
    vendor = device_kind(trace)
    names = trace.events.name[table.rows]
    which, _ = dense_codes(names)
    each = [tensor_core_verdict(trace.strings[code], vendor) for code in distinct_numbers(names)]
    use = np.array([answer for answer, _ in each], np.int32)[which]
    # Shifted, so that an unknown verdict differs from NO_CODE, which marks groups that disagree.
    agreed = shared_codes(table.groups, (use - TC_UNKNOWN).astype(np.int32))
    one = shared_codes(table.groups, which.astype(np.int32))
    return [
        each[name]
        if name != NO_CODE
        else (TC_UNKNOWN, _DIFFER)
        if code == NO_CODE
        else (code + TC_UNKNOWN, _AGREE)
        for name, code in zip(one.tolist(), agreed.tolist(), strict=True)
    ]


def launch_durations(trace: Trace, rows: Int32) -> Int64:
    """Return int64[k] ns; of a kernel on several engines at once from its first start to its last end."""
    return call_durations(trace, rows)


def weighted_means(groups: Groups, values: Float64, weights: Int64) -> Float64:
    """Return float64[g]: means of the known values weighted by duration, NaN where none is known."""
    known = np.isfinite(values)
    sums = np.bincount(groups.which[known], values[known] * weights[known], minlength=len(groups))
    total = np.bincount(groups.which[known], weights[known].astype(np.float64), minlength=len(groups))
    plain = np.bincount(groups.which[known], values[known], minlength=len(groups))
    count = np.bincount(groups.which[known], minlength=len(groups))
    with np.errstate(invalid="ignore", divide="ignore"):
        # Kernels of zero duration have no weight; a group of only those gets the plain mean.
        return np.where(total > 0, sums / total, plain / count)


class LaunchParameters(msgspec.Struct, frozen=True):
    """How kernels were launched, one entry each; None where not recorded.

    registers per thread, shared_memory in bytes per block
    """

    operator: list[str | None]
    grid: list[str | None]
    block: list[str | None]
    registers: list[int | None]
    shared_memory: list[int | None]


def launch_parameters(trace: Trace, rows: Int32) -> LaunchParameters:
    """Return the launch parameters of kernels."""

    def texts(codes: Int32, dictionary: Sequence[str]) -> list[str | None]:
        return [dictionary[code] if code >= 0 else None for code in codes.tolist()]

    def numbers(key: str) -> list[int | None]:
        return [None if value == ABSENT else value for value in trace.arg_int(key, rows).tolist()]

    return LaunchParameters(
        operator=texts(launching_operator_codes(trace, rows), trace.strings),
        grid=texts(*trace.arg_codes("grid", rows)),
        block=texts(*trace.arg_codes("block", rows)),
        registers=numbers("registers per thread"),
        shared_memory=numbers("shared memory"),
    )


class MemoryOperationSums(msgspec.Struct, frozen=True):
    """One entry per name (and direction) of copies or memsets; times in ns, `bytes` valid where `known` for all.

    direction  as recorded beside the name ("DEVICE_TO_HOST"); None where it is not
    """

    event: Int32
    direction: list[str | None]
    memset: Bool
    calls: Int64
    total: Int64
    max: Int64
    bytes: Int64
    known: Bool


def memory_operation_sums(trace: Trace, table: KernelTable) -> MemoryOperationSums:
    """Compute the sums of every group of at least one operation."""
    groups, length = table.groups, launch_durations(trace, table.rows)
    size = moved_bytes(trace, table.rows)
    known = size != ABSENT
    event = table.rows[groups.first]
    codes, texts = copy_directions(trace, event)
    return MemoryOperationSums(
        event=event,
        direction=[texts[code] if code >= 0 else None for code in codes.tolist()],
        memset=event_kinds(trace)[event] == Kind.MEMSET,
        calls=groups.counts,
        total=groups.sums(length),
        max=order_statistics(groups, length).most,
        bytes=groups.sums(np.where(known, size, 0)),
        known=np.bincount(groups.which, known, minlength=len(groups)) == groups.counts,
    )


class StreamTime(msgspec.Struct, frozen=True):
    """Device work on one stream, ns."""

    device: int
    stream: int
    calls: int
    total: int


def stream_times(trace: Trace) -> list[StreamTime]:
    """Return the streams with work, by device and stream; work without a recorded stream is left out."""
    work = rows_of_kind(trace, *DEVICE_KINDS)
    device, stream = device_ids(trace)[work], stream_ids(trace)[work]
    groups = group(device, stream)
    totals = groups.sums(event_lengths(trace, work))
    columns = (device[groups.first], stream[groups.first], groups.counts, totals)
    streams = [StreamTime(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]
    named = [each for each in streams if ABSENT not in (each.device, each.stream)]
    return sorted(named, key=lambda each: (each.device, each.stream))


def occupancy_limiters(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k]: index into LIMITERS of what keeps more blocks off a multiprocessor; NO_CODE where unknown.

    Blocks that fit by each resource of the device (`deviceProperties`) against the launch; "grid" where fewer
    blocks were launched than would fit. Granularity of allocation is left out.
    """
    limits = np.full(len(rows), NO_CODE, np.int32)
    block = _read_block_threads(trace, rows)
    registers = trace.arg_int("registers per thread", rows)
    shared = trace.arg_int("shared memory", rows)
    grid = trace.arg_float("blocks per SM", rows)
    device = device_ids(trace)[rows]
    for properties in _device_properties(trace):
        limits_per_sm = [properties.get(key) for key in ("maxThreadsPerMultiprocessor", "regsPerMultiprocessor")]
        memory = properties.get("sharedMemPerMultiprocessor")
        if not all(isinstance(value, int) and value > 0 for value in (*limits_per_sm, memory)):
            continue
        mine = (device == properties.get("id")) & (block > 0) & (registers > 0) & (shared != ABSENT)
        fits = np.stack(
            [
                limits_per_sm[0] // block[mine],
                limits_per_sm[1] // np.maximum(registers[mine] * block[mine], 1),
                np.where(shared[mine] > 0, memory // np.maximum(shared[mine], 1), np.iinfo(np.int32).max),
                np.where(np.isfinite(grid[mine]), np.ceil(grid[mine]), np.iinfo(np.int32).max),
            ]
        )
        limits[mine] = np.argmin(fits, axis=0)
    return limits


def _read_block_threads(trace: Trace, rows: Int32) -> Int64:
    codes, texts = trace.arg_codes("block")
    sizes = np.array([*map(_parse_product, texts), 0], np.int64)
    return sizes[codes[rows]]


def _parse_product(text: str) -> int:
    numbers = [int(part) for part in text.strip("[] ").split(",") if part.strip().isdigit()]
    return int(np.prod(numbers)) if len(numbers) == 3 else 0


def _device_properties(trace: Trace) -> list[dict[str, Any]]:
    listed = trace.metadata.get("deviceProperties")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def shared_codes(groups: Groups, codes: Int32) -> Int32:
    """Return int32[g]: the code that all launches of a group share, else NO_CODE."""
    low = np.full(len(groups), np.iinfo(np.int32).max, np.int32)
    high = np.full(len(groups), NO_CODE, np.int32)
    np.minimum.at(low, groups.which, codes)
    np.maximum.at(high, groups.which, codes)
    return np.where(low == high, high, NO_CODE).astype(np.int32)


class FamilyTime(msgspec.Struct, frozen=True):
    """Kernels, copies and memsets of one family: number of distinct names, launches, and total ns."""

    family: str
    names: int
    calls: int
    total: int


def family_times(trace: Trace, conditions: KernelFilter) -> list[FamilyTime]:
    """Return the families, largest first; the family in `conditions` is ignored, so that another can be chosen."""
    rows = deduplicate_executions(
        trace,
        filter_device_work(
            trace, rows_of_kind(trace, *DEVICE_KINDS), msgspec.structs.replace(conditions, family="")
        ),
    )
    family, length, name = family_codes(trace)[rows], launch_durations(trace, rows), trace.events.name[rows]
    times = []
    for number in distinct_numbers(family):
        mine = family == number
        names = len(distinct_numbers(name[mine]))
        times.append(FamilyTime(FAMILIES[number], names, int(mine.sum()), int(length[mine].sum())))
    return sorted(times, key=lambda each: each.total, reverse=True)


class LargestKernel(msgspec.Struct, frozen=True):
    """The kernel name with the most time.

    row    row of its longest launch
    share  of its launches in the time of all kernels, even where kernels overlap
    """

    row: int
    share: float


@derived
def largest_kernel(trace: Trace) -> LargestKernel | None:
    """Return the kernel name with the largest total time; None where no kernel takes time."""
    table = kernel_table(trace, "name", KernelFilter())
    return _find_largest(table, launch_durations(trace, table.rows))


@derived
def largest_typical_kernel(trace: Trace) -> LargestKernel | None:
    """Return the kernel name with the largest time in typical steps; None where no kernel takes any."""
    table, windows = kernel_table(trace, "name", KernelFilter()), typical_windows(trace)
    return _find_largest(table, covered_time(windows, *event_spans(trace, table.rows)))


def _find_largest(table: KernelTable, length: Int64) -> LargestKernel | None:
    """Return the name with the largest sum of `length`, int64[k] ns by launch."""
    if (total := int(length.sum())) <= 0:
        return None
    sums = table.groups.sums(length)
    top = int(np.argmax(sums))
    members = table.groups.members(top)
    return LargestKernel(int(table.rows[members[np.argmax(length[members])]]), float(sums[top]) / total)
