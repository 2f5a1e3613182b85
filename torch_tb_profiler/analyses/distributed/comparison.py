"""The ranks of a job compared, what of the comparison is unknown, and what is excluded from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.clocks import RankClocks, align_clocks
from torch_tb_profiler.analyses.distributed.job import DistributedJob, RankSource, build_job
from torch_tb_profiler.analyses.distributed.matching import (
    Matching,
    has_own_time,
    match_collectives,
    ranks_without_times,
)
from torch_tb_profiler.analyses.distributed.waiting import (
    Arrivals,
    WaitingSplit,
    collective_arrivals,
    split_waiting,
)
from torch_tb_profiler.base.format import natural_sort_key
from torch_tb_profiler.base.memo import MemoizedStruct
from torch_tb_profiler.model.trace import ABSENT


class RankComparison(MemoizedStruct, frozen=True):
    """A job's operations, matched to collectives, with waiting and arrivals.

    positions   worker -> its index in the job's sources
    duplicates  worker -> the worker of the same rank that is compared in its place
    strangers   worker that isn't compared, as its job has another number of ranks -> that number
    """

    job: DistributedJob
    matching: Matching
    clocks: RankClocks
    split: WaitingSplit
    arrivals: Arrivals
    positions: Mapping[str, int]
    duplicates: Mapping[str, str]
    strangers: Mapping[str, int]

    @property
    def sources(self) -> tuple[RankSource, ...]:
        """Return the compared ranks, in order of rank."""
        return self.job.sources


def compare_ranks(candidates: Iterable[RankSource]) -> RankComparison:
    """Compare workers; of several with the same rank, only the first by name is compared.

    Where they are of jobs with different numbers of ranks, only those of the job with most workers are compared.
    """
    found = sorted(candidates, key=lambda source: natural_sort_key(source.worker))
    worlds = Counter(source.summary.world_size for source in found if source.summary.world_size)
    world = max(worlds, key=lambda size: (worlds[size], size), default=0)
    strangers: dict[str, int] = {}
    sources: list[RankSource] = []
    holders: dict[int, str] = {}
    duplicates: dict[str, str] = {}
    for source in found:
        other_world = source.summary.world_size
        if other_world and other_world != world:
            strangers[source.worker] = other_world
            continue
        if source.rank is not None and source.rank in holders:
            duplicates[source.worker] = holders[source.rank]
            continue
        if source.rank is not None:
            holders[source.rank] = source.worker
        sources.append(source)
    job = build_job(sorted(sources, key=lambda source: (source.rank is None, source.rank or 0)))
    matching = match_collectives(job)
    clocks = align_clocks(job, matching)
    split = split_waiting(job, matching)
    return RankComparison(
        job=job,
        matching=matching,
        clocks=clocks,
        split=split,
        arrivals=collective_arrivals(job, matching, clocks, split),
        positions={source.worker: position for position, source in enumerate(job.sources)},
        duplicates=duplicates,
        strangers=strangers,
    )


class MissingData(msgspec.Struct, frozen=True):
    """What the traces lack; each field is True if it applies at least once.

    alone         there are no other ranks
    uncompared    an operation was not compared with any of another rank
    unaligned     a collective has no two ranks on one clock
    unattributed  it is unknown who arrived last at a collective, as the clocks' error exceeds the skew
    unsized       an operation has no size, or none of known bandwidth
    untimed       an operation has no time
    unknown_members, unnamed_groups  a process group has no ranks, or no name
    stepless      a rank recorded no steps
    host_computation  a rank has no kernels
    """

    alone: bool
    uncompared: bool
    unaligned: bool
    unattributed: bool
    unsized: bool
    untimed: bool
    unknown_members: bool
    unnamed_groups: bool
    stepless: bool
    host_computation: bool


def find_missing_data(comparison: RankComparison) -> MissingData:
    """Find what the traces of the compared ranks lack."""
    table, arrivals, groups = comparison.job.table, comparison.arrivals, comparison.job.groups
    summaries = [source.summary for source in comparison.sources]
    return MissingData(
        alone=len(summaries) < 2,
        uncompared=not comparison.split.compared.all(),
        unaligned=bool((arrivals.skew == ABSENT).any()),
        unattributed=bool((arrivals.last < 0).any()),
        unsized=bool((table.message[:] == ABSENT).any() or np.isnan(table.bus[:]).any()),
        untimed=bool((table.start == ABSENT).any()),
        unknown_members=any(group.ranks is None for group in groups),
        unnamed_groups=any(group.name is None for group in groups),
        stepless=any(not summary.recorded_steps for summary in summaries),
        host_computation=any(not summary.by_kernels for summary in summaries),
    )


class Exclusions(msgspec.Struct, frozen=True):
    """What is excluded from the comparison.

    mismatched   number of collectives in which the ranks differ in name, size, or dtype
    untimed      indices of workers without any timed operation
    unaddressed  number of messages whose sender and receiver are not recorded
    uneven       number of collectives in steps in which the ranks ran different numbers of them
    unrecorded   number of collectives in which others waited before the last rank started to record
    late_recorders  indices of those last ranks
    """

    mismatched: int
    untimed: list[int]
    unaddressed: int
    uneven: int
    unrecorded: int
    late_recorders: list[int]


def find_exclusions(comparison: RankComparison) -> Exclusions:
    """Find what of the compared ranks is excluded."""
    matching, member, arrivals = comparison.matching, comparison.job.table.member, comparison.arrivals
    mismatched = {mismatch.instance for mismatch in matching.mismatches if mismatch.what != "missing"}
    uneven = has_own_time(comparison.job) & ~matching.compared & (matching.sizes > 1)[matching.instance]
    uneven[np.isin(matching.instance, list(mismatched))] = False
    unrecorded = np.flatnonzero(arrivals.late_recording)
    return Exclusions(
        mismatched=len(mismatched),
        untimed=ranks_without_times(comparison.job),
        unaddressed=int(matching.unaddressed.sum()),
        uneven=len(np.unique(matching.instance[uneven])),
        unrecorded=len(unrecorded),
        late_recorders=np.unique(member[arrivals.last[unrecorded]]).tolist(),
    )
