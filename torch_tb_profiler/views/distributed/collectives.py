"""The collectives of a job one by one: the table of all, and one of them rank by rank."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.distributed.collectives import (
    CollectiveFilter,
    CollectiveParticipant,
    CollectiveSort,
    CollectiveTable,
    OperationWindow,
    collective_participants,
    collective_table,
    collective_table_row,
    select_collectives,
)
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members, Page, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.distributed.communication import group_label
from torch_tb_profiler.views.distributed.reasons import null_reasons

# ---- the table ------------------------------------------------------------------------------------------


class CollectivesParams(Page, frozen=True):
    """Which rows of the table of collectives, in which order.

    group       id of a process group, -1: all
    late        only collectives in which this worker arrived last
    mismatched  only collectives on which the ranks disagree
    """

    sort: CollectiveSort = "start"
    descending: bool = False
    group: int = -1
    name: str = ""
    step: str = ""
    late: str = ""
    mismatched: bool = False


class CollectiveInstance(msgspec.Struct, frozen=True):
    """One collective across ranks.

    id         names it in `distributed/collective`
    group_label  the description or name of the group
    sequence   its recorded sequence number, null if none
    start_ns, end_ns  job time of the first arrival and of the last end
    ranks      number of ranks that recorded it; size: number of ranks in the group, null if unknown
    bytes      message size of one rank (the largest), null if not recorded
    latency_ns longest of the ranks; transfer_ns: the shortest, which all of them needed
    waiting_ns sum over the ranks of latency - transfer
    skew_ns    first to last arrival; null without two ranks on one clock
    late_worker, late_rank  who arrived last; null if the error of the clocks exceeds the skew
    mismatch   what differs between the ranks, so that it was not compared; null if nothing does
    """

    id: int
    group: int
    group_label: str
    name: str
    sequence: int | None
    step: str | None
    start_ns: int | None
    end_ns: int | None
    ranks: int
    size: int | None
    dtype: str | None
    bytes: int | None
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    skew_ns: int | None
    late_worker: str | None
    late_rank: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool
    mismatch: str | None


class CollectivesPayload(msgspec.Struct, frozen=True):
    """A page of the table; `total` rows match the filters."""

    rows: list[CollectiveInstance]
    total: int
    first: int
    reasons: Mapping[str, Text]


def build_collectives(members: Members[RankSummary], params: CollectivesParams) -> CollectivesPayload:
    """Return a page of the table; NotFoundError for an unknown group, step or worker."""
    comparison = compare_members(members)
    filters = CollectiveFilter(
        group=params.group if params.group >= 0 else None,
        name=params.name or None,
        step=params.step or None,
        last=params.late or None,
        mismatched=params.mismatched,
    )
    ids = select_collectives(comparison, _table(members), filters, params.sort, params.descending)
    page = [_build_instance(members, collective) for collective in ids[params.rows]]
    return CollectivesPayload(page, len(ids), params.first, null_reasons(comparison))


@derived
def _table(members: Members[RankSummary]) -> CollectiveTable:
    return collective_table(compare_members(members))


@derived
def _find_mismatch_texts(members: Members[RankSummary]) -> dict[int, str]:
    """Return what differs between the ranks of a collective, by its id."""
    texts: dict[int, list[str]] = {}
    for mismatch in compare_members(members).matching.mismatches:
        texts.setdefault(mismatch.instance, []).append(f"{mismatch.what}: {', '.join(mismatch.values)}")
    return {collective: "; ".join(parts) for collective, parts in texts.items()}


def _build_instance(members: Members[RankSummary], collective: int) -> CollectiveInstance:
    comparison = compare_members(members)
    row = collective_table_row(comparison, _table(members), collective)
    return CollectiveInstance(
        id=collective,
        group=row.group,
        group_label=group_label(comparison.job.groups[row.group], row.group),
        name=comparison.job.name_of(row.operation),
        sequence=row.sequence,
        step=comparison.job.step_of(row.operation),
        start_ns=row.start,
        end_ns=row.end,
        ranks=row.ranks,
        size=row.size,
        dtype=comparison.job.dtype_of(row.operation),
        bytes=row.message,
        latency_ns=row.latency,
        transfer_ns=row.transfer,
        waiting_ns=row.waiting,
        skew_ns=row.skew,
        late_worker=row.last.worker if row.last else None,
        late_rank=row.last.rank if row.last else None,
        algorithm_bandwidth=row.algorithm_bandwidth,
        bus_bandwidth=row.bus_bandwidth,
        lower_bound=row.lower_bound,
        mismatch=_find_mismatch_texts(members).get(collective),
    )


COLLECTIVES = RunView(
    "distributed/collectives",
    "Collectives",
    CollectivesParams,
    CollectivesPayload,
    build_collectives,
    RANK_SUMMARIES,
    answers="Collectives one by one: how long, how large, which rank came last.",
)


# ---- one collective -------------------------------------------------------------------------------------


class CollectiveParams(msgspec.Struct, frozen=True):
    """`collective`: the id of a CollectiveInstance."""

    collective: int


class NamedTime(msgspec.Struct, frozen=True):
    """Time by name; `short_name`: for kernels as in the rank's Kernels view, else the name."""

    name: str
    short_name: str
    ns: int


