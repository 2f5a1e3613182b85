"""What the comparison of ranks does not know, and what it leaves out."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.matching.matching import timed, untimed
from torch_tb_profiler.model.trace import ABSENT


class Gaps(msgspec.Struct, frozen=True):
    """True where something is unknown.

    alone        there are no other ranks
    uncompared   an operation was compared with none of another rank
    unaligned    a collective has no two ranks on one clock
    unattributed of a collective it is unknown who arrived last, as the clocks' error exceeds the skew
    unsized      an operation has no size, or none of which the bandwidth is known
    untimed      an operation has no time
    unknown_members, unnamed_groups  a process group has no ranks, no name
    stepless     a rank recorded no steps
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


def gaps(comparison: Comparison) -> Gaps:
    """Of the ranks that are compared."""
    table, arrivals, groups = comparison.job.table, comparison.arrivals, comparison.job.groups
    summaries = [source.summary for source in comparison.sources]
    return Gaps(
        alone=len(summaries) < 2,
        uncompared=not comparison.split.compared.all(),
        unaligned=bool((arrivals.skew == ABSENT).any()),
        unattributed=bool((arrivals.last < 0).any()),
        unsized=bool((table.message == ABSENT).any() or np.isnan(table.bus).any()),
        untimed=bool((table.start == ABSENT).any()),
        unknown_members=any(group.ranks is None for group in groups),
        unnamed_groups=any(group.name is None for group in groups),
        stepless=any(not summary.recorded_steps for summary in summaries),
        host_computation=any(not summary.by_kernels for summary in summaries),
    )


class Exclusions(msgspec.Struct, frozen=True):
    """What takes no part in the comparison.

    differing    collectives in which the ranks differ in name, size or dtype
    untimed      positions of workers of which no operation has a time
    unaddressed  messages whose sender and receiver are not recorded
    uneven       collectives of steps in which the ranks ran different numbers of them
    unrecorded   collectives in which others waited before the last rank began to record
    late_recorders  positions of those last ranks
    """

    differing: int
    untimed: list[int]
    unaddressed: int
    uneven: int
    unrecorded: int
    late_recorders: list[int]


def exclusions(comparison: Comparison) -> Exclusions:
    """Of the ranks that are compared."""
    matching, member, arrivals = comparison.matching, comparison.job.table.member, comparison.arrivals
    differing = {each.instance for each in matching.differences if each.what != "missing"}
    has_time = timed(comparison.job)
    uneven = has_time & ~matching.compared & (matching.sizes > 1)[matching.instance]
    uneven[np.isin(matching.instance, list(differing))] = False
    cut = np.flatnonzero(arrivals.cut)
    return Exclusions(
        differing=len(differing),
        untimed=untimed(comparison.job),
        unaddressed=int(matching.unaddressed.sum()),
        uneven=len(np.unique(matching.instance[uneven])),
        unrecorded=len(cut),
        late_recorders=np.unique(member[arrivals.last[cut]]).tolist(),
    )
