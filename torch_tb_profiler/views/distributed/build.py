"""Distributed: which rank is late, and why."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import waiting_by_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members, NoParams, RunView, Tab
from torch_tb_profiler.views._shared.availability import distributed_reason
from torch_tb_profiler.views._shared.job.members import (
    RANK_SUMMARIES,
    compare_members,
    count_unread,
    judge_members,
    members_coverage,
)
from torch_tb_profiler.views._shared.job.names import job_noun
from torch_tb_profiler.views._shared.job.verdict import verdict_headline
from torch_tb_profiler.views.distributed import communication, ranks, stragglers
from torch_tb_profiler.views.distributed.collectives import COLLECTIVE, COLLECTIVES
from torch_tb_profiler.views.distributed.connections import CONNECTIONS
from torch_tb_profiler.views.distributed.map import MAP
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload
from torch_tb_profiler.views.distributed.problems import build_problems
from torch_tb_profiler.views.distributed.reasons import null_reasons, paged_reasons
from torch_tb_profiler.views.distributed.tables import FAMILIES, GROUPS, OPERATIONS, RANKS, STEPS

MAX_LISTED_RANKS = 64
"""Most ranks of a job whose tables are in the payload; those of a larger job are read page by page."""

MAX_STRAGGLERS = 100
"""Most ranks listed as stragglers."""

MAX_STEPS = 1000
"""Most names of steps listed."""


def build(members: Members[RankSummary], params: NoParams) -> DistributedPayload:
    """Compare the ranks whose traces have been read."""
    return _build(members)


@derived
def _build(members: Members[RankSummary]) -> DistributedPayload:
    comparison, judgment = compare_members(members), judge_members(members)
    verdict, before = judgment.verdict, judgment.before
    headline, complete = verdict_headline(members, verdict), len(members) <= MAX_LISTED_RANKS
    return DistributedPayload(
        headline=headline,
        explanation=stragglers.explanation(members, verdict),
        verdict=stragglers.build_verdict(comparison, verdict, headline),
        problems=build_problems(members),
        rank_count=len(members),
        read_count=len(members) - count_unread(members),
        compared_count=members_coverage(members).compared,
        expected_count=members_coverage(members).expected,
        steps=list(comparison.job.steps[:MAX_STEPS]),
        step_noun=job_noun(comparison),
        spreads=ranks.build_spreads(members),
        group_families=communication.build_group_families(members),
        ranks=ranks.build_ranks(members) if complete else [],
        nodes=ranks.build_nodes(comparison) if complete else [],
        origin_ns=comparison.clocks.origin,
        start_skew_ns=comparison.clocks.start_skew(),
        overview=ranks.build_step_times(comparison) if complete else [],
        averages=ranks.build_averages(comparison, ranks.members_averages(members)) if complete else [],
        families=ranks.build_families(comparison) if complete else [],
        waiting=communication.build_waiting(
            comparison, waiting_by_step(comparison, ranks.members_step_sums(members))
        )
        if complete
        else [],
        average_waiting=communication.build_average_waiting(comparison, ranks.members_waiting(members))
        if complete
        else [],
        collectives=communication.build_rank_collectives(comparison, judgment.totals) if complete else [],
        groups=communication.build_groups(members) if complete else [],
        mismatches=communication.build_mismatches(comparison),
        mismatch_count=len(comparison.matching.mismatches),
        stragglers=stragglers.build_stragglers(comparison, judgment.rows[:MAX_STRAGGLERS], verdict, before),
        late_hosts=stragglers.build_late_hosts(comparison, judgment.rows, MAX_STRAGGLERS, verdict),
        heat_map=stragglers.build_lateness_map(comparison) if complete else None,
        meanwhile=stragglers.build_activity(comparison, before),
        reasons=null_reasons(comparison) | ({} if complete else paged_reasons(len(members))),
    )


TAB = Tab(
    "Resources",
    RunView(
        "distributed",
        "Distributed",
        NoParams,
        DistributedPayload,
        build,
        RANK_SUMMARIES,
        rows="ranks",
        answers="Which ranks are stragglers, why, and what they cost the others.",
    ),
    distributed_reason,
    (COLLECTIVES, COLLECTIVE, CONNECTIONS, MAP, RANKS, STEPS, OPERATIONS, GROUPS, FAMILIES),
)
