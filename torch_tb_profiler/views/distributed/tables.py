"""Tables of a large job, searched, sorted and sent page by page: ranks, steps, operations, groups, families."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import StepWaiting, waiting_by_step
from torch_tb_profiler.base.format import natural_sort_key
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.view import Member, Members, RunView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES, compare_members, judge_members
from torch_tb_profiler.views.distributed.communication import (
    build_group_collective,
    build_rank_collectives,
    format_group_ranks,
    group_label,
    members_dimensions,
    members_group_totals,
    members_group_usage,
)
from torch_tb_profiler.views.distributed.payload.communication import RankCollectiveRow
from torch_tb_profiler.views.distributed.payload.ranks import RankFamily
from torch_tb_profiler.views.distributed.payload.tables import (
    FamiliesParams,
    FamilyRows,
    GroupPlace,
    GroupRow,
    GroupRows,
    GroupsParams,
    JobRank,
    JobRanks,
    OperationRows,
    OperationsParams,
    RanksParams,
    RankStepRow,
    RankStepRows,
    StepsParams,
)
from torch_tb_profiler.views.distributed.ranks import (
    build_families,
    build_ranks,
    build_step_times,
    members_averages,
    members_step_sums,
    members_waiting,
)
from torch_tb_profiler.views.distributed.reasons import null_reasons

# ---- pages ----------------------------------------------------------------------------------------------

R = TypeVar("R", bound=msgspec.Struct)

_RANK_NUMBER = lazy_regex(r"(?:rank\s*)?([0-9]{1,9})", re.IGNORECASE)


class PageParams(Protocol):
    """What the parameters of all tables have."""

    @property
    def sort(self) -> str: ...
    @property
    def descending(self) -> bool: ...
    @property
    def search(self) -> str: ...
    @property
    def rows(self) -> slice: ...


def cut_page(
    rows: Sequence[R], params: PageParams, search_texts: Callable[[R], Sequence[str | None]]
) -> tuple[list[R], int]:
    """Return the rows of the page and how many rows match the search; `search_texts`: what it looks through."""
    found = _sort(_search(rows, params.search.strip(), search_texts), params.sort, params.descending)
    return found[params.rows], len(found)


def _search(rows: Sequence[R], search: str, search_texts: Callable[[R], Sequence[str | None]]) -> Sequence[R]:
    number = _RANK_NUMBER.fullmatch(search)
    if number:
        rank_rows = [row for row in rows if getattr(row, "rank", None) == int(number[1])]
        if rank_rows:
            return rank_rows
    lowered = search.lower()
    if not lowered:
        return rows
    return [row for row in rows if any(lowered in part.lower() for part in search_texts(row) if part)]


def _sort(rows: Sequence[R], sort: str, descending: bool) -> list[R]:
    """Sort the rows; those without a value come last, in their old order."""
    known = [row for row in rows if getattr(row, sort) is not None]
    is_text = any(isinstance(getattr(row, sort), str) for row in known[:1])
    known.sort(
        key=lambda row: natural_sort_key(getattr(row, sort)) if is_text else getattr(row, sort), reverse=descending
    )
    return [*known, *(row for row in rows if getattr(row, sort) is None)]


# ---- ranks ----------------------------------------------------------------------------------------------


def build_rank_page(members: Members[RankSummary], params: RanksParams) -> JobRanks:
    rows, total = cut_page(_build_rank_rows(members), params, lambda row: (row.worker, row.host))
    return JobRanks(rows, total, params.first, null_reasons(compare_members(members)))


@derived
def _build_rank_rows(members: Members[RankSummary]) -> Sequence[JobRank]:
    """Return a row per rank, by rank; those without a rank last."""
    by_worker = {member.worker: member for member in members}
    averages = {row.member: row for row in members_averages(members)}
    waits = {row.member: row for row in members_waiting(members)}
    stragglers = {row.member: row for row in judge_members(members).rows}
    places = _group_places(members)
    comparison = compare_members(members)
    rows = []
    for rank in build_ranks(members):
        position = comparison.positions.get(rank.worker, -1)
        source = comparison.sources[position] if position >= 0 else None
        step, wait, straggler = averages.get(position), waits.get(position), stragglers.get(position)
        rows.append(
            JobRank(
                worker=rank.worker,
                rank=rank.rank,
                span=rank.span,
                state=rank.state,
                reason=rank.reason,
                compared=rank.compared,
                host=source.host if source else None,
                devices=_device_names(by_worker[rank.worker]),
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
                cost_is_limit=straggler is not None and straggler.cost_is_limit,
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


def _device_names(member: Member[RankSummary]) -> list[str]:
    devices = member.result.devices if member.result is not None else ()
    return [device.name or f"{device.kind} {device.id}" for device in devices]


def _group_places(members: Members[RankSummary]) -> list[list[GroupPlace]]:
    """Return every rank's places in the families that have several groups."""
    comparison = compare_members(members)
    places: list[list[GroupPlace]] = [[] for _ in comparison.sources]
    for dimension in members_dimensions(members):
        if len(dimension.groups) < 2:
            continue
        size = max(comparison.job.groups[code].size or 0 for code in dimension.groups)
        for rank_places, place in zip(places, dimension.place.tolist(), strict=True):
            if place >= 0:
                rank_places.append(GroupPlace(dimension.label, place, size))
    return places


