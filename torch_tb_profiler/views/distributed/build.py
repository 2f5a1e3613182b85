"""Distributed: which rank is late, and why."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.analyses.distributed.reduction.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import waiting_by_step
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.trace import Trace, derived
from torch_tb_profiler.view import Members, NoParams, RunView, Tab
from torch_tb_profiler.views._shared.job.judgment import judge_members
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members
from torch_tb_profiler.views._shared.job.verdict import headline
from torch_tb_profiler.views.distributed import operations, ranks, words
from torch_tb_profiler.views.distributed import stragglers as late_ranks
from torch_tb_profiler.views.distributed.collective import COLLECTIVE
from torch_tb_profiler.views.distributed.collectives import COLLECTIVES
from torch_tb_profiler.views.distributed.connections import CONNECTIONS
from torch_tb_profiler.views.distributed.payload.job import Distributed
from torch_tb_profiler.views.distributed.problems import problems
from torch_tb_profiler.views.distributed.reasons import reasons


def build(members: Members[RankSummary], params: NoParams) -> Distributed:
    """The job as far as its traces are read."""
    return _build(members)


@derived
def _build(members: Members[RankSummary]) -> Distributed:
    comparison, judged = compare_members(members), judge_members(members)
    by_step, verdict, before = waiting_by_step(comparison), judged.verdict, judged.before
    said = headline(members, verdict)
    return Distributed(
        headline=said,
        explanation=words.explanation(members, verdict),
        verdict=late_ranks.verdict(comparison, verdict, said),
        problems=problems(members),
        ranks=ranks.ranks(members),
        nodes=ranks.nodes(comparison),
        origin_ns=comparison.clocks.origin,
        start_skew_ns=comparison.clocks.start_skew(),
        overview=ranks.step_times(comparison),
        averages=ranks.averages(comparison),
        families=ranks.families(comparison),
        waiting=operations.waiting(comparison, by_step),
        average_waiting=operations.average_waiting(comparison, by_step),
        collectives=operations.collective_rows(comparison, judged.totals),
        groups=operations.groups(comparison, judged.totals),
        mismatches=operations.mismatches(comparison),
        mismatch_count=len(comparison.matching.differences),
        stragglers=late_ranks.stragglers(comparison, judged.rows, verdict, before),
        heat_map=late_ranks.heat_map(comparison),
        meanwhile=late_ranks.meanwhile(comparison, before),
        reasons=reasons(comparison),
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
    (COLLECTIVES, COLLECTIVE, CONNECTIONS),
)
