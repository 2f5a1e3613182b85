"""The collectives that join chosen ranks in a window: what a timeline of several ranks draws between them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64
from torch_tb_profiler.view import Members, RunView
from torch_tb_profiler.views.distributed.operations import full_name
from torch_tb_profiler.views.distributed.ranks import Party, party
from torch_tb_profiler.views.distributed.reasons import reasons
from torch_tb_profiler.views.distributed.reduction import RANK_SUMMARIES

MOST = 2000


class ConnectionsParams(msgspec.Struct, frozen=True):
    """`workers`: names, percent-encoded, with commas between them. [begin, end) in job time, default all.

    At most `limit` collectives are answered, the longest ones.
    """

    workers: str = ""
    begin: int | None = None
    end: int | None = None
    limit: int = 300


class AlignedRank(msgspec.Struct, frozen=True):
    """A chosen worker and how far it is (`state` as in the tab).

    shift_ns  leads from its trace's time to the job's; null: it is not read, or its clock cannot be aligned
    """

    worker: str
    rank: int | None
    span: str
    state: str
    shift_ns: int | None


class Connection(msgspec.Struct, frozen=True):
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


class Connections(msgspec.Struct, frozen=True):
    """`total` collectives join the chosen ranks in the window; `rows` are the longest of them."""

    ranks: list[AlignedRank]
    origin_ns: int | None
    rows: list[Connection]
    total: int
    reasons: Mapping[str, str]


def build(members: Members[RankSummary], params: ConnectionsParams) -> Connections:
    """NotFoundError for a worker that the run has not."""
    who = party(members)
    names = [unquote(text) for text in params.workers.split(",") if text]
    chosen = [_aligned(who, name) for name in names]
    table, instance = who.found.job.table, who.found.matching.instance
    position = {source.worker: at for at, source in enumerate(who.sources)}
    index_of = np.full(len(who.sources), -1)
    shift = np.zeros(len(who.sources), np.int64)
    for index, rank in enumerate(chosen):
        if rank.shift_ns is not None and rank.worker in position:
            index_of[position[rank.worker]] = index
            shift[position[rank.worker]] = rank.shift_ns
    timed = (index_of[table.member] >= 0) & (table.start != ABSENT) & (table.end != ABSENT)
    begins, ends = table.start + shift[table.member], table.end + shift[table.member]
    rows = np.flatnonzero(timed)
    count = len(who.found.matching)
    joined = np.bincount(instance[rows], minlength=count) >= 2
    joined &= _touches(instance[rows], begins[rows], ends[rows], count, params)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, instance[rows], (ends - begins)[rows])
    ids = np.flatnonzero(joined)
    limit = min(max(params.limit, 0), MOST)
    shown = np.sort(ids[np.argsort(-longest[ids], kind="stable")[:limit]])
    by_instance: dict[int, list[int]] = {at: [] for at in shown.tolist()}
    for row in rows[np.isin(instance[rows], shown)].tolist():
        by_instance[int(instance[row])].append(row)
    return Connections(
        ranks=chosen,
        origin_ns=who.found.clocks.origin,
        rows=[
            Connection(
                collective=at,
                group=int(table.group[found[0]]),
                name=full_name(who, found[0]),
                members=index_of[table.member[found]].tolist(),
                events=[_event(who, row) for row in found],
                starts_ns=begins[found].tolist(),
                ends_ns=ends[found].tolist(),
            )
            for at, found in by_instance.items()
        ],
        total=len(ids),
        reasons=reasons(who),
    )


def _touches(instance: Int64, begins: Int64, ends: Int64, count: int, params: ConnectionsParams) -> Bool:
    """Collectives that any of their ranks has in the window."""
    inside = np.ones(len(instance), np.bool_)
    if params.begin is not None:
        inside &= ends >= params.begin
    if params.end is not None:
        inside &= begins < params.end
    return np.bincount(instance[inside], minlength=count) > 0


def _aligned(who: Party, name: str) -> AlignedRank:
    member = next((each for each in who.members if each.worker == name), None)
    if member is None:
        raise NotFoundError(f"there is no worker {name!r}")
    at = next((at for at, source in enumerate(who.sources) if source.worker == name), None)
    shift = None if at is None else who.found.clocks.clocks[at].shift
    return AlignedRank(name, member.rank, member.span, member.state, shift)


def _event(who: Party, row: int) -> int:
    table = who.found.job.table
    cell = who.sources[int(table.member[row])].summary.table()[table.row[row]]
    return int(cell["event"])


CONNECTIONS = RunView(
    "distributed/connections", "Connected ranks", ConnectionsParams, Connections, build, RANK_SUMMARIES
)
