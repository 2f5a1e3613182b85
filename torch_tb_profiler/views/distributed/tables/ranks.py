"""The ranks, one row each: where they ran, how their steps are spent, what their lateness costs, their clocks."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Member, Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members, judge_members
from torch_tb_profiler.views.distributed import columns, ranks
from torch_tb_profiler.views.distributed.payload.tables import JobRank, JobRanks, Place, RanksParams
from torch_tb_profiler.views.distributed.reasons import reasons
from torch_tb_profiler.views.distributed.tables.paging import page


def build(members: Members[RankSummary], params: RanksParams) -> JobRanks:
    """A page of the table."""
    rows, total = page(_rows(members), params, lambda row: (row.worker, row.host))
    return JobRanks(rows, total, params.first, reasons(compare_members(members)))


@derived
def _rows(members: Members[RankSummary]) -> Sequence[JobRank]:
    """By rank; those without one last."""
    by_worker = {member.worker: member for member in members}
    averages = {row.member: row for row in columns.averages_of(members)}
    waits = {row.member: row for row in columns.waits_of(members)}
    late = {row.member: row for row in judge_members(members).rows}
    places = _places(members)
    comparison = compare_members(members)
    rows = []
    for rank in ranks.ranks(members):
        position = comparison.positions.get(rank.worker, -1)
        source = comparison.sources[position] if position >= 0 else None
        step, wait, straggler = averages.get(position), waits.get(position), late.get(position)
        rows.append(
            JobRank(
                worker=rank.worker,
                rank=rank.rank,
                span=rank.span,
                state=rank.state,
                reason=rank.reason,
                compared=rank.compared,
                host=source.host if source else None,
                devices=_devices(by_worker[rank.worker]),
                places=places[position] if source else [],
                calls=rank.calls,
                duration_ns=step.duration if step else None,
                computation_ns=step.computation if step else None,
                overlap_ns=step.overlap if step else None,
                exposed_ns=step.exposed if step else None,
                other_ns=step.other if step else None,
                transfer_ns=wait.transfer if wait else None,
                waiting_ns=wait.waiting if wait else None,
                cost_ns=straggler.cost if straggler else None,
                last=straggler.last if straggler else None,
                collectives=straggler.collectives if straggler else None,
                method=rank.clock.method if rank.clock else None,
                residual_ns=rank.clock.residual_ns if rank.clock else None,
                offset_ns=rank.clock.offset_ns if rank.clock else None,
                recording_start_ns=rank.recording_start_ns,
                recording_duration_ns=rank.recording_duration_ns,
            )
        )
    return rows


def _devices(member: Member[RankSummary]) -> list[str]:
    devices = member.result.devices if member.result is not None else ()
    return [each.name or f"{each.kind} {each.id}" for each in devices]


def _places(members: Members[RankSummary]) -> list[list[Place]]:
    """Of every rank, in families of several groups."""
    comparison = compare_members(members)
    places: list[list[Place]] = [[] for _ in comparison.sources]
    for dimension in columns.dimensions_of(members):
        if len(dimension.groups) < 2:
            continue
        size = max(comparison.job.groups[code].size or 0 for code in dimension.groups)
        for own, place in zip(places, dimension.place.tolist(), strict=True):
            if place >= 0:
                own.append(Place(dimension.label, place, size))
    return places


RANKS = RunView(
    "distributed/ranks",
    "Ranks",
    RanksParams,
    JobRanks,
    build,
    RANK_SUMMARIES,
    answers="The ranks one by one: where they ran, how their steps are spent, what their lateness costs.",
)
