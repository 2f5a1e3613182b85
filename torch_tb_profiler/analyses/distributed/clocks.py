"""One clock for all ranks: the time of day in their files, corrected where collectives show that it is off.

If a trainer let all ranks meet and each recorded the time (`model.trainer.clock`), that moment is the same for
all.

A collective that every rank must reach (an all-reduce, for example) ends on all of them at about the same moment,
however late some of them arrived. So the median difference of shared ends is the difference of two clocks, and its
spread is the remaining error. A rank that shares no collective with the reference is reached through other ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.analyses.distributed.medians import middle_means
from torch_tb_profiler.analyses.distributed.operations import select
from torch_tb_profiler.analyses.shared.grouping import positions_by_value
from torch_tb_profiler.base.arrays import distinct_numbers, median
from torch_tb_profiler.model.communication.events import ALL_TO_ALL
from torch_tb_profiler.model.trace import Bool, Int64

_ENDING_TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "barrier", *ALL_TO_ALL)
"""Collectives that end on all ranks at about the same moment."""

_MIN_TIME_OF_DAY_NS = 10**18
"""A clock below this (September 2001) doesn't show the time of day."""

_MIN_CORRECTION_NS, _MIN_CORRECTION_RESIDUALS = 20_000, 3
"""A clock is corrected if ends differ by more than this time and by more than this many residuals."""

UNKNOWN_ERROR_NS = 2**60
"""Error of a clock that shares no ends with another clock."""

_MAX_AGREEING_SPREAD_NS, _MIN_AGREEING_ENDS = 100_000, 3
"""Ends in groups with unlisted ranks count as shared if at least this many agree to within this time."""

ClockMethod = Literal["reference", "base_time", "clock_sync", "collective_ends", "none"]


class RankClock(msgspec.Struct, frozen=True):
    """The clock of one rank; job time = time in its trace + shift.

    offset    ns by which its time of day was corrected, None if it has none
    residual  ns, median distance of shared ends after the correction; without shared ends the error that the
              trainer recorded for the moment at which all ranks met, else None
    ends      number of shared ends
    shift     ns, None with method none
    """

    method: ClockMethod
    offset: int | None
    residual: int | None
    ends: int
    shift: int | None


class RankClocks(msgspec.Struct, frozen=True):
    """One clock per source of the job; `origin` is job time 0 in ns since the epoch, None if no file shows it."""

    clocks: tuple[RankClock, ...]
    origin: int | None

    def shifts(self) -> tuple[Int64, Bool]:
        """Return (int64[sources] ns, bool[sources] whether it is known); unknown shifts are 0."""
        known = np.array([clock.shift is not None for clock in self.clocks], np.bool_)
        return np.array([clock.shift or 0 for clock in self.clocks], np.int64), known

    def residuals(self) -> Int64:
        """Return int64[sources] ns, UNKNOWN_ERROR_NS where unknown."""
        known = [UNKNOWN_ERROR_NS if clock.residual is None else clock.residual for clock in self.clocks]
        return np.array(known, np.int64)

    def start_skew(self) -> int | None:
        """Return the ns from the first to the last start of a recording, None without two ranks on one clock."""
        shifts = [clock.shift for clock in self.clocks if clock.shift is not None]
        return max(shifts) - min(shifts) if len(shifts) > 1 else None


