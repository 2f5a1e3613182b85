"""One clock for all ranks: the time of day in their files, corrected where collectives show that it is off.

A collective that every rank must reach (an all-reduce, say) ends on all of them at about the same moment,
however late some of them came. So the median difference of shared ends is the difference of two clocks, and
its spread the error that remains. A rank that shares no collective with the reference is reached by way of
others.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching import Matching
from torch_tb_profiler.model.communication.names import ALL_TO_ALL
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int64

_END_TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "barrier", *ALL_TO_ALL)

_EPOCH = 10**18
"""Clocks that show less (September 2001) do not tell the time of day."""

_SMALLEST_NS, _SPREADS = 20_000, 3
"""Differences of ends up to this, or so many of their spreads, are those of the ranks, not of their clocks."""

_SMALLEST_ON_HOST_NS, _SPREADS_ON_HOST = 1_000_000, 10
"""Likewise for ranks of one host, which should have one clock."""

Method = Literal["reference", "base_time", "collective_ends", "none"]


class Clock(msgspec.Struct, frozen=True):
    """A rank's clock; job time = time in its trace + shift.

    offset    ns that its time of day was corrected by, None where it has none
    residual  ns, median distance of shared ends after that, None without shared ones
    ends      how many these are
    shift     None with method none
    """

    method: Method
    offset: int | None
    residual: int | None
    ends: int
    shift: int | None


class Clocks(msgspec.Struct, frozen=True):
    """One clock per source of the job; `origin` ns since the epoch of job time 0, None if no file tells it."""

    clocks: tuple[Clock, ...]
    origin: int | None

    def shifts(self) -> tuple[Int64, Bool]:
        """(int64[sources], bool[sources] whether it can be compared); 0 where it cannot."""
        known = np.array([clock.shift is not None for clock in self.clocks], np.bool_)
        return np.array([clock.shift or 0 for clock in self.clocks], np.int64), known

    def residuals(self) -> Int64:
        """int64[sources]; 0 where unknown."""
        return np.array([clock.residual or 0 for clock in self.clocks], np.int64)


def align(job: Job, matching: Matching) -> Clocks:
    """Bring all ranks on one clock: that of the first rank that tells the time of day and shares a collective."""
    days = [_time_of_day(job, position) for position in range(len(job.sources))]
    if not days:
        return Clocks((), None)
    shares = set(job.table.member[matching.compared].tolist())
    told = [i for i, day in enumerate(days) if day is not None] or list(range(len(days)))
    reference = next((i for i in told if i in shares), told[0])
    zero = days[reference] or 0
    nominal = np.array([0 if day is None else day - zero for day in days], np.int64)
    reach = _Reach(job, matching, nominal, reference)
    hosts = [source.host for source in job.sources]
    clocks = []
    for i, day in enumerate(days):
        local = hosts[i] is not None and hosts[i] == hosts[reference]
        clocks.append(_clock(reach, nominal, i, day is not None, i == reference, local))
    first = min(clock.shift for clock in clocks if clock.shift is not None)
    moved = tuple(
        clock
        if clock.shift is None
        else Clock(clock.method, clock.offset, clock.residual, clock.ends, clock.shift - first)
        for clock in clocks
    )
    return Clocks(moved, None if days[reference] is None else zero + first)


def _time_of_day(job: Job, position: int) -> int | None:
    """ns since the epoch of the first event, None if the file does not tell."""
    summary = job.sources[position].summary
    start = summary.base_ns + summary.trace_start_ns
    return start if start >= _EPOCH else None


def _clock(reach: _Reach, nominal: Int64, i: int, told: bool, reference: bool, local: bool) -> Clock:
    residual, ends = int(reach.residual[i]), int(reach.ends[i])
    known = residual if ends else None
    if reference:
        return Clock("reference", 0 if told else None, 0 if len(nominal) == 1 else known, ends, int(nominal[i]))
    if not ends:
        return Clock("base_time", 0, None, 0, int(nominal[i])) if told else Clock("none", None, None, 0, None)
    offset = int(reach.offset[i])
    spreads, smallest = (_SPREADS_ON_HOST, _SMALLEST_ON_HOST_NS) if local else (_SPREADS, _SMALLEST_NS)
    if told and abs(offset) <= max(spreads * residual, smallest):
        return Clock("base_time", 0, residual + abs(offset), ends, int(nominal[i]))
    return Clock("collective_ends", -offset if told else None, residual, ends, int(nominal[i]) - offset)


def _certain(job: Job) -> Bool:
    """bool[groups]: groups of which it is known who communicates with whom; what several unknown groups do at
    about the same time does not end together."""
    few = [len(job.members_of(code)) <= 2 for code in range(len(job.groups))]
    known = [group.ranks is not None for group in job.groups]
    return np.array([*np.logical_or(few, known), False], np.bool_)


class _Reach:
    """offset int64[n]: by how much each nominal clock is ahead of the reference's; residual, ends likewise."""

    def __init__(self, job: Job, matching: Matching, nominal: Int64, reference: int) -> None:
        count = len(nominal)
        self.offset, self.residual = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.ends = np.zeros(count, np.int64)
        self._reached = np.zeros(count, np.bool_)
        self._reached[reference] = True
        shared = matching.compared & _certain(job)[job.table.group]
        for rows in (np.flatnonzero(shared & job.is_named(*_END_TOGETHER)), np.flatnonzero(shared)):
            self._spread(job, matching, nominal, rows)
        if len(nominal) > 1:
            others = np.flatnonzero(self.ends > 0)
            self.ends[reference] = self.ends[others].max(initial=0)
            self.residual[reference] = int(np.median(self.residual[others])) if len(others) else 0

    def _spread(self, job: Job, matching: Matching, nominal: Int64, rows: Int64) -> None:
        """Go from rank to rank along shared collectives until all that can be reached are."""
        table = job.table
        member, instance = table.member[rows].astype(np.int64), matching.instance[rows]
        end = table.end[rows] + nominal[member]
        queue = np.flatnonzero(self._reached).tolist()
        for parent in queue:
            if self._reached.all():
                return
            own = np.flatnonzero(member == parent)
            at = np.full(len(matching), NO_CODE)
            at[instance[own]] = own
            shared = np.flatnonzero((at[instance] >= 0) & ~self._reached[member])
            difference = end[shared] - end[at[instance[shared]]]
            order = np.argsort(member[shared], kind="stable")
            found, begin = np.unique(member[shared][order], return_index=True)
            for child, values in zip(found.tolist(), np.split(difference[order], begin[1:]), strict=False):
                middle = int(np.median(values))
                self.offset[child] = self.offset[parent] + middle
                self.residual[child] = int(np.median(np.abs(values - middle)))
                self.ends[child] = len(values)
                self._reached[child] = True
                queue.append(child)
