"""The ranks of a job: which have been read, how they compare, and who keeps whom waiting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from torch_tb_profiler.analyses.distributed.comparison import RankComparison, compare_ranks
from torch_tb_profiler.analyses.distributed.costs import StragglerCosts, straggler_costs
from torch_tb_profiler.analyses.distributed.groups import RankCoverage, rank_coverage
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails, rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize_rank
from torch_tb_profiler.analyses.distributed.stragglers import (
    Straggler,
    StragglerActivity,
    straggler_activity,
    stragglers,
)
from torch_tb_profiler.analyses.distributed.totals import WorkerTotal, worker_totals
from torch_tb_profiler.analyses.distributed.verdict import StragglerVerdict, judge_ranks
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.base.threads import start_in_thread
from torch_tb_profiler.view import Member, Members, Reduction
from torch_tb_profiler.views._shared.text import Text, text

RANK_DETAILS = Reduction("distributed-details", RankDetails, rank_details)
"""What each rank did before its collectives."""

RANK_SUMMARIES = Reduction("distributed", RankSummary, summarize_rank, RANK_DETAILS)

MAX_EXPLAINED_RANKS = 3
"""Ranks whose extra work is shown; the cause of as many more is named."""

_HOST_AND_PROCESS = lazy_regex(r"^(?P<host>.*)_(?P<process>\d+)$", re.DOTALL)

T = TypeVar("T")


@derived
def compare_members(members: Members[RankSummary]) -> RankComparison:
    """Compare the members that are ready."""
    return compare_ranks(
        RankSource(
            member.worker,
            member_rank(member),
            member.result.host or split_worker_name(member.worker)[0],
            member.result,
            member.details,
        )
        for member in members
        if member.result is not None
    )


@derived
def member_costs(members: Members[RankSummary]) -> StragglerCosts:
    """Return what the lateness of each ready member costs."""
    comparison = compare_members(members)
    return straggler_costs(comparison.job, comparison.matching, comparison.split)


class StragglerJudgment(msgspec.Struct, frozen=True):
    """Who keeps the other ranks waiting, as every view that says so takes it.

    rows    every rank, highest cost first
    before  what the first of them spent extra time on before its collectives
    """

    rows: Sequence[Straggler]
    totals: Sequence[WorkerTotal]
    before: Sequence[StragglerActivity]
    verdict: StragglerVerdict


@derived
def judge_members(members: Members[RankSummary]) -> StragglerJudgment:
    """Find the stragglers among the members that are ready."""
    comparison = compare_members(members)
    sums = start_in_thread(lambda: worker_totals(comparison))
    cost = member_costs(members)
    rows, totals = stragglers(comparison, cost), sums()
    # Of ranks that are late together none costs anything alone: without it, the others are as late.
    together = max(cost.sets, key=lambda suspect: suspect.cost).members if cost.sets else ()
    late = [row.member for row in rows if row.cost > 0 or row.member in together]
    explained = late[: 2 * MAX_EXPLAINED_RANKS]
    before = straggler_activity(comparison, cost.work, explained)
    verdict = judge_ranks(comparison, cost, rows, totals, before, members_coverage(members))
    costliest = () if verdict.costliest is None else (verdict.costliest,)
    named = {row.member: row for row in (*costliest, *verdict.ranks)}
    return StragglerJudgment([named.get(row.member, row) for row in rows], totals, before, verdict)


@derived
def members_coverage(members: Members[RankSummary]) -> RankCoverage:
    """Return how many ranks of the job are compared; a file that can't be read counts as a rank that isn't."""
    comparison = compare_members(members)
    known = {*comparison.positions, *comparison.duplicates, *comparison.strangers}
    others = [member for member in members if member.worker not in known]
    ranks = [member_rank(member) for member in others]
    return rank_coverage(comparison, [rank for rank in ranks if rank is not None], ranks.count(None))


def member_rank(member: Member[RankSummary]) -> int | None:
    """Return the rank that the file records, else the one in its name."""
    recorded = member.result.rank if member.result is not None else None
    return member.rank if recorded is None else recorded


def split_worker_name(worker: str) -> tuple[str | None, str | None]:
    """Split a worker named `<host>_<process>` into both; (None, None) for other names."""
    match = _HOST_AND_PROCESS.match(worker)
    return (match["host"], match["process"]) if match else (None, None)


def count_unread(members: Members[T]) -> int:
    """Return how many traces are still to be read."""
    return sum(member.state in ("waiting", "loading") for member in members)


def progress_phrase(members: Members[T]) -> Text:
    """Return "2 of 8 traces are still being read", or nothing once all are read."""
    count = count_unread(members)
    if not count:
        return ()
    return text(
        "{count} of {all} {are} still being read",
        are=agree(count, "is", "are"),
        count=f"{count:,}",
        all=plural(len(members), "trace"),
    )
