"""The collectives that join chosen ranks in a window: what a timeline of several ranks draws between them."""

from __future__ import annotations

from urllib.parse import unquote

from torch_tb_profiler.analyses.distributed import collectives as connections
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members, judge_members
from torch_tb_profiler.views._shared.params import parse_texts
from torch_tb_profiler.views.distributed import timeline_words
from torch_tb_profiler.views.distributed.payload.connections import (
    AlignedRank,
    Connection,
    Connections,
    ConnectionsParams,
)
from torch_tb_profiler.views.distributed.reasons import reasons

MOST = 2000


def build(members: Members[RankSummary], params: ConnectionsParams) -> Connections:
    """NotFoundError for a worker that the run does not have."""
    comparison = compare_members(members)
    ranks = [_aligned(members, unquote(name)) for name in parse_texts(params.workers)]
    keys = {rank.worker: key for key, rank in enumerate(ranks) if rank.worker in comparison.positions}
    aligned = [rank.worker for rank in ranks if rank.shift_ns is not None]
    late = [worker for worker in _late(members) if worker in aligned]
    left = [rank.worker for rank in ranks if rank.shift_ns is None and rank.state in ("ready", "failed")]
    limit = min(max(params.limit, 0), MOST)
    joined = connections.connecting_collectives(
        comparison,
        {comparison.positions[worker]: key for worker, key in keys.items()},
        params.begin,
        params.end,
        limit,
    )
    return Connections(
        headline=timeline_words.headline(
            [comparison.sources[comparison.positions[name]] for name in aligned],
            [comparison.sources[comparison.positions[name]] for name in late],
            len(comparison.sources) == 2,
        ),
        details=timeline_words.details(joined.total, len(joined.rows), left),
        ranks=ranks,
        late=[keys[worker] for worker in late],
        origin_ns=comparison.clocks.origin,
        rows=[
            Connection(
                collective=row.collective,
                group=int(comparison.job.table.group[row.operations[0]]),
                name=comparison.job.name_of(row.operations[0]),
                members=row.keys,
                events=row.events,
                starts_ns=row.starts,
                ends_ns=row.ends,
            )
            for row in joined.rows
        ],
        total=joined.total,
        reasons=reasons(comparison),
    )


def _late(members: Members[RankSummary]) -> list[str]:
    """Workers that keep the others waiting, most cost first."""
    verdict = judge_members(members).verdict
    if verdict.kind != "straggler":
        return []
    sources = compare_members(members).sources
    return [sources[row.member].worker for row in verdict.ranks]


def _aligned(members: Members[RankSummary], worker: str) -> AlignedRank:
    member = next((each for each in members if each.worker == worker), None)
    if member is None:
        raise NotFoundError(f"there is no worker {worker!r}")
    comparison = compare_members(members)
    position = comparison.positions.get(worker)
    shift = None if position is None else comparison.clocks.clocks[position].shift
    return AlignedRank(worker, member.rank, member.span, member.state, shift)


CONNECTIONS = RunView(
    "distributed/connections",
    "Connected ranks",
    ConnectionsParams,
    Connections,
    build,
    RANK_SUMMARIES,
    answers="Which collectives join the chosen ranks in a window.",
)
