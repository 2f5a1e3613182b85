"""The table of collectives across ranks: its columns, filters, and orders."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.waiting import Bandwidth, bandwidths
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int64

Sort = Literal[
    "start", "name", "group", "step", "ranks", "bytes", "latency", "transfer", "waiting", "skew", "bandwidth"
]


class CollectiveTable(msgspec.Struct, frozen=True):
    """Columns of length c, in order of first start; ABSENT where unknown.

    example  int64  a row of the job's table that stands for it: group, names, sequence, step
    start, end  int64  job time of the first arrival and of the last end
    message  int64  largest message of a rank
    latency  int64  ns, longest of the ranks
    transfer int64  ns, shortest latency of the compared ranks
    waiting  int64  ns, sum over the compared ranks of latency - transfer
    """

    example: Int64
    start: Int64
    end: Int64
    message: Int64
    latency: Int64
    transfer: Int64
    waiting: Int64
    bandwidth: Bandwidth


def collective_table(comparison: Comparison) -> CollectiveTable:
    """One row per collective."""
    table, instance, count = comparison.job.table, comparison.matching.instance, len(comparison.matching)
    example = np.empty(count, np.int64)
    example[instance[::-1]] = np.arange(len(table))[::-1]
    shift, aligned = comparison.clocks.shifts()
    has_time = table.start != ABSENT
    placed = np.flatnonzero(has_time & aligned[table.member])
    shifts = shift[table.member[placed]]
    timed = np.flatnonzero(has_time)
    compared = np.flatnonzero(comparison.matching.compared)
    known = np.zeros(count, np.bool_)
    known[instance[compared]] = True
    waiting = np.zeros(count, np.int64)
    np.add.at(waiting, instance[compared], comparison.split.waiting[compared])
    return CollectiveTable(
        example,
        start=_extreme(np.minimum, instance[placed], table.start[placed] + shifts, count),
        end=_extreme(np.maximum, instance[placed], table.end[placed] + shifts, count),
        message=_extreme(np.maximum, instance, table.message, count),
        latency=_extreme(np.maximum, instance[timed], table.latency[timed], count),
        transfer=_extreme(np.minimum, instance[compared], table.latency[compared], count),
        waiting=np.where(known, waiting, ABSENT),
        bandwidth=bandwidths(comparison.job, comparison.split, instance, count),
    )


def _extreme(choose: np.ufunc, which: Int64, values: Int64, count: int) -> Int64:
    """int64[count]: the least or the greatest value of each, ABSENT without any."""
    limits = np.iinfo(np.int64)
    none = limits.max if choose is np.minimum else limits.min
    extremes = np.full(count, none)
    choose.at(extremes, which, values)
    return np.where(extremes == none, ABSENT, extremes)


class CollectiveFilter(msgspec.Struct, frozen=True):
    """Which collectives to keep; None keeps all.

    group  id of a process group
    last   the worker that arrived last
    mismatched  those on which the ranks disagree
    """

    group: int | None = None
    name: str | None = None
    step: str | None = None
    last: str | None = None
    mismatched: bool = False


def select(
    comparison: Comparison, table: CollectiveTable, kept: CollectiveFilter, sort: Sort, descending: bool
) -> list[int]:
    """The collectives that pass the filter, in order. NotFoundError for a group, step, or worker not there."""
    rows = np.flatnonzero(_passes(comparison, table, kept))
    order = rows[np.argsort(_sort_key(comparison, table, sort)[rows], kind="stable")]
    ids: list[int] = (order[::-1] if descending else order).tolist()
    return ids


def _passes(comparison: Comparison, table: CollectiveTable, kept: CollectiveFilter) -> Bool:
    job = comparison.job
    passes = np.ones(len(comparison.matching), np.bool_)
    if kept.group is not None:
        if kept.group >= len(job.groups):
            raise NotFoundError(f"there is no process group {kept.group}", hint=f"0 to {len(job.groups) - 1}")
        passes &= job.table.group[table.example] == kept.group
    if kept.name is not None:
        passes &= np.array([job.name_of(row) == kept.name for row in table.example.tolist()], np.bool_)
    if kept.step is not None:
        if kept.step not in job.steps:
            raise NotFoundError(f"there is no step {kept.step!r}", hint=f"steps: {', '.join(job.steps[:20])}")
        passes &= job.table.step[table.example] == job.steps.index(kept.step)
    if kept.last is not None:
        if kept.last not in comparison.positions:
            raise NotFoundError(f"no worker {kept.last!r} is compared", hint="`ranks` of the view lists them")
        last = comparison.arrivals.last
        members = np.append(job.table.member, NO_CODE)[last]
        passes &= (last >= 0) & (members == comparison.positions[kept.last])
    if kept.mismatched:
        differing = [difference.instance for difference in comparison.matching.differences]
        passes &= np.isin(np.arange(len(passes)), differing)
    return passes


def _sort_key(comparison: Comparison, table: CollectiveTable, sort: Sort) -> Int64 | Float64:
    job, example = comparison.job, table.example
    names = np.array(sorted(range(len(job.names)), key=job.names.__getitem__), np.int64)
    rank_of_name = np.empty(len(names) + 1, np.int64)
    rank_of_name[names], rank_of_name[-1] = np.arange(len(names)), -1
    keys: dict[Sort, Int64 | Float64] = {
        "start": np.arange(len(example)),
        "name": rank_of_name[job.table.collective[example]],
        "group": job.table.group[example].astype(np.int64),
        "step": job.table.step[example].astype(np.int64),
        "ranks": comparison.matching.sizes,
        "bytes": table.message,
        "latency": table.latency,
        "transfer": table.transfer,
        "waiting": table.waiting,
        "skew": comparison.arrivals.skew,
        "bandwidth": np.nan_to_num(table.bandwidth.bus, nan=-1.0),
    }
    return keys[sort]
