"""The process groups of a job: who communicates in them, how their operations were matched, who is absent."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.job import group_ranks
from torch_tb_profiler.analyses.distributed.matching.keys import METHODS, MatchedBy
from torch_tb_profiler.analyses.shared.grouping import split_by
from torch_tb_profiler.model.communication.groups import MOST_RANKS
from torch_tb_profiler.model.trace import NO_CODE


class GroupUse(msgspec.Struct, frozen=True):
    """One process group.

    members     positions of the workers that communicate in it
    matched_by  the method that joined most of its collectives, None with one rank
    absent_ranks  ranks of the group that are not compared; empty if a rank is unknown
    mismatches  collectives on which its ranks disagree
    """

    members: list[int]
    backends: list[str]
    ranks: list[int] | None
    matched_by: MatchedBy | None
    absent_ranks: list[int]
    mismatches: int


def group_uses(comparison: Comparison) -> list[GroupUse]:
    """In the order of the job's groups."""
    job, table, matching = comparison.job, comparison.job.table, comparison.matching
    differing = np.zeros(len(matching), np.bool_)
    differing[[difference.instance for difference in matching.differences]] = True
    present = {source.rank for source in comparison.sources}
    uses = []
    parts = zip(job.groups, job.members, split_by(table.group, len(job.groups)), strict=True)
    for group, members, rows in parts:
        collectives = np.unique(matching.instance[rows])
        shared = collectives[matching.sizes[collectives] > 1]
        methods = np.bincount(matching.method[shared], minlength=len(METHODS))
        ranks = group_ranks(group)
        uses.append(
            GroupUse(
                members=members,
                backends=[job.names[each] for each in np.unique(table.backend[rows]).tolist() if each != NO_CODE],
                ranks=ranks,
                matched_by=METHODS[int(methods.argmax())] if methods.any() else None,
                absent_ranks=[] if None in present else [rank for rank in ranks or () if rank not in present],
                mismatches=int(differing[collectives].sum()),
            )
        )
    return uses


def world_sizes(comparison: Comparison) -> list[int]:
    """The sizes of the job that the traces record; more than one if they disagree."""
    return sorted({source.summary.world_size for source in comparison.sources if source.summary.world_size})


def expected_ranks(comparison: Comparison) -> set[int]:
    """The ranks that the job must have: those of its groups and, if all traces agree on one, of its world."""
    expected: set[int] = set()
    for group in comparison.job.groups:
        expected |= set(group_ranks(group) or ())
    worlds = {source.summary.world_size for source in comparison.sources}
    if len(worlds) == 1:
        expected |= set(range(min(next(iter(worlds)) or 0, MOST_RANKS)))
    return expected
