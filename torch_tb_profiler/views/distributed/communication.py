"""Communication of a job: by step, by worker, by process group and family of groups, and where ranks disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.groups import (
    GroupUsage,
    ParallelDimension,
    group_usage,
    parallel_dimensions,
)
from torch_tb_profiler.analyses.distributed.matching import CollectiveMismatch
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import AverageRankWaiting, StepWaiting
from torch_tb_profiler.analyses.distributed.totals import GroupTotal, WorkerTotal, group_totals
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.groups import ProcessGroup
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, judge_members
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text
from torch_tb_profiler.views.distributed.payload.communication import (
    AverageWaitingRow,
    GroupCollectiveRow,
    GroupFamily,
    MismatchRow,
    MismatchValue,
    ProcessGroupRow,
    RankCollectiveRow,
    StepWaitingRow,
)

MAX_MISMATCHES, MAX_VALUES, MAX_WORKERS = 100, 8, 64
"""Most mismatches that are listed, values of each, and workers of each value."""

MAX_GROUP_FAMILIES, MAX_COLLECTIVE_NAMES = 30, 6
"""Most families of process groups that are listed, and collectives named of each."""

MAX_RANKS_LENGTH = 60
"""Most characters of a list of ranks in a cell."""


@derived
def members_group_usage(members: Members[RankSummary]) -> Sequence[GroupUsage]:
    return group_usage(compare_members(members))


@derived
def members_group_totals(members: Members[RankSummary]) -> Mapping[int, Sequence[GroupTotal]]:
    return group_totals(compare_members(members), judge_members(members).totals)


@derived
def members_dimensions(members: Members[RankSummary]) -> Sequence[ParallelDimension]:
    return parallel_dimensions(compare_members(members), members_group_usage(members))


def group_label(group: ProcessGroup, code: int) -> str:
    """Return the description or name of a process group, or one that is made of its id `code`."""
    known = group.description or group.name
    return known or ("the whole job" if group.assumed else f"group {code}")


def format_group_ranks(group: ProcessGroup) -> str | None:
    """Return the ranks of a group; only the first and the last of a long uneven list. None if unknown."""
    if group.ranks is None or len(group.ranks) <= MAX_RANKS_LENGTH:
        return group.ranks
    first, last = group.ranks.partition(",")[0], group.ranks.rpartition(",")[2]
    return f"{first}, ..., {last}"


def build_waiting(comparison: RankComparison, rows: Sequence[StepWaiting]) -> list[StepWaitingRow]:
    """Return transfer and waiting of every rank in every step."""
    sources = comparison.sources
    return [
        StepWaitingRow(sources[row.member].worker, sources[row.member].rank, row.step, row.transfer, row.waiting)
        for row in rows
    ]


def build_average_waiting(
    comparison: RankComparison, rows: Sequence[AverageRankWaiting]
) -> list[AverageWaitingRow]:
    """Return the means over the complete steps of every rank."""
    sources = comparison.sources
    return [
        AverageWaitingRow(sources[row.member].worker, sources[row.member].rank, row.transfer, row.waiting)
        for row in rows
    ]


def build_rank_collectives(comparison: RankComparison, totals: Sequence[WorkerTotal]) -> list[RankCollectiveRow]:
    """Return a row per worker, group and name, in order of rank."""
    job = comparison.job
    return [
        RankCollectiveRow(
            worker=job.source_of(total.operation).worker,
            rank=job.source_of(total.operation).rank,
            group=(group := int(job.table.group[total.operation])),
            group_label=group_label(job.groups[group], group),
            name=job.name_of(total.operation),
            collective=job.collective_of(total.operation),
            backend=job.backend_of(total.operation),
            calls=total.calls,
            bytes=total.bytes_in,
            out_bytes=total.bytes_out,
            message_bytes=total.message,
            latency_ns=total.latency,
            transfer_ns=total.transfer,
            waiting_ns=total.waiting,
            exposed_ns=total.exposed,
            algorithm_bandwidth=total.algorithm_bandwidth,
            bus_bandwidth=total.bus_bandwidth,
            lower_bound=total.lower_bound,
            timing=total.timing.name.lower(),
        )
        for total in totals
    ]


def build_groups(members: Members[RankSummary]) -> list[ProcessGroupRow]:
    """Return every process group with its operations summed over the ranks."""
    comparison, totals = compare_members(members), members_group_totals(members)
    return [
        ProcessGroupRow(
            id=code,
            name=group.name,
            label=group_label(group, code),
            description=group.description,
            ranks=usage.ranks,
            size=group.size,
            assumed=group.assumed,
            backends=usage.backends,
            matched_by=usage.matched_by,
            workers=[comparison.sources[member].worker for member in usage.members],
            absent_ranks=usage.absent_ranks,
            operations=[build_group_collective(comparison, total) for total in totals.get(code, [])],
            mismatches=usage.mismatches,
        )
        for code, (group, usage) in enumerate(
            zip(comparison.job.groups, members_group_usage(members), strict=True)
        )
    ]


def build_group_collective(comparison: RankComparison, total: GroupTotal) -> GroupCollectiveRow:
    """Return the row of one collective of a process group."""
    return GroupCollectiveRow(
        name=comparison.job.name_of(total.operation),
        collective=comparison.job.collective_of(total.operation),
        collectives=total.collectives,
        compared=total.compared,
        calls=total.calls,
        bytes=total.bytes_in,
        message_bytes=total.message,
        latency_ns=total.latency,
        transfer_ns=total.transfer,
        waiting_ns=total.waiting,
        exposed_ns=total.exposed,
        mean_skew_ns=total.mean_skew,
        max_skew_ns=total.max_skew,
        algorithm_bandwidth=total.algorithm_bandwidth,
        bus_bandwidth=total.bus_bandwidth,
        lower_bound=total.lower_bound,
    )


def build_group_families(members: Members[RankSummary]) -> list[GroupFamily]:
    """Return the families of process groups, those with most groups first."""
    return [_group_family(members, dimension) for dimension in members_dimensions(members)[:MAX_GROUP_FAMILIES]]


def _group_family(members: Members[RankSummary], dimension: ParallelDimension) -> GroupFamily:
    comparison, group_totals_by_code = compare_members(members), members_group_totals(members)
    usage, groups = members_group_usage(members), comparison.job.groups
    totals = [total for code in dimension.groups for total in group_totals_by_code.get(code, [])]
    calls: Counter[str] = Counter()
    for total in totals:
        calls[comparison.job.name_of(total.operation)] += total.calls
    waits = {
        code: waiting
        for code in dimension.groups
        if (waiting := _sum_known(total.waiting for total in group_totals_by_code.get(code, []))) is not None
    }
    slowest = max(waits, key=lambda code: waits[code], default=None)
    return GroupFamily(
        label=dimension.label,
        groups=len(dimension.groups),
        complete=sum(len(usage[code].members) == groups[code].size for code in dimension.groups),
        size=max(groups[code].size or 0 for code in dimension.groups),
        backends=sorted({backend for code in dimension.groups for backend in usage[code].backends}),
        names=[name for name, _ in calls.most_common(MAX_COLLECTIVE_NAMES)],
        collectives=sum(total.collectives for total in totals),
        compared=sum(total.compared for total in totals),
        latency_ns=_sum_known(total.latency for total in totals),
        transfer_ns=_sum_known(total.transfer for total in totals),
        waiting_ns=_sum_known(total.waiting for total in totals),
        exposed_ns=_sum_known(total.exposed for total in totals),
        slowest_group=slowest,
        slowest_ranks=None if slowest is None else format_group_ranks(groups[slowest]),
        slowest_waiting_ns=None if slowest is None else waits[slowest],
    )


def _sum_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


_MISMATCH_TEXTS = {
    "name": "ranks run different collectives at the same point",
    "size": "ranks move different amounts of data",
    "dtype": "ranks use different data types",
    "missing": "a rank lacks it but has earlier and later ones",
}


def build_mismatches(comparison: RankComparison) -> list[MismatchRow]:
    """Return the first disagreements between ranks."""
    return [_build_mismatch(comparison, mismatch) for mismatch in comparison.matching.mismatches[:MAX_MISMATCHES]]


def _build_mismatch(comparison: RankComparison, mismatch: CollectiveMismatch) -> MismatchRow:
    job = comparison.job
    row = comparison.matching.first_row(mismatch.instance)
    return MismatchRow(
        group=int(job.table.group[row]),
        collective=mismatch.instance,
        step=job.step_of(row),
        what=mismatch.what,
        values=[
            MismatchValue(
                value, [comparison.sources[member].worker for member in members[:MAX_WORKERS]], len(members)
            )
            for value, members in list(mismatch.values.items())[:MAX_VALUES]
        ],
        text=_mismatch_text(job.name_of(row), mismatch),
    )


def _mismatch_text(name: str, mismatch: CollectiveMismatch) -> Text:
    collective = Phrase(name, link("distributed", table="collectives", collective=mismatch.instance))
    what = _MISMATCH_TEXTS[mismatch.what]
    if mismatch.what == "missing":
        return text("{collective}: {what}", collective=collective, what=what)
    values = ", ".join(mismatch.values)
    return text("{collective}: {what} ({values})", collective=collective, what=what, values=values)