def align_clocks(job: DistributedJob, matching: Matching) -> RankClocks:
    """Align all ranks to one clock: that of the first rank that has the time of day and shares a collective."""
    days = [_time_of_day(job, position) for position in range(len(job.sources))]
    if not days:
        return RankClocks((), None)
    sharing = set(distinct_numbers(job.table.member[matching.compared]))
    candidates = [i for i, day in enumerate(days) if day is not None] or list(range(len(days)))
    reference = next((i for i in candidates if i in sharing), candidates[0])
    zero = days[reference] or 0
    syncs = _sync_offsets(job, days, reference)
    sync_shifts = [0 if sync is None else sync.offset for sync in syncs]
    nominal = np.array(
        [0 if day is None else day + by - zero for day, by in zip(days, sync_shifts, strict=True)], np.int64
    )
    offsets = _EndOffsets(job, matching, nominal, reference)
    host_offsets = _estimate_host_offsets(job, offsets, [day is not None for day in days], reference)
    clocks = [
        _build_rank_clock(offsets, nominal, i, day is not None, i == reference, host_offsets, syncs[i])
        for i, day in enumerate(days)
    ]
    first = min(clock.shift for clock in clocks if clock.shift is not None)
    from_first = tuple(
        clock if clock.shift is None else replace(clock, shift=clock.shift - first) for clock in clocks
    )
    return RankClocks(from_first, None if days[reference] is None else zero + first)


def _time_of_day(job: DistributedJob, position: int) -> int | None:
    """Return the first event's time in ns since the epoch, None if the file does not record it."""
    summary = job.sources[position].summary
    start = summary.base_ns + summary.trace_start_ns
    return start if start >= _MIN_TIME_OF_DAY_NS else None


class _SyncOffset(msgspec.Struct, frozen=True):
    """The ns by which a rank's time of day is behind the reference's, and the error of that in ns."""

    offset: int
    error: int


def _sync_offsets(job: DistributedJob, days: Sequence[int | None], reference: int) -> list[_SyncOffset | None]:
    """Return offsets from the moment at which a trainer let all ranks meet, None for ranks that didn't record it.

    Each rank records it on its own clock, to within its error.
    """
    syncs = [source.summary.sync for source in job.sources]
    reference_sync, zero = syncs[reference], days[reference]
    if reference_sync is None or zero is None:
        return [None] * len(days)
    return [
        None
        if day is None or sync is None or i == reference
        else _SyncOffset((zero + reference_sync.at) - (day + sync.at), reference_sync.error + sync.error)
        for i, (day, sync) in enumerate(zip(days, syncs, strict=True))
    ]


def _estimate_host_offsets(
    job: DistributedJob, offsets: _EndOffsets, dated: Sequence[bool], reference: int
) -> Int64:
    """Return int64[sources], the ns by which each host's clock is ahead; the processes of a host share it.

    A process that differs from the median of its host (or from the reference) has an offset of its own.
    """
    shared: Int64 = offsets.offset.copy()
    processes: dict[str, list[int]] = {}
    for i, source in enumerate(job.sources):
        if source.host is not None and dated[i] and (offsets.ends[i] or i == reference):
            processes.setdefault(source.host, []).append(i)
    for ranks in processes.values():
        if len(ranks) > 1:
            middle = 0 if reference in ranks else int(median(offsets.offset[ranks]))
            for i in ranks:
                tolerance = max(_MIN_CORRECTION_RESIDUALS * offsets.residual[i], _MIN_CORRECTION_NS)
                if abs(offsets.offset[i] - middle) <= tolerance:
                    shared[i] = middle
    return shared


def _build_rank_clock(
    offsets: _EndOffsets,
    nominal: Int64,
    i: int,
    dated: bool,
    reference: bool,
    host_offsets: Int64,
    sync: _SyncOffset | None,
) -> RankClock:
    residual, ends = int(offsets.residual[i]), int(offsets.ends[i])
    known = residual if ends else None
    method: ClockMethod = "base_time" if sync is None else "clock_sync"
    sync_shift = 0 if sync is None else sync.offset
    if reference:
        reference_residual = 0 if len(nominal) == 1 else known
        return RankClock("reference", 0 if dated else None, reference_residual, ends, int(nominal[i]))
    if not ends:
        error = None if sync is None else sync.error
        if dated:
            return RankClock(method, sync_shift, error, 0, int(nominal[i]))
        return RankClock("none", None, None, 0, None)
    end_offset, offset = int(offsets.offset[i]), int(host_offsets[i])
    if dated and abs(offset) <= max(_MIN_CORRECTION_RESIDUALS * residual, _MIN_CORRECTION_NS):
        return RankClock(method, sync_shift, residual + abs(end_offset), ends, int(nominal[i]))
    error = residual + abs(end_offset - offset)
    corrected = sync_shift - offset if dated else None
    return RankClock("collective_ends", corrected, error, ends, int(nominal[i]) - offset)


