"""What the rows of the kernel table sum to, column by column, and how work is spread over streams and cores."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.kernels.limits import LIMITERS, common_code, limiters
from torch_tb_profiler.analyses.kernels.table import Table, operator_name
from torch_tb_profiler.analyses.shared.grouping import Groups, group, order_statistics
from torch_tb_profiler.model.devices import copy_directions, device_ids, device_kind, moved_bytes, stream_ids
from torch_tb_profiler.model.engines import call_durations
from torch_tb_profiler.model.kernels.tensor_cores import TC_UNKNOWN, TC_YES, tensor_core_verdict
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int32, Int64, Trace

_AGREE = "the names of all its kernels agree"
_DIFFER = "its kernels differ"


class KernelSums(msgspec.Struct, frozen=True):
    """One entry per group of launches; times in ns, NaN and None where not known.

    event       int32[g]  row of the trace of the first launch
    blocks_per_sm, occupancy  float64[g]  means weighted by duration; occupancy as a ratio
    tc_used     runs on Tensor (matrix) cores, None where kernels of a group differ; tc_reason what this rests on
    limiter     what keeps more blocks off a multiprocessor, if it is the same for all launches
    """

    event: Int32
    calls: Int64
    total: Int64
    least: Int64
    most: Int64
    median: Float64
    p95: Float64
    blocks_per_sm: Float64
    occupancy: Float64
    tc_used: list[bool | None]
    tc_reason: list[str]
    limiter: list[str | None]


def kernel_sums(trace: Trace, table: Table) -> KernelSums:
    """The sums of every group of at least one launch."""
    groups, length = table.groups, durations(trace, table.rows)
    order = order_statistics(groups, length, 0.5, 0.95)
    event = table.rows[groups.first]
    limits = common_code(groups, limiters(trace, table.rows))
    verdicts = _verdicts(trace, table)
    return KernelSums(
        event=event,
        calls=groups.counts,
        total=groups.sums(length),
        least=order.least,
        most=order.most,
        median=order.quantiles[0],
        p95=order.quantiles[1],
        blocks_per_sm=weighted_means(groups, trace.arg_float("blocks per SM", table.rows), length),
        occupancy=weighted_means(groups, trace.arg_float("est. achieved occupancy %", table.rows), length) / 100,
        tc_used=[None if use == TC_UNKNOWN else use == TC_YES for use, _ in verdicts],
        tc_reason=[why for _, why in verdicts],
        limiter=[LIMITERS[code] if code != NO_CODE else None for code in limits.tolist()],
    )


def _verdicts(trace: Trace, table: Table) -> list[tuple[int, str]]:
    """Per group YES, NO or UNKNOWN for Tensor cores, and why; UNKNOWN where its kernels differ."""
    vendor = device_kind(trace)
    names, which = np.unique(trace.events.name[table.rows], return_inverse=True)
    each = [tensor_core_verdict(trace.strings[code], vendor) for code in names.tolist()]
    use = np.array([answer for answer, _ in each], np.int32)[which]
    # Shifted, so that what is not known is told from what differs.
    agreed = common_code(table.groups, (use - TC_UNKNOWN).astype(np.int32))
    one = common_code(table.groups, which.astype(np.int32))
    return [
        each[name]
        if name != NO_CODE
        else (TC_UNKNOWN, _DIFFER)
        if code == NO_CODE
        else (code + TC_UNKNOWN, _AGREE)
        for name, code in zip(one.tolist(), agreed.tolist(), strict=True)
    ]


def durations(trace: Trace, rows: Int32) -> Int64:
    """int64[k] ns; of a kernel that runs on several engines at once from its first begin to its last end."""
    return call_durations(trace, rows)


def weighted_means(groups: Groups, values: Float64, weights: Int64) -> Float64:
    """float64[g]: mean of the known values weighted by duration, NaN where none is known."""
    known = np.isfinite(values)
    sums = np.bincount(groups.which[known], values[known] * weights[known], minlength=len(groups))
    total = np.bincount(groups.which[known], weights[known].astype(np.float64), minlength=len(groups))
    plain = np.bincount(groups.which[known], values[known], minlength=len(groups))
    count = np.bincount(groups.which[known], minlength=len(groups))
    with np.errstate(invalid="ignore", divide="ignore"):
        # Kernels of no length weigh nothing; alone in their group they count alike.
        return np.where(total > 0, sums / total, plain / count)


class Launches(msgspec.Struct, frozen=True):
    """How some kernels were launched, one entry each; None where it is not recorded.

    registers per thread, shared_memory in bytes per block
    """

    operator: list[str | None]
    grid: list[str | None]
    block: list[str | None]
    registers: list[int | None]
    shared_memory: list[int | None]


def launches(trace: Trace, rows: Int32) -> Launches:
    """The launch parameters of kernels."""

    def texts(codes: Int32, dictionary: Sequence[str]) -> list[str | None]:
        return [dictionary[code] if code >= 0 else None for code in codes.tolist()]

    def numbers(key: str) -> list[int | None]:
        return [None if value == ABSENT else value for value in trace.arg_int(key, rows).tolist()]

    return Launches(
        operator=texts(operator_name(trace, rows), trace.strings),
        grid=texts(*trace.arg_codes("grid", rows)),
        block=texts(*trace.arg_codes("block", rows)),
        registers=numbers("registers per thread"),
        shared_memory=numbers("shared memory"),
    )


class MemoryOperationSums(msgspec.Struct, frozen=True):
    """One entry per name (and direction) of copies or memsets; times in ns, `bytes` meant where `known` for all.

    direction  as the file says it beside the name ("DEVICE_TO_HOST"); None where it does not
    """

    event: Int32
    direction: list[str | None]
    memset: Bool
    calls: Int64
    total: Int64
    most: Int64
    bytes: Int64
    known: Bool


def memory_operation_sums(trace: Trace, table: Table) -> MemoryOperationSums:
    """The sums of every group of at least one operation."""
    groups, length = table.groups, durations(trace, table.rows)
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
        most=order_statistics(groups, length).most,
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
    """The streams with work, by device and stream; work that names none is left out."""
    work = rows_of_kind(trace, *DEVICE_KINDS)
    device, stream = device_ids(trace)[work], stream_ids(trace)[work]
    groups = group(device, stream)
    totals = groups.sums((event_ends(trace) - trace.events.start)[work])
    columns = (device[groups.first], stream[groups.first], groups.counts, totals)
    streams = [StreamTime(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]
    named = [each for each in streams if ABSENT not in (each.device, each.stream)]
    return sorted(named, key=lambda each: (each.device, each.stream))
