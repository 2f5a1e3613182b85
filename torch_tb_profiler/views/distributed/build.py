"""Distributed: which rank is late, and why."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.trace import Trace, derived
from torch_tb_profiler.view import Members, NoParams, RunView, Tab
from torch_tb_profiler.views.distributed import operations as operations
from torch_tb_profiler.views.distributed import parts as distributed_parts
from torch_tb_profiler.views.distributed import ranks as party_of
from torch_tb_profiler.views.distributed import verdict as verdicts
from torch_tb_profiler.views.distributed.payload import Distributed
from torch_tb_profiler.views.distributed.reasons import reasons
from torch_tb_profiler.views.distributed.reduction import RANK_SUMMARIES


def build(members: Members[RankSummary], params: NoParams) -> Distributed:
    """The job as far as its traces are read."""
    return _build(members)


@derived
def _build(members: Members[RankSummary]) -> Distributed:
    who = party_of.party(members)
    sums = operations.by_worker(who)
    late = verdicts.stragglers(who)
    waits = operations.waiting(who)
    return Distributed(
        verdict=verdicts.verdict(who, late, sums),
        problems=party_of.problems(who),
        ranks=party_of.ranks(who),
        nodes=party_of.nodes(who),
        origin_ns=who.found.clocks.origin,
        start_skew_ns=party_of.start_skew(who),
        overview=party_of.step_times(who),
        averages=party_of.averages(who),
        waiting=waits,
        average_waiting=operations.average_waiting(who, waits),
        collectives=operations.collective_rows(who, sums),
        groups=operations.groups(who, sums),
        mismatches=operations.mismatches(who),
        mismatch_count=len(who.found.matching.differences),
        stragglers=late,
        heat_map=verdicts.heat_map(who),
        meanwhile=verdicts.meanwhile(who, late),
        reasons=reasons(who),
    )


def unavailable(trace: Trace) -> str | None:
    """The view needs communication, or a trace that says it is one of several ranks."""
    info = trace.metadata.get("distributedInfo")
    world = info.get("world_size") if isinstance(info, dict) else None
    if len(collectives(trace)) or (type(world) is int and world > 1):
        return None
    return "the trace records no communication between ranks (NCCL, gloo, MPI, ...)"


TAB = Tab(
    "Resources",
    RunView("distributed", "Distributed", NoParams, Distributed, build, RANK_SUMMARIES),
    unavailable,
    distributed_parts.PARTS,
)