def _find_certain_groups(job: DistributedJob) -> Bool:
    """Return bool[groups + 1], True for groups whose members are known to communicate with each other.

    Operations of several unknown groups that run at about the same time need not end together.
    """
    known = [
        len(members) <= 2 or group.ranks is not None or (group.name is not None and group.size == len(members))
        for members, group in zip(job.members, job.groups, strict=True)
    ]
    return np.array([*known, False], np.bool_)


class _EndOffsets:
    """Offsets of the nominal clocks from the reference's, measured by shared ends of collectives.

    offset          int64[n] ns by which each clock is ahead
    residual, ends  int64[n], as in RankClock
    """

    def __init__(self, job: DistributedJob, matching: Matching, nominal: Int64, reference: int) -> None:
        count = len(nominal)
        self.offset, self.residual = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.ends = np.zeros(count, np.int64)
        self._reached = np.zeros(count, np.bool_)
        self._reached[reference] = True
        shared = matching.compared & _find_certain_groups(job)[job.table.group[:]]
        for rows in (np.flatnonzero(shared & job.is_named(*_ENDING_TOGETHER)), np.flatnonzero(shared)):
            self._propagate(job, matching, nominal, rows)
        named = np.array([group.name is not None for group in job.groups] + [False])[job.table.group[:]]
        uncertain = np.flatnonzero(matching.compared & named & ~shared)
        self._propagate(job, matching, nominal, uncertain, uncertain=True)
        if len(nominal) > 1:
            others = np.flatnonzero(self.ends > 0)
            self.ends[reference] = self.ends[others].max(initial=0)
            self.residual[reference] = int(median(self.residual[others])) if len(others) else 0

    def _propagate(
        self, job: DistributedJob, matching: Matching, nominal: Int64, rows: Int64, uncertain: bool = False
    ) -> None:
        """Go from rank to rank along shared collectives until all reachable ranks have an offset.

        With `uncertain` it isn't sure that the collectives are shared, so several must agree.
        """
        if self._reached.all() or len(rows) == 0:
            return
        table = job.table
        member, instance = select(table.member, rows).astype(np.int64), select(matching.instance, rows)
        end = select(table.end, rows) + nominal[member]
        by_rank, by_collective = (
            positions_by_value(member, len(nominal)),
            positions_by_value(instance, len(matching)),
        )
        visited = np.zeros(len(matching), np.bool_)
        queue = np.flatnonzero(self._reached).tolist()
        for parent in queue:
            if self._reached.all():
                return
            row_of = dict(zip(instance[by_rank[parent]].tolist(), by_rank[parent].tolist(), strict=True))
            fresh = [collective for collective in row_of if not visited[collective]]
            if not fresh:
                continue
            # All ranks of a certain collective are reached now, so no other rank needs to visit it.
            visited[fresh] = not uncertain
            other = np.concatenate([by_collective[collective] for collective in fresh])
            repeats = [len(by_collective[collective]) for collective in fresh]
            own = np.repeat([row_of[collective] for collective in fresh], repeats)
            new = ~self._reached[member[other]]
            other, own = other[new], own[new]
            difference = end[other] - end[own]
            children, which, counts = np.unique(member[other], return_inverse=True, return_counts=True)
            middles = middle_means(difference, which, counts)
            spreads = middle_means(np.abs(difference - middles[which]), which, counts)
            if uncertain:
                agree = (counts >= _MIN_AGREEING_ENDS) & (spreads <= _MAX_AGREEING_SPREAD_NS)
                children, middles, spreads, counts = (
                    column[agree] for column in (children, middles, spreads, counts)
                )
            self.offset[children] = self.offset[parent] + middles
            self.residual[children] = spreads
            self.ends[children] = counts
            self._reached[children] = True
            queue += children.tolist()
