"""One collective across the ranks."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed import collectives as rows
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members
from torch_tb_profiler.views.distributed.collectives import instance
from torch_tb_profiler.views.distributed.payload.collectives import (
    Before,
    Collective,
    CollectiveParams,
    NamedTime,
    Participant,
)
from torch_tb_profiler.views.distributed.reasons import reasons


def build(members: Members[RankSummary], params: CollectiveParams) -> Collective:
    """NotFoundError for an id that is not there."""
    comparison = compare_members(members)
    count = len(comparison.matching)
    if not 0 <= params.collective < count:
        raise NotFoundError(f"there is no collective {params.collective}", hint=f"0 to {count - 1}")
    participants = rows.collective_participants(comparison, params.collective)
    spans = {member.worker: member.span for member in members}
    return Collective(
        instance=instance(members, params.collective),
        participants=[_participant(comparison, each, spans[each.source.worker]) for each in participants],
        median_worker=next((each.source.worker for each in participants if each.is_median), None),
        reasons=reasons(comparison),
    )


def _participant(comparison: RankComparison, part: rows.CollectiveParticipant, span: str) -> Participant:
    return Participant(
        worker=part.source.worker,
        rank=part.source.rank,
        span=span,
        event=part.event,
        call=part.call,
        name=comparison.job.name_of(part.operation),
        dtype=comparison.job.dtype_of(part.operation),
        bytes=part.bytes_in,
        out_bytes=part.bytes_out,
        trace_start_ns=part.trace_start,
        start_ns=part.start,
        end_ns=part.end,
        latency_ns=part.latency,
        transfer_ns=part.transfer,
        waiting_ns=part.waiting,
        exposed_ns=part.exposed,
        after_first_ns=part.after_first,
        before=None if part.before is None else _before(part.before),
    )


def _before(window: rows.OperationWindow) -> Before:
    short = window.short_names
    return Before(
        window_ns=window.length,
        categories=[NamedTime(name, name, time) for name, time in window.categories.items()],
        host=[NamedTime(name, name, time) for name, time in window.host],
        kernels=[NamedTime(name, short.get(name, name), time) for name, time in window.kernels],
    )


COLLECTIVE = RunView(
    "distributed/collective", "One collective", CollectiveParams, Collective, build, RANK_SUMMARIES
)
