"""The collectives that connect chosen ranks in a window, as a timeline of several ranks draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import unquote

import msgspec

from torch_tb_profiler.analyses.distributed.collectives import connecting_collectives
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members, judge_members
from torch_tb_profiler.views._shared.job.names import rank_names
from torch_tb_profiler.views._shared.params import parse_texts
from torch_tb_profiler.views._shared.text import Text, sentences, text
from torch_tb_profiler.views.distributed.reasons import null_reasons

MAX_CONNECTIONS = 2000
"""Most collectives of an answer, whatever limit is requested."""


class ConnectionsParams(msgspec.Struct, frozen=True):
    """Which ranks and which window; the answer has the longest `limit` collectives.

    workers     names, percent-encoded, separated by commas
    begin, end  [begin, end) in job time, default all
    """

    workers: str = ""
    begin: int | None = None
    end: int | None = None
    limit: int = 300


class AlignedRank(msgspec.Struct, frozen=True):
    """A chosen worker and its state.

    shift_ns  job time = time in its trace + shift_ns; null if it isn't read or its clock can't be aligned
    """

    worker: str
    rank: int | None
    span: str
    state: Literal["waiting", "loading", "ready", "failed"]
    shift_ns: int | None


class ConnectionRow(msgspec.Struct, frozen=True):
    """One collective; columns with an entry per chosen rank that takes part.

    members    index into `ranks`
    events     row in that rank's trace
    starts_ns, ends_ns  job time
    """

    collective: int
    group: int
    name: str
    members: list[int]
    events: list[int]
    starts_ns: list[int]
    ends_ns: list[int]


class ConnectionsPayload(msgspec.Struct, frozen=True):
    """The `total` collectives that connect the chosen ranks in the window; `rows` are the longest of them.

    headline  which ranks are on one clock, and which are stragglers
    details   how many collectives connect them, and which workers are left out
    late      the stragglers among them, highest cost first: indices into `ranks`
    """

    headline: Text
    details: Text
    ranks: list[AlignedRank]
    late: list[int]
    origin_ns: int | None
    rows: list[ConnectionRow]
    total: int
    reasons: Mapping[str, Text]


def build_connections(members: Members[RankSummary], params: ConnectionsParams) -> ConnectionsPayload:
    """Connect the chosen ranks; NotFoundError for a worker that the run doesn't have."""
    comparison = compare_members(members)
    ranks = [_align(members, unquote(name)) for name in parse_texts(params.workers)]
    keys = {rank.worker: key for key, rank in enumerate(ranks) if rank.worker in comparison.positions}
    aligned = [rank.worker for rank in ranks if rank.shift_ns is not None]
    late = [worker for worker in _find_stragglers(members) if worker in aligned]
    unaligned = [rank.worker for rank in ranks if rank.shift_ns is None and rank.state in ("ready", "failed")]
    connections = connecting_collectives(
        comparison,
        {comparison.positions[worker]: key for worker, key in keys.items()},
        params.begin,
        params.end,
        min(max(params.limit, 0), MAX_CONNECTIONS),
    )
    return ConnectionsPayload(
        headline=_headline(
            [comparison.sources[comparison.positions[name]] for name in aligned],
            [comparison.sources[comparison.positions[name]] for name in late],
        ),
        details=_details_sentence(connections.total, len(connections.rows), unaligned),
        ranks=ranks,
        late=[keys[worker] for worker in late],
        origin_ns=comparison.clocks.origin,
        rows=[
            ConnectionRow(
                collective=row.collective,
                group=int(comparison.job.table.group[row.operations[0]]),
                name=comparison.job.name_of(row.operations[0]),
                members=row.keys,
                events=row.events,
                starts_ns=row.starts,
                ends_ns=row.ends,
            )
            for row in connections.rows
        ],
        total=connections.total,
        reasons=null_reasons(comparison),
    )


def _find_stragglers(members: Members[RankSummary]) -> list[str]:
    """Return the workers that are stragglers, highest cost first."""
    verdict = judge_members(members).verdict
    if verdict.kind != "straggler":
        return []
    sources = compare_members(members).sources
    return [sources[row.member].worker for row in verdict.ranks]


def _align(members: Members[RankSummary], worker: str) -> AlignedRank:
    member = next((member for member in members if member.worker == worker), None)
    if member is None:
        raise NotFoundError(f"there is no worker {worker!r}")
    comparison = compare_members(members)
    position = comparison.positions.get(worker)
    shift = None if position is None else comparison.clocks.clocks[position].shift
    return AlignedRank(worker, member.rank, member.span, member.state, shift)


def _headline(aligned: Sequence[RankSource], late: Sequence[RankSource]) -> Text:
    """Say which ranks are on the job's clock, and which of them, drawn on top, are stragglers."""
    if not aligned:
        return text("The clocks of these ranks can't be aligned.")
    others = [source for source in aligned if source not in late]
    if not late or not others:
        are = agree(len(aligned), "is", "are")
        return text("{ranks} {are} aligned on the job's clock.", ranks=rank_names(aligned), are=are)
    return text(
        "{late} {straggle}. {others} {are} shown below {them}, on the job's clock.",
        late=rank_names(late),
        straggle=agree(len(late), "is a straggler", "are stragglers"),
        others=rank_names(others),
        are=agree(len(others), "is", "are"),
        them=agree(len(late), "it", "them"),
    )


def _details_sentence(total: int, shown: int, unaligned: Sequence[str]) -> Text:
    """Say how many collectives connect the ranks, how to read them, and which workers are left out."""
    connections = text(
        "{collectives} in this window{longest}, connected across ranks: each rank's arrival on the left, the "
        "common end on the right.",
        collectives=plural(total, "collective"),
        longest=f" (longest {shown:,} drawn)" if shown < total else "",
    )
    left_out = text("Left out because their clocks can't be aligned: {workers}.", workers=", ".join(unaligned))
    return sentences(connections, left_out if unaligned else ())


CONNECTIONS = RunView(
    "distributed/connections",
    "Connected ranks",
    ConnectionsParams,
    ConnectionsPayload,
    build_connections,
    RANK_SUMMARIES,
    answers="Which collectives connect the chosen ranks in a window.",
)