class PrecedingWork(msgspec.Struct, frozen=True):
    """What the rank did between the group's previous collective and this one.

    window_ns   that time; `categories` (the overview's eight, in order) sum to it
    host        operators and annotations by self time, largest first; kernels: device work likewise
    """

    window_ns: int
    categories: list[NamedTime]
    host: list[NamedTime]
    kernels: list[NamedTime]


class ParticipantRow(msgspec.Struct, frozen=True):
    """A rank's part in one collective.

    event     row of its trace: the kernel, or the host's call if no kernel is recorded
    call      row of its trace: the host's call that launched it, null if none is recorded
    trace_start_ns  its start in the rank's own trace; start_ns, end_ns: job time
    after_first_ns  time after the first arrival
    before    null for the first of the group in the recording
    """

    worker: str
    rank: int | None
    span: str
    event: int
    call: int | None
    name: str
    dtype: str | None
    bytes: int | None
    out_bytes: int | None
    trace_start_ns: int | None
    start_ns: int | None
    end_ns: int | None
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    exposed_ns: int | None
    after_first_ns: int | None
    before: PrecedingWork | None


class CollectivePayload(msgspec.Struct, frozen=True):
    """One collective across the ranks, in order of rank; `median_worker` arrived in the middle."""

    instance: CollectiveInstance
    participants: list[ParticipantRow]
    median_worker: str | None
    reasons: Mapping[str, Text]


def build_collective(members: Members[RankSummary], params: CollectiveParams) -> CollectivePayload:
    """Return one collective rank by rank; NotFoundError for an unknown id."""
    comparison = compare_members(members)
    count = len(comparison.matching)
    if not 0 <= params.collective < count:
        raise NotFoundError(f"there is no collective {params.collective}", hint=f"0 to {count - 1}")
    participants = collective_participants(comparison, params.collective)
    spans = {member.worker: member.span for member in members}
    return CollectivePayload(
        instance=_build_instance(members, params.collective),
        participants=[_build_participant(comparison, part, spans[part.source.worker]) for part in participants],
        median_worker=next((part.source.worker for part in participants if part.is_median), None),
        reasons=null_reasons(comparison),
    )


def _build_participant(comparison: RankComparison, part: CollectiveParticipant, span: str) -> ParticipantRow:
    return ParticipantRow(
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
        before=None if part.before is None else _build_preceding_work(part.before),
    )


def _build_preceding_work(window: OperationWindow) -> PrecedingWork:
    short_names = window.short_names
    return PrecedingWork(
        window_ns=window.length,
        categories=[NamedTime(name, name, time) for name, time in window.categories.items()],
        host=[NamedTime(name, name, time) for name, time in window.host],
        kernels=[NamedTime(name, short_names.get(name, name), time) for name, time in window.kernels],
    )


COLLECTIVE = RunView(
    "distributed/collective",
    "One collective",
    CollectiveParams,
    CollectivePayload,
    build_collective,
    RANK_SUMMARIES,
)
