"""How much of a collective moves data, how much waits for other ranks, and which rank arrives last.

    rank 0  ......|-- waits -----------|== transfer ==|
    rank 1  ........|-- waits ---------|== transfer ==|
    rank 2  ...........................|== transfer ==|      late: from the others' median arrival to its own
                  ^ median of the others

The last rank to arrive does not wait, so the shortest time is the transfer; the rest of a rank's time, before the
transfer, is waiting. That needs no clock. Who arrived when does: arrivals are the starts of kernels (or of host
calls) on the job's clock, and a difference below the error of the clocks is none.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.clocks import RankClocks
from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.analyses.distributed.medians import others_and_middles
from torch_tb_profiler.analyses.distributed.operations import map_kinds, select
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.arrays import highest_by_number, lowest_by_number
from torch_tb_profiler.base.intervals import totals_by_owner
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int64


class WaitingSplit(msgspec.Struct, frozen=True):
    """Transfer and waiting by operation of the job's table; ABSENT where the collective was not compared.

    compared  bool[k]
    complete  bool[k]  compared with all ranks of its group, so that the transfer contains no waiting
    transfer, waiting  int64[k] ns; their sum is the latency
    """

    compared: Bool
    complete: Bool
    transfer: Int64
    waiting: Int64

    def sums(self, job: DistributedJob, owner: Int64, count: int) -> tuple[Int64, Int64]:
        """Return (int64[count] transfer, int64[count] waiting) of the operations of each owner (>= 0).

        Time in which two of an owner's operations run counts once.
        """
        rows = np.flatnonzero(self.compared & (owner >= 0))
        owner, end = select(owner, rows), select(job.table.end, rows)
        latency = totals_by_owner(owner, end - select(job.table.latency, rows), end, count)
        transfer = totals_by_owner(owner, end - select(self.transfer, rows), end, count)
        return transfer, latency - transfer


def split_waiting(job: DistributedJob, matching: Matching) -> WaitingSplit:
    """Split the time of every operation into transfer and waiting."""
    table = job.table
    compared = matching.compared
    instance, latency = select(matching.instance, compared), select(table.latency, compared)
    shortest = lowest_by_number(instance, latency, len(matching))
    if compared.all():
        transfer = shortest[instance]
        waiting = latency - transfer
    else:
        transfer, waiting = np.full(len(table), ABSENT), np.full(len(table), ABSENT)
        transfer[compared] = shortest[instance]
        waiting[compared] = latency - shortest[instance]
    return WaitingSplit(compared, compared & matching.complete[matching.instance], transfer, waiting)


def fastest_transfers(kind: Int64, sizes: Int64, times: Int64) -> Int64:
    """Return int64[n], the shortest of the times in which transfers of the same kind moved as much or more."""
    same = group(kind, sizes)
    fastest = lowest_by_number(same.which, times, len(same))
    kind_of = kind[same.first]
    by_size = np.lexsort((-sizes[same.first], kind_of))  # within each kind, the largest first
    for part in np.split(by_size, np.flatnonzero(np.diff(kind_of[by_size])) + 1):
        fastest[part] = np.minimum.accumulate(fastest[part])
    return fastest[same.which]


class BandwidthColumns(msgspec.Struct, frozen=True):
    """Bytes per second by owner, NaN where unknown.

    algorithm    of the message; bus: of the bytes that cross the slowest link
    lower_bound  bool: computed from times that include waiting
    """

    algorithm: Float64
    bus: Float64
    lower_bound: Bool


def bandwidths(job: DistributedJob, split: WaitingSplit, owner: Int64, count: int) -> BandwidthColumns:
    """Return the bandwidth of each owner's (>= 0) operations: all bytes over all time, where both are known.

    The time is the transfer if operations were compared with all ranks of the group. Otherwise it is the known
    part of the transfer, or the entire latency, and the result is a lower bound.
    """
    table = job.table
    sized = map_kinds(lambda message: message != ABSENT, table.message)
    known = (owner >= 0) & sized & (table.latency != ABSENT) & (table.latency > 0)
    exact = np.zeros(count, np.bool_)
    exact[owner[known & split.complete]] = True
    used = known & (split.complete | ~exact[owner])
    time = split.transfer if split.compared.all() else np.where(split.compared, split.transfer, table.latency)
    owner = select(owner, used)
    sums = [
        np.bincount(owner, select(values, used).astype(np.float64, copy=False), count)
        for values in (time, table.message, table.bus)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        return BandwidthColumns(sums[1] / sums[0] * 1e9, sums[2] / sums[0] * 1e9, ~exact)


class Arrivals(msgspec.Struct, frozen=True):
    """When ranks reached collectives. By operation of the job's table:

    lateness   int64[k]  ns after the median arrival of the other ranks, 0 if before it; ABSENT as `first`
    is_median  bool[k]   the rank with the median arrival

    By collective:

    first      int64[c]  job time of the first arrival, ABSENT without two ranks on one clock
    skew       int64[c]  ns from the first to the last arrival, ABSENT likewise
    last       int64[c]  row of the last to arrive, NO_CODE if the clocks' error exceeds the difference
    late_recording  bool[c]  the last rank had not yet started to record when the others arrived
    """

    lateness: Int64
    is_median: Bool
    first: Int64
    skew: Int64
    last: Int64
    late_recording: Bool

    @property
    def attributable(self) -> Bool:
        """Return bool[c]: it is known which rank arrived last, and its profiler was recording."""
        return (self.last >= 0) & ~self.late_recording


def collective_arrivals(
    job: DistributedJob, matching: Matching, clocks: RankClocks, split: WaitingSplit
) -> Arrivals:
    """Return the arrivals at all compared collectives."""
    table, count = job.table, len(matching)
    shift, aligned = clocks.shifts()
    rows = np.flatnonzero(split.compared & aligned[table.member])
    member = select(table.member, rows)
    time = select(table.start, rows) + shift[member]
    instance = select(matching.instance, rows)
    several = (np.bincount(instance, minlength=count) > 1)[instance]
    if not several.all():
        rows, time, instance, member = rows[several], time[several], instance[several], member[several]
    others, middles = others_and_middles(instance, time, count)
    lateness = np.full(len(table), ABSENT)
    lateness[rows] = np.maximum(time - others, 0)
    del others
    which = np.flatnonzero(middles >= 0)
    is_median = np.zeros(len(table), np.bool_)
    is_median[rows[middles[which]]] = True
    first, skew = np.full(count, ABSENT), np.full(count, ABSENT)
    earliest, latest = (extreme(instance, time, count) for extreme in (lowest_by_number, highest_by_number))
    first[which], skew[which] = earliest[which], (latest - earliest)[which]
    places = np.flatnonzero(time == latest[instance])
    final = np.full(count, NO_CODE, np.int64)
    final[instance[places]] = places  # the last write wins
    final = final[which]

    last, late_recording = np.full(count, NO_CODE), np.zeros(count, np.bool_)
    error, longest = (
        np.maximum(highest_by_number(instance, values, count), 0)
        for values in (clocks.residuals()[member], select(split.waiting, rows))
    )
    # Whatever the clocks show, a rank isn't later than the others waited.
    by_clock = lateness.copy()
    lateness[rows] = np.minimum(lateness[rows], longest[instance])
    apart = np.minimum(skew[which], longest[which])
    certain = apart // 2 > error[which]  # two clocks may be off by that much in opposite directions
    which, final = which[certain], final[certain]
    last[which] = rows[final]
    recording_start = shift[table.member[rows[final]]]
    late_recording[which] = recording_start > time[final] - by_clock[rows[final]]
    return Arrivals(lateness, is_median, first, skew, last, late_recording)