RANKS = RunView(
    "distributed/ranks",
    "Ranks",
    RanksParams,
    JobRanks,
    build_rank_page,
    RANK_SUMMARIES,
    answers="The ranks one by one: where they ran, how their steps are spent, what their lateness costs.",
)


# ---- steps ----------------------------------------------------------------------------------------------


def build_step_page(members: Members[RankSummary], params: StepsParams) -> RankStepRows:
    rows, total = cut_page(_build_step_rows(members), params, lambda row: (row.worker, row.step))
    return RankStepRows(rows, total, params.first, null_reasons(compare_members(members)))


@derived
def _build_step_rows(members: Members[RankSummary]) -> Sequence[RankStepRow]:
    """Return the steps by rank and time, then what each rank communicates outside its steps."""
    comparison = compare_members(members)
    waits: dict[tuple[str, str | None], StepWaiting] = {
        (comparison.sources[row.member].worker, row.step): row
        for row in waiting_by_step(comparison, members_step_sums(members))
    }
    rows = []
    for step in build_step_times(comparison):
        wait = waits[step.worker, step.step]
        rows.append(
            RankStepRow(
                step.worker, step.rank, step.step, step.start_ns, step.complete, step.duration_ns,
                step.computation_ns, step.overlap_ns, step.exposed_ns, step.other_ns, wait.transfer, wait.waiting,
            )
        )  # fmt: skip
    for (worker, name), wait in waits.items():
        if name is None:
            rank = comparison.sources[wait.member].rank
            no_times = (None,) * 7
            rows.append(RankStepRow(worker, rank, None, *no_times, wait.transfer, wait.waiting))
    return rows


STEPS = RunView(
    "distributed/steps",
    "Steps of the ranks",
    StepsParams,
    RankStepRows,
    build_step_page,
    RANK_SUMMARIES,
    answers="Every step of every rank: computation, communication, waiting.",
)


# ---- operations by rank, and by process group -----------------------------------------------------------


def build_operation_page(members: Members[RankSummary], params: OperationsParams) -> OperationRows:
    rows, total = cut_page(_operation_rows(members), params, lambda row: (row.name, row.worker, row.group_label))
    return OperationRows(rows, total, params.first, null_reasons(compare_members(members)))


@derived
def _operation_rows(members: Members[RankSummary]) -> Sequence[RankCollectiveRow]:
    return build_rank_collectives(compare_members(members), judge_members(members).totals)


OPERATIONS = RunView(
    "distributed/operations",
    "Operations by rank",
    OperationsParams,
    OperationRows,
    build_operation_page,
    RANK_SUMMARIES,
    answers="The communication of every rank by process group and collective.",
)


def build_group_page(members: Members[RankSummary], params: GroupsParams) -> GroupRows:
    rows, total = cut_page(_group_rows(members), params, lambda row: (row.name, row.label, row.family))
    return GroupRows(rows, total, params.first, null_reasons(compare_members(members)))


@derived
def _group_rows(members: Members[RankSummary]) -> Sequence[GroupRow]:
    comparison, totals = compare_members(members), members_group_totals(members)
    families = {code: dimension.label for dimension in members_dimensions(members) for code in dimension.groups}
    rows = []
    for code, (group, usage) in enumerate(zip(comparison.job.groups, members_group_usage(members), strict=True)):
        for total in totals.get(code, []):
            row = build_group_collective(comparison, total)
            rows.append(
                GroupRow(
                    **{name: getattr(row, name) for name in row.__struct_fields__},
                    group=code,
                    label=group_label(group, code),
                    family=families.get(code),
                    ranks=format_group_ranks(group),
                    size=group.size,
                    present=len(usage.members),
                    absent=len(usage.absent_ranks),
                    matched_by=usage.matched_by,
                    mismatches=usage.mismatches,
                    assumed=group.assumed,
                )
            )
    return rows


GROUPS = RunView(
    "distributed/groups",
    "Operations by process group",
    GroupsParams,
    GroupRows,
    build_group_page,
    RANK_SUMMARIES,
    answers="The communication of every process group by collective.",
)


# ---- kernel families ------------------------------------------------------------------------------------


def build_family_page(members: Members[RankSummary], params: FamiliesParams) -> FamilyRows:
    rows, total = cut_page(
        _family_rows(members), params, lambda row: (row.family, row.kind, row.kernel, row.worker)
    )
    return FamilyRows(rows, total, params.first, null_reasons(compare_members(members)))


@derived
def _family_rows(members: Members[RankSummary]) -> Sequence[RankFamily]:
    return build_families(compare_members(members))


FAMILIES = RunView(
    "distributed/families",
    "Kernel families by rank",
    FamiliesParams,
    FamilyRows,
    build_family_page,
    RANK_SUMMARIES,
    answers="The device work of every rank by kernel family.",
)
