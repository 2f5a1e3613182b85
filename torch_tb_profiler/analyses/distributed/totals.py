"""Communication operations summed: by worker and name, and by process group and name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job import JobTable
from torch_tb_profiler.analyses.distributed.operations import Column, SharedColumn, map_kinds, select
from torch_tb_profiler.analyses.distributed.rank_summary import OperationTotal
from torch_tb_profiler.analyses.distributed.waiting import bandwidths
from torch_tb_profiler.analyses.shared.grouping import Groups, dense_codes, group, positions_by_value
from torch_tb_profiler.analyses.shared.payload_values import optional_floats, optional_ints
from torch_tb_profiler.base.arrays import sums_by_number
from torch_tb_profiler.model.communication.collectives import TimingSource
from torch_tb_profiler.model.communication.events import DEVICE_BACKENDS
from torch_tb_profiler.model.trace import ABSENT, Int64


class WorkerTotal(msgspec.Struct, frozen=True):
    """The operations of one worker that share group, collective, and back end.

    operation  an example row of the job's table
    message    bytes that bandwidth refers to; all sizes are None if no operation records one
    latency    ns in which any of them runs, and exposed: ns of that not overlapped with computation; None without
               any time
    transfer, waiting  ns of the compared operations, None if none was compared
    algorithm_bandwidth, bus_bandwidth  bytes per second; at least that if `lower_bound`
    """

    operation: int
    timing: TimingSource
    calls: int
    bytes_in: int | None
    bytes_out: int | None
    message: int | None
    latency: int | None
    exposed: int | None
    transfer: int | None
    waiting: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool


def worker_totals(comparison: RankComparison) -> list[WorkerTotal]:
    """Return the totals in order of rank, then of the first operation."""
    job, table, split = comparison.job, comparison.job.table, comparison.split
    rows = group(table.member, _build_name_codes(table))
    transfer, waiting = split.sums(job, rows.which, len(rows))
    compared = np.bincount(select(rows.which, split.compared), minlength=len(rows)) > 0
    transfers = optional_ints(np.where(compared, transfer, ABSENT))
    waits = optional_ints(np.where(compared, waiting, ABSENT))
    bytes_in, bytes_out, messages = (
        _sum_known_values(rows, column) for column in (table.bytes_in, table.bytes_out, table.message)
    )
    bandwidth = bandwidths(job, split, rows.which, len(rows))
    algorithm, bus = optional_floats(bandwidth.algorithm), optional_floats(bandwidth.bus)
    counts, timings = rows.counts.tolist(), table.timing[rows.first].tolist()
    lower_bound, totals = bandwidth.lower_bound.tolist(), []
    recorded = _find_recorded_totals(comparison, rows.first)
    for i, (row, times) in enumerate(zip(rows.first.tolist(), recorded, strict=True)):
        timing = TimingSource(timings[i])
        # Without a kernel, the trace of a device operation only shows how long its launch took.
        launch = timing is not TimingSource.DEVICE and job.backend_of(row) in DEVICE_BACKENDS
        totals.append(
            WorkerTotal(
                operation=row,
                timing=timing,
                calls=counts[i],
                bytes_in=bytes_in[i],
                bytes_out=bytes_out[i],
                message=messages[i],
                latency=None if times is None else times.latency,
                exposed=None if times is None else times.exposed,
                transfer=transfers[i],
                waiting=waits[i],
                algorithm_bandwidth=None if launch else algorithm[i],
                bus_bandwidth=None if launch else bus[i],
                lower_bound=lower_bound[i],
            )
        )
    return totals


def _build_name_codes(table: JobTable) -> Int64:
    """Return int64[k], equal for operations that share group, collective, and back end."""
    columns = table.group, table.collective, table.backend
    return map_kinds(lambda *keys: dense_codes(*keys)[0], *columns)


def _sum_known_values(rows: Groups, column: Column) -> list[int | None]:
    """Return the sums of the known values, None where none is known."""
    if isinstance(column, SharedColumn):
        values = column.values
        which, calls = column.collect(rows.which)
    else:
        values, which, calls = column[:], rows.which, np.ones(1, np.int64)
    known = (values != ABSENT) & (calls > 0)
    some = np.bincount(which[known], minlength=len(rows)) > 0
    sums = sums_by_number(which, np.where(known, values * calls, 0), len(rows))
    return optional_ints(np.where(some, sums, ABSENT))


def _find_recorded_totals(comparison: RankComparison, rows: Int64) -> list[OperationTotal | None]:
    """Return the totals from the ranks' summaries for rows in order of rank, None without a timed operation."""
    job = comparison.job
    members, cells = job.table.member[rows].tolist(), job.table.row[rows].tolist()
    timing = job.table.timing[rows].tolist()
    results: list[OperationTotal | None] = []
    for member, places in groupby(range(len(rows)), members.__getitem__):
        summary = job.sources[member].summary
        totals = {(total.group, total.collective, total.backend): total for total in summary.totals}
        rows_of_rank = list(places)
        codes = summary.operations.name_codes([cells[place] for place in rows_of_rank])
        for place, names in zip(rows_of_rank, codes, strict=True):
            total = totals[names]
            results.append(total if timing[place] != TimingSource.NONE or total.latency else None)
    return results


