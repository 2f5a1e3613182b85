"""Distributed: which rank is late, and why."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import waiting_by_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Members, NoParams, RunView, Tab
from torch_tb_profiler.views._shared.job.members import (
    RANK_SUMMARIES,
    compare_members,
    count_unread,
    judge_members,
)
from torch_tb_profiler.views._shared.job.wording import verdict_headline
from torch_tb_profiler.views.distributed import columns, operations, ranks, scale, words
from torch_tb_profiler.views.distributed import stragglers as late_ranks
from torch_tb_profiler.views.distributed.collective import COLLECTIVE
from torch_tb_profiler.views.distributed.collectives import COLLECTIVES
from torch_tb_profiler.views.distributed.connections import CONNECTIONS
from torch_tb_profiler.views.distributed.payload.job import Distributed
from torch_tb_profiler.views.distributed.problems import problems
from torch_tb_profiler.views.distributed.reasons import elsewhere, reasons
from torch_tb_profiler.views.distributed.tables.families import FAMILIES
from torch_tb_profiler.views.distributed.tables.map import MAP
from torch_tb_profiler.views.distributed.tables.operations import GROUPS, OPERATIONS
from torch_tb_profiler.views.distributed.tables.ranks import RANKS
from torch_tb_profiler.views.distributed.tables.steps import STEPS

MOST_RANKS = 64
"""Of a larger job the rows of every rank are answered page by page."""

MOST_STRAGGLERS = 100
MOST_STEPS = 1000


def build(members: Members[RankSummary], params: NoParams) -> Distributed:
    """The job as far as its traces are read."""
    return _build(members)


@derived
def _build(members: Members[RankSummary]) -> Distributed:
    comparison, judged = compare_members(members), judge_members(members)
    verdict, before = judged.verdict, judged.before
    sentence, whole = verdict_headline(members, verdict), len(members) <= MOST_RANKS
    return Distributed(
        headline=sentence,
        explanation=words.explanation(members, verdict),
        verdict=late_ranks.verdict(comparison, verdict, sentence),
        problems=problems(members),
        rank_count=len(members),
        read_count=len(members) - count_unread(members),
        steps=list(comparison.job.steps[:MOST_STEPS]),
        spreads=scale.spreads(members),
        group_families=scale.group_families(members),
        ranks=ranks.ranks(members) if whole else [],
        nodes=ranks.nodes(comparison) if whole else [],
        origin_ns=comparison.clocks.origin,
        start_skew_ns=comparison.clocks.start_skew(),
        overview=ranks.step_times(comparison) if whole else [],
        averages=ranks.averages(comparison, columns.averages_of(members)) if whole else [],
        families=ranks.families(comparison) if whole else [],
        waiting=operations.waiting(comparison, waiting_by_step(comparison, columns.sums_of(members)))
        if whole
        else [],
        average_waiting=operations.average_waiting(comparison, columns.waits_of(members)) if whole else [],
        collectives=operations.collective_rows(comparison, judged.totals) if whole else [],
        groups=operations.groups(comparison, columns.uses_of(members), columns.totals_of(members))
        if whole
        else [],
        mismatches=operations.mismatches(comparison),
        mismatch_count=len(comparison.matching.mismatches),
        stragglers=late_ranks.stragglers(comparison, judged.rows[:MOST_STRAGGLERS], verdict, before),
        late_hosts=scale.late_hosts(comparison, judged.rows, MOST_STRAGGLERS, verdict),
        heat_map=late_ranks.heat_map(comparison) if whole else None,
        meanwhile=late_ranks.meanwhile(comparison, before),
        reasons=reasons(comparison) if whole else {**reasons(comparison), **elsewhere(len(members))},
    )


def unavailable(trace: Trace) -> str | None:
    """The view needs communication, or a trace that says it is one of several ranks."""
    info: Any = trace.metadata.get("distributedInfo")
    world = info.get("world_size") if isinstance(info, dict) else None
    if len(collectives(trace)) or (type(world) is int and world > 1):
        return None
    return "the trace records no communication between ranks (NCCL, Gloo, MPI, ...)"


TAB = Tab(
    "Resources",
    RunView(
        "distributed",
        "Distributed",
        NoParams,
        Distributed,
        build,
        RANK_SUMMARIES,
        rows="ranks",
        answers="Whether ranks wait for each other, for whom, and what it costs.",
    ),
    unavailable,
    (COLLECTIVES, COLLECTIVE, CONNECTIONS, MAP, RANKS, STEPS, OPERATIONS, GROUPS, FAMILIES),
)
