"""All that is known of a job once its ranks lie side by side."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.clocks import Clocks, align
from torch_tb_profiler.analyses.distributed.job import Job, Source, gather
from torch_tb_profiler.analyses.distributed.matching import Matching, match
from torch_tb_profiler.analyses.distributed.stragglers import Arrivals, arrivals
from torch_tb_profiler.analyses.distributed.waiting import Bandwidth, Split, bandwidths, split_waiting
from torch_tb_profiler.model.trace import ABSENT, Int64


class Comparison(msgspec.Struct, frozen=True):
    """The job's operations, which of them are one collective, and what follows from that."""

    job: Job
    matching: Matching
    clocks: Clocks
    split: Split
    arrivals: Arrivals


def compare(sources: Sequence[Source]) -> Comparison:
    """Lay these ranks side by side; one rank alone is compared with nobody."""
    job = gather(sources)
    matching = match(job)
    clocks = align(job, matching)
    split = split_waiting(job, matching)
    return Comparison(job, matching, clocks, split, arrivals(job, matching, clocks, split))


class CollectiveTable(msgspec.Struct, frozen=True):
    """Collectives across ranks, columns of length c, in order of first start; ABSENT where unknown.

    example  int64  an operation of the job's table that stands for it: group, names, sequence, step
    start, end  int64  job time of the first arrival and the last end
    message  int64  largest message of a rank
    longest  int64  ns of an operation; shortest: of the compared ones; waiting: sum over the ranks
    """

    example: Int64
    start: Int64
    end: Int64
    message: Int64
    longest: Int64
    shortest: Int64
    waiting: Int64
    bandwidth: Bandwidth


def collective_table(found: Comparison) -> CollectiveTable:
    """One row per collective."""
    table, instance, count = found.job.table, found.matching.instance, len(found.matching)
    example = np.empty(count, np.int64)
    example[instance[::-1]] = np.arange(len(table))[::-1]
    shift, aligned = found.clocks.shifts()
    timed = table.start != ABSENT
    placed = np.flatnonzero(timed & aligned[table.member])
    moved = shift[table.member[placed]]
    timed = np.flatnonzero(timed)
    compared = np.flatnonzero(found.matching.compared)
    known = np.zeros(count, np.bool_)
    known[instance[compared]] = True
    return CollectiveTable(
        example,
        start=_extreme(np.minimum, instance[placed], table.start[placed] + moved, count),
        end=_extreme(np.maximum, instance[placed], table.end[placed] + moved, count),
        message=_extreme(np.maximum, instance, table.message, count),
        longest=_extreme(np.maximum, instance[timed], table.busy[timed], count),
        shortest=_extreme(np.minimum, instance[compared], table.busy[compared], count),
        waiting=_sums(instance[compared], found.split.waiting[compared], known, count),
        bandwidth=bandwidths(found.job, found.split, instance, count),
    )


def _extreme(choose: np.ufunc, where: Int64, values: Int64, count: int) -> Int64:
    limits = np.iinfo(np.int64)
    none = limits.max if choose is np.minimum else limits.min
    found = np.full(count, none)
    choose.at(found, where, values)
    return np.where(found == none, ABSENT, found)


def _sums(where: Int64, values: Int64, known: np.ndarray, count: int) -> Int64:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, where, values)
    return np.where(known, sums, ABSENT)