class GroupTotal(msgspec.Struct, frozen=True):
    """The operations of one process group that share collective and back end, summed over the ranks.

    collectives  number of collectives across ranks: an operation that every rank runs once counts once
    compared     number of those that at least two ranks recorded equally
    mean_skew, max_skew  ns from the first to the last arrival, None without two ranks on one clock
    Other fields as in WorkerTotal.
    """

    operation: int
    collectives: int
    compared: int
    calls: int
    bytes_in: int | None
    message: int | None
    latency: int | None
    transfer: int | None
    waiting: int | None
    exposed: int | None
    mean_skew: float | None
    max_skew: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool


def group_totals(comparison: RankComparison, totals: Sequence[WorkerTotal]) -> dict[int, list[GroupTotal]]:
    """Return group -> its operations by name, most latency first."""
    job, table, matching = comparison.job, comparison.job.table, comparison.matching
    names = group(_build_name_codes(table))
    bandwidth = bandwidths(job, comparison.split, names.which, len(names))
    algorithm, bus = optional_floats(bandwidth.algorithm), optional_floats(bandwidth.bus)
    name_of = np.empty(len(matching), np.int64)
    name_of[matching.instance[::-1]] = names.which[::-1]
    compared = np.zeros(len(matching), np.bool_)
    compared[matching.instance[matching.compared]] = True
    parts: list[list[WorkerTotal]] = [[] for _ in range(len(names))]
    for worker_total in totals:
        parts[int(names.which[worker_total.operation])].append(worker_total)
    collectives_of = positions_by_value(name_of, len(names))
    by_group: dict[int, list[GroupTotal]] = {}
    for i, row in enumerate(names.first.tolist()):
        collectives = collectives_of[i]
        skews = comparison.arrivals.skew[collectives]
        skews = skews[skews != ABSENT]
        total = GroupTotal(
            operation=row,
            collectives=len(collectives),
            compared=int(compared[collectives].sum()),
            calls=sum(part.calls for part in parts[i]),
            bytes_in=_sum(part.bytes_in for part in parts[i]),
            message=_sum(part.message for part in parts[i]),
            latency=_sum(part.latency for part in parts[i]),
            transfer=_sum(part.transfer for part in parts[i]),
            waiting=_sum(part.waiting for part in parts[i]),
            exposed=_sum(part.exposed for part in parts[i]),
            mean_skew=float(skews.mean()) if len(skews) else None,
            max_skew=int(skews.max()) if len(skews) else None,
            algorithm_bandwidth=algorithm[i],
            bus_bandwidth=bus[i],
            lower_bound=bool(bandwidth.lower_bound[i]),
        )
        by_group.setdefault(int(table.group[row]), []).append(total)
    for listed in by_group.values():
        listed.sort(key=lambda total: (-(total.latency or 0), job.name_of(total.operation)))
    return by_group


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values, None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
