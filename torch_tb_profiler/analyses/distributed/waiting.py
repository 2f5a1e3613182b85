"""How much of a collective moves data, and how much waits for ranks that arrive later.

    rank 0  |--- waits ---|== transfer ==|
    rank 1                |== transfer ==|     the last to arrive does not wait: the shortest time is the transfer

No clock is needed for that. The transfer of a rank is the end of its time; all before it is waiting.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import Matching
from torch_tb_profiler.base.intervals import merge_by_owner
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int64


class Split(msgspec.Struct, frozen=True):
    """Columns by operation of the job's table; ABSENT where the collective was not compared.

    compared  bool[k]; complete: with all ranks of its group, so that the transfer contains no waiting
    transfer, waiting  int64[k] ns; their sum is the latency
    """

    compared: Bool
    complete: Bool
    transfer: Int64
    waiting: Int64

    def sums(self, job: Job, owner: Int64, count: int) -> tuple[Int64, Int64]:
        """(int64[count] transfer, int64[count] waiting) of the operations that each owner (>= 0) has.

        Time in which two of an owner's operations run counts once.
        """
        rows = np.flatnonzero(self.compared & (owner >= 0))
        end = job.table.end[rows]
        latency = merge_by_owner(owner[rows], end - job.table.latency[rows], end).totals(count)
        transfer = merge_by_owner(owner[rows], end - self.transfer[rows], end).totals(count)
        return transfer, latency - transfer


def split_waiting(job: Job, matching: Matching) -> Split:
    """Transfer and waiting of every operation."""
    table = job.table
    compared = matching.compared
    shortest = np.full(len(matching), np.iinfo(np.int64).max)
    np.minimum.at(shortest, matching.instance[compared], table.latency[compared])
    transfer = np.full(len(table), ABSENT)
    transfer[compared] = shortest[matching.instance[compared]]
    waiting = np.where(compared, table.latency - np.where(compared, transfer, 0), ABSENT)
    return Split(compared, compared & matching.complete[matching.instance], transfer, waiting)


class Bandwidth(msgspec.Struct, frozen=True):
    """Bytes per second: `algorithm` of the message, `bus` of what crosses the slowest link (NaN unknown).

    lower_bound  bool: they are computed from times that include waiting
    """

    algorithm: Float64
    bus: Float64
    lower_bound: Bool


def bandwidths(job: Job, split: Split, owner: Int64, count: int) -> Bandwidth:
    """Of the operations that each owner (>= 0) has: all bytes over all time, of those with both.

    The time is the transfer where operations were compared with those of all ranks of the group. Otherwise it is
    what is known of the transfer, or the whole latency, and the result is a lower bound.
    """
    table = job.table
    known = (owner >= 0) & (table.message != ABSENT) & (table.latency != ABSENT) & (table.latency > 0)
    exact = np.zeros(count, np.bool_)
    exact[owner[known & split.complete]] = True
    used = known & (split.complete | ~exact[owner])
    time = np.where(split.compared, split.transfer, table.latency)[used]
    sums = [
        np.bincount(owner[used], np.asarray(values, np.float64), count)
        for values in (time, table.message[used], table.bus[used])
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        return Bandwidth(sums[1] / sums[0] * 1e9, sums[2] / sums[0] * 1e9, ~exact)
