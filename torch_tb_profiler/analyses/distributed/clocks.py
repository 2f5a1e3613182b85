"""One clock for all ranks: the time of day in their files, corrected where collectives show that it is off.

Where a trainer let all ranks meet and each noted the time (`model.trainer.clock`), that moment is one for all.

A collective that every rank must reach (an all-reduce, say) ends on all of them at about the same moment,
however late some of them arrived. So the median difference of shared ends is the difference of two clocks, and
its spread the error that remains. A rank that shares no collective with the reference is reached through others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import Matching
from torch_tb_profiler.analyses.shared.grouping import split_by
from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.communication.names import ALL_TO_ALL
from torch_tb_profiler.model.trace import Bool, Int64

_END_TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "barrier", *ALL_TO_ALL)

_EPOCH = 10**18
"""A clock that shows less (September 2001) does not show the time of day."""

_SMALLEST_NS, _SPREADS = 20_000, 3
"""Ends may differ by this, or by so many of their spreads, before the clocks are held responsible."""

UNKNOWN_ERROR = 2**60
"""ns; the error of a clock that shares no ends with another: nothing is known of it."""

_AGREE_NS, _SEVERAL = 100_000, 3
"""Ends of groups whose ranks are not listed are shared if so many agree to within this time."""

Method = Literal["reference", "base_time", "clock_sync", "collective_ends", "none"]


class Clock(msgspec.Struct, frozen=True):
    """A rank's clock; job time = time in its trace + shift.

    offset    ns by which its time of day was corrected, None where it has none
    residual  ns, median distance of shared ends after that; without shared ones what the trainer notes as
              the error of the moment at which all met, else None
    ends      how many shared ends there are
    shift     ns, None with method none
    """

    method: Method
    offset: int | None
    residual: int | None
    ends: int
    shift: int | None


class Clocks(msgspec.Struct, frozen=True):
    """One clock per source of the job; `origin`: job time 0 as ns since the epoch, None if no file shows it."""

    clocks: tuple[Clock, ...]
    origin: int | None

    def shifts(self) -> tuple[Int64, Bool]:
        """(int64[sources] ns, bool[sources] whether it is known); 0 where it is not."""
        known = np.array([clock.shift is not None for clock in self.clocks], np.bool_)
        return np.array([clock.shift or 0 for clock in self.clocks], np.int64), known

    def residuals(self) -> Int64:
        """int64[sources] ns; UNKNOWN_ERROR where unknown."""
        known = [UNKNOWN_ERROR if clock.residual is None else clock.residual for clock in self.clocks]
        return np.array(known, np.int64)

    def start_skew(self) -> int | None:
        """ns from the first to the last rank to begin recording; None without two ranks on one clock."""
        shifts = [clock.shift for clock in self.clocks if clock.shift is not None]
        return max(shifts) - min(shifts) if len(shifts) > 1 else None


def align(job: Job, matching: Matching) -> Clocks:
    """Bring all ranks onto one clock: that of the first rank that has the time of day and shares a collective."""
    days = [_time_of_day(job, position) for position in range(len(job.sources))]
    if not days:
        return Clocks((), None)
    sharing = set(job.table.member[matching.compared].tolist())
    candidates = [i for i, day in enumerate(days) if day is not None] or list(range(len(days)))
    reference = next((i for i in candidates if i in sharing), candidates[0])
    zero = days[reference] or 0
    synced = _synchronized(job, days, reference)
    moved = [0 if each is None else each.offset for each in synced]
    nominal = np.array(
        [0 if day is None else day + by - zero for day, by in zip(days, moved, strict=True)], np.int64
    )
    offsets = _Offsets(job, matching, nominal, reference)
    shared = _of_hosts(job, offsets, [day is not None for day in days], reference)
    clocks = [
        _clock(offsets, nominal, i, day is not None, i == reference, shared, synced[i])
        for i, day in enumerate(days)
    ]
    first = min(clock.shift for clock in clocks if clock.shift is not None)
    from_first = tuple(
        clock if clock.shift is None else replace(clock, shift=clock.shift - first) for clock in clocks
    )
    return Clocks(from_first, None if days[reference] is None else zero + first)


def _time_of_day(job: Job, position: int) -> int | None:
    """ns since the epoch of the first event, None if the file does not record it."""
    summary = job.sources[position].summary
    start = summary.base_ns + summary.trace_start_ns
    return start if start >= _EPOCH else None


class _Synchronized(msgspec.Struct, frozen=True):
    """offset, error  ns: by how much a time of day is behind the reference's, and how surely"""

    offset: int
    error: int


def _synchronized(job: Job, days: Sequence[int | None], reference: int) -> list[_Synchronized | None]:
    """By the moment at which a trainer let all ranks meet; None of ranks that did not note it.

    Each notes it in its own clock, somewhere within its error.
    """
    met = [source.summary.sync for source in job.sources]
    own, zero = met[reference], days[reference]
    if own is None or zero is None:
        return [None] * len(days)
    return [
        None
        if day is None or sync is None or i == reference
        else _Synchronized((zero + own.at) - (day + sync.at), own.error + sync.error)
        for i, (day, sync) in enumerate(zip(days, met, strict=True))
    ]


