"""The process groups of a job, and the parallel dimensions that they form.

Eight ranks with tensor parallelism of two and data parallelism of four communicate in

    tp  0 1 | 2 3 | 4 5 | 6 7          four groups of two
    dp  0 2 4 6 | 1 3 5 7              two groups of four

Rank 5 has place 1 in its group of `tp` and place 2 in its group of `dp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job import group_ranks
from torch_tb_profiler.analyses.distributed.matching import MATCH_METHODS, MatchedBy, ranks_without_times
from torch_tb_profiler.analyses.shared.grouping import positions_by_value
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.model.communication.groups import MAX_RANKS, ProcessGroup
from torch_tb_profiler.model.trace import NO_CODE, Int64

_DEFAULT_DESCRIPTIONS = ("", "undefined", "default_pg")
"""Descriptions that PyTorch writes for groups that nobody described."""


class GroupUsage(msgspec.Struct, frozen=True):
    """Who communicates in one process group.

    members     indices of the workers that communicate in it
    matched_by  the method that matched most of its collectives, None with one rank
    absent_ranks  ranks of the group that are not compared; empty if a rank is unknown
    mismatches  number of collectives on which its ranks disagree
    """

    members: list[int]
    backends: list[str]
    ranks: list[int] | None
    matched_by: MatchedBy | None
    absent_ranks: list[int]
    mismatches: int


def group_usage(comparison: RankComparison) -> list[GroupUsage]:
    """Return the usage of each process group, in the order of the job's groups."""
    job, table, matching = comparison.job, comparison.job.table, comparison.matching
    mismatched = np.zeros(len(matching), np.bool_)
    mismatched[[mismatch.instance for mismatch in matching.mismatches]] = True
    present = {source.rank for source in comparison.sources}
    usage = []
    parts = zip(job.groups, job.members, positions_by_value(table.group[:], len(job.groups)), strict=True)
    for group, members, rows in parts:
        collectives = np.unique(matching.instance[rows])
        shared = collectives[matching.sizes[collectives] > 1]
        methods = np.bincount(matching.method[shared], minlength=len(MATCH_METHODS))
        ranks = group_ranks(group)
        usage.append(
            GroupUsage(
                members=members,
                backends=[job.names[code] for code in distinct_numbers(table.backend[rows]) if code != NO_CODE],
                ranks=ranks,
                matched_by=MATCH_METHODS[int(methods.argmax())] if methods.any() else None,
                absent_ranks=[] if None in present else [rank for rank in ranks or () if rank not in present],
                mismatches=int(mismatched[collectives].sum()),
            )
        )
    return usage


def world_sizes(comparison: RankComparison) -> list[int]:
    """Return the world sizes that the traces record, that of the compared ones first."""
    compared = {source.summary.world_size for source in comparison.sources if source.summary.world_size}
    return [*compared, *sorted({*comparison.strangers.values()})]


def expected_ranks(comparison: RankComparison) -> set[int]:
    """Return the ranks that the job must have: those of its groups and, if all traces agree, of its world."""
    expected: set[int] = set()
    for group in comparison.job.groups:
        expected |= set(group_ranks(group) or ())
    worlds = {source.summary.world_size for source in comparison.sources}
    if len(worlds) == 1:
        expected |= set(range(min(next(iter(worlds)) or 0, MAX_RANKS)))
    return expected


class RankCoverage(msgspec.Struct, frozen=True):
    """How many of a job's ranks are compared.

    compared, expected  number of ranks; fewer are compared if traces are missing or can't be compared
    missing  the ranks that aren't, ascending; shorter than the difference if their numbers are unknown
    untimed  those of them whose traces are found, but record no times of their operations, unlike others
    """

    compared: int
    expected: int
    missing: tuple[int, ...]
    untimed: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        return self.compared >= self.expected

    @property
    def absent(self) -> tuple[int, ...]:
        """Return the missing ranks that have no trace."""
        return tuple(rank for rank in self.missing if rank not in self.untimed)


