"""The members of a run, compared."""

from __future__ import annotations

import re

from torch_tb_profiler.analyses.distributed.comparison import RankComparison, compare_ranks
from torch_tb_profiler.analyses.distributed.costs import StragglerCosts, straggler_costs
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails, rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize_rank
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Member, Members, Reduction

RANK_DETAILS = Reduction("distributed-details", RankDetails, rank_details)
"""What each rank did before its operations."""

RANK_SUMMARIES = Reduction("distributed", RankSummary, summarize_rank, RANK_DETAILS)

_HOST_AND_PROCESS = re.compile(r"^(?P<host>.*)_(?P<process>\d+)$", re.DOTALL)


@derived
def compare_members(members: Members[RankSummary]) -> RankComparison:
    """The comparison of the members that are ready."""
    return compare_ranks(
        RankSource(
            member.worker,
            rank_of(member),
            member.result.host or host_and_process(member.worker)[0],
            member.result,
            member.details,
        )
        for member in members
        if member.result is not None
    )


@derived
def members_costs(members: Members[RankSummary]) -> StragglerCosts:
    """What the lateness of each member that is ready costs."""
    comparison = compare_members(members)
    return straggler_costs(comparison.job, comparison.matching, comparison.split)


def rank_of(member: Member[RankSummary]) -> int | None:
    """The rank that the file names, else the one of its name."""
    own = member.result.rank if member.result is not None else None
    return member.rank if own is None else own


def host_and_process(worker: str) -> tuple[str | None, str | None]:
    """Of a worker that is named `<host>_<process>`; (None, None) of others."""
    match = _HOST_AND_PROCESS.match(worker)
    return (match["host"], match["process"]) if match else (None, None)