def _of_hosts(job: Job, offsets: _Offsets, dated: Sequence[bool], reference: int) -> Int64:
    """int64[sources] ns: by how much the clock of each one's host is ahead; its processes share it. Where a
    process differs from the median of its host (or from the reference), it has an offset of its own."""
    shared: Int64 = offsets.offset.copy()
    processes: dict[str, list[int]] = {}
    for i, source in enumerate(job.sources):
        if source.host is not None and dated[i] and (offsets.ends[i] or i == reference):
            processes.setdefault(source.host, []).append(i)
    for ranks in processes.values():
        if len(ranks) > 1:
            middle = 0 if reference in ranks else int(median(offsets.offset[ranks]))
            for i in ranks:
                if abs(offsets.offset[i] - middle) <= max(_SPREADS * offsets.residual[i], _SMALLEST_NS):
                    shared[i] = middle
    return shared


def _clock(
    offsets: _Offsets,
    nominal: Int64,
    i: int,
    dated: bool,
    reference: bool,
    shared: Int64,
    synced: _Synchronized | None,
) -> Clock:
    residual, ends = int(offsets.residual[i]), int(offsets.ends[i])
    known = residual if ends else None
    method: Method = "base_time" if synced is None else "clock_sync"
    moved = 0 if synced is None else synced.offset
    if reference:
        return Clock("reference", 0 if dated else None, 0 if len(nominal) == 1 else known, ends, int(nominal[i]))
    if not ends:
        error = None if synced is None else synced.error
        return Clock(method, moved, error, 0, int(nominal[i])) if dated else Clock("none", None, None, 0, None)
    own, offset = int(offsets.offset[i]), int(shared[i])
    if dated and abs(offset) <= max(_SPREADS * residual, _SMALLEST_NS):
        return Clock(method, moved, residual + abs(own), ends, int(nominal[i]))
    error = residual + abs(own - offset)
    return Clock("collective_ends", moved - offset if dated else None, error, ends, int(nominal[i]) - offset)


def _certain_groups(job: Job) -> Bool:
    """bool[groups]: groups whose members are known to communicate with each other. Operations of several unknown
    groups that run at about the same time need not end together."""
    known = [
        len(members) <= 2 or group.ranks is not None or (group.name is not None and group.size == len(members))
        for members, group in zip(job.members, job.groups, strict=True)
    ]
    return np.array([*known, False], np.bool_)


class _Offsets:
    """offset int64[n] ns: how far each nominal clock is ahead of the reference's; residual, ends as in Clock."""

    def __init__(self, job: Job, matching: Matching, nominal: Int64, reference: int) -> None:
        count = len(nominal)
        self.offset, self.residual = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.ends = np.zeros(count, np.int64)
        self._reached = np.zeros(count, np.bool_)
        self._reached[reference] = True
        shared = matching.compared & _certain_groups(job)[job.table.group]
        for rows in (np.flatnonzero(shared & job.is_named(*_END_TOGETHER)), np.flatnonzero(shared)):
            self._spread(job, matching, nominal, rows)
        named = np.array([group.name is not None for group in job.groups] + [False])[job.table.group]
        self._spread(job, matching, nominal, np.flatnonzero(matching.compared & named & ~shared), doubtful=True)
        if len(nominal) > 1:
            others = np.flatnonzero(self.ends > 0)
            self.ends[reference] = self.ends[others].max(initial=0)
            self.residual[reference] = int(median(self.residual[others])) if len(others) else 0

    def _spread(self, job: Job, matching: Matching, nominal: Int64, rows: Int64, doubtful: bool = False) -> None:
        """Go from rank to rank along shared collectives until all that can be reached are. If it is doubtful
        whether they are shared, several must agree."""
        if self._reached.all() or len(rows) == 0:
            return
        table = job.table
        member, instance = table.member[rows].astype(np.int64), matching.instance[rows]
        end = table.end[rows] + nominal[member]
        own_of, joined = split_by(member, len(nominal)), split_by(instance, len(matching))
        spent = np.zeros(len(matching), np.bool_)
        queue = np.flatnonzero(self._reached).tolist()
        for parent in queue:
            if self._reached.all():
                return
            at = dict(zip(instance[own_of[parent]].tolist(), own_of[parent].tolist(), strict=True))
            fresh = [each for each in at if not spent[each]]
            if not fresh:
                continue
            # Whoever shares a collective with a rank is reached, unless that is doubtful: nobody else need ask it.
            spent[fresh] = not doubtful
            shared = np.concatenate([joined[each] for each in fresh])
            own = np.repeat([at[each] for each in fresh], [len(joined[each]) for each in fresh])
            new = ~self._reached[member[shared]]
            shared, own = shared[new], own[new]
            difference = end[shared] - end[own]
            children, which, counts = np.unique(member[shared], return_inverse=True, return_counts=True)
            middles = _medians(difference, which, counts)
            spreads = _medians(np.abs(difference - middles[which]), which, counts)
            if doubtful:
                agree = (counts >= _SEVERAL) & (spreads <= _AGREE_NS)
                children, middles, spreads, counts = (each[agree] for each in (children, middles, spreads, counts))
            self.offset[children] = self.offset[parent] + middles
            self.residual[children] = spreads
            self.ends[children] = counts
            self._reached[children] = True
            queue += children.tolist()


def _medians(values: Int64, which: Int64, counts: Int64) -> Int64:
    """int64[c]: the median of each; of an even number the mean of the two in the middle, towards 0."""
    ordered = values[np.lexsort((values, which))]
    begin = np.cumsum(counts) - counts
    low, high = (ordered[begin + place].astype(np.float64) for place in ((counts - 1) // 2, counts // 2))
    middles: Int64 = ((low + high) / 2).astype(np.int64)
    return middles