def rank_coverage(comparison: RankComparison, known: Iterable[int], unknown: int) -> RankCoverage:
    """Return how many ranks of a job are compared.

    known    ranks that are in the job for sure, such as those of files that can't be read
    unknown  number of files without a known rank that aren't compared
    """
    present = {source.rank for source in comparison.sources}
    expected, count = expected_ranks(comparison) | set(known), len(comparison.sources)
    without_times = ranks_without_times(comparison.job)
    if len(without_times) == count:
        without_times = []  # no rank is compared by time, which the verdict says
    compared = count - len(without_times)
    if None in present:
        return RankCoverage(compared, max(count + unknown, len(expected)), ())
    absent = expected - present
    untimed = {rank for rank in (comparison.sources[member].rank for member in without_times) if rank is not None}
    missing = tuple(sorted(absent | untimed))
    return RankCoverage(compared, count + max(len(absent), unknown), missing, tuple(sorted(untimed)))


# ---- parallel dimensions --------------------------------------------------------------------------------


class ParallelDimension(msgspec.Struct, frozen=True):
    """Process groups created for one purpose, no two of which share a rank.

    label   their description, or name, or "groups of 2, 4 ranks apart"
    groups  their codes in `DistributedJob.groups`
    place   int64[ranks]  index of each rank within its group, NO_CODE if it is in none
    """

    label: str
    groups: list[int]
    place: Int64


def parallel_dimensions(comparison: RankComparison, usage: Sequence[GroupUsage]) -> list[ParallelDimension]:
    """Return the dimensions, most groups first, then by label, without groups whose ranks are not recorded.

    The purpose of a group is at best recorded as its description. If groups of one description share ranks, they
    serve several purposes, which their names distinguish, or else their sizes and the spacing of their ranks.
    """
    position = {source.rank: member for member, source in enumerate(comparison.sources)}
    known = [code for code, use in enumerate(usage) if use.ranks is not None]
    results = []
    for label, codes in _split_into_families(comparison.job.groups, usage, known, (_description, _name, _spacing)):
        place = np.full(len(comparison.sources), NO_CODE, np.int64)
        for code in codes:
            places = [
                (position[rank], index) for index, rank in enumerate(usage[code].ranks or ()) if rank in position
            ]
            place[[member for member, _ in places]] = [index for _, index in places]
        results.append(ParallelDimension(label, codes, place))
    return sorted(results, key=lambda dimension: (-len(dimension.groups), dimension.label))


_GroupLabel = Callable[[ProcessGroup, Sequence[int]], str | None]


def _split_into_families(
    groups: Sequence[ProcessGroup],
    usage: Sequence[GroupUsage],
    codes: Sequence[int],
    label_functions: Sequence[_GroupLabel],
) -> Iterator[tuple[str, list[int]]]:
    """Split groups into families (label, codes) by the first label function.

    A family whose groups have no label or share ranks is split further by the next function. The last function is
    final.
    """
    by_label: dict[str | None, list[int]] = {}
    for code in codes:
        by_label.setdefault(label_functions[0](groups[code], usage[code].ranks or ()), []).append(code)
    for label, family in by_label.items():
        ranks = [rank for code in family for rank in usage[code].ranks or ()]
        if label is not None and (len(set(ranks)) == len(ranks) or len(label_functions) == 1):
            yield label, family
        else:
            yield from _split_into_families(groups, usage, family, label_functions[1:])


def _description(group: ProcessGroup, _: Sequence[int]) -> str | None:
    return None if (group.description or "").lower() in _DEFAULT_DESCRIPTIONS else group.description


def _name(group: ProcessGroup, _: Sequence[int]) -> str | None:
    """Return the name of a group, None for the number that PyTorch gives to unnamed groups."""
    return None if group.name is None or group.name.isdigit() else group.name


def _spacing(_: ProcessGroup, ranks: Sequence[int]) -> str:
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    return f"groups of {len(ranks):,}" + (f", {stride:,} ranks apart" if stride > 1 else "")
