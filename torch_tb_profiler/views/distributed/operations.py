"""Communication operations: by step, by worker, by process group, and where ranks disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.distributed import steps
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.groups import GroupUsage
from torch_tb_profiler.analyses.distributed.matching import CollectiveMismatch
from torch_tb_profiler.analyses.distributed.totals import GroupTotal, WorkerTotal
from torch_tb_profiler.views.distributed.group_names import group_label
from torch_tb_profiler.views.distributed.payload.communication import (
    AverageWaiting,
    CollectiveRow,
    Differing,
    Group,
    Mismatch,
    Operation,
    Waiting,
)
from torch_tb_profiler.views.distributed.words import mismatch_text

MOST_MISMATCHES, MOST_VALUES, MOST_WORKERS = 100, 8, 64
"""So many disagreements, values of each, and workers of each value are listed."""


def waiting(comparison: RankComparison, rows: Sequence[steps.StepWaiting]) -> list[Waiting]:
    """Transfer and waiting of every rank in every step."""
    sources = comparison.sources
    return [
        Waiting(sources[row.member].worker, sources[row.member].rank, row.step, row.transfer, row.waiting)
        for row in rows
    ]


def average_waiting(comparison: RankComparison, rows: Sequence[steps.AverageRankWaiting]) -> list[AverageWaiting]:
    """Means over the complete steps."""
    sources = comparison.sources
    return [
        AverageWaiting(sources[row.member].worker, sources[row.member].rank, row.transfer, row.waiting)
        for row in rows
    ]


def collective_rows(comparison: RankComparison, totals: Sequence[WorkerTotal]) -> list[CollectiveRow]:
    """A row per worker, group and name, in order of rank."""
    job = comparison.job
    return [
        CollectiveRow(
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


def groups(
    comparison: RankComparison, uses: Sequence[GroupUsage], totals: Mapping[int, Sequence[GroupTotal]]
) -> list[Group]:
    """Every process group with its operations summed over the ranks."""
    return [
        Group(
            id=code,
            name=group.name,
            label=group_label(group, code),
            description=group.description,
            ranks=use.ranks,
            size=group.size,
            assumed=group.assumed,
            backends=use.backends,
            matched_by=use.matched_by,
            workers=[comparison.sources[member].worker for member in use.members],
            absent_ranks=use.absent_ranks,
            operations=[operation(comparison, total) for total in totals.get(code, [])],
            mismatches=use.mismatches,
        )
        for code, (group, use) in enumerate(zip(comparison.job.groups, uses, strict=True))
    ]


def operation(comparison: RankComparison, total: GroupTotal) -> Operation:
    """A row of a process group."""
    return Operation(
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


def mismatches(comparison: RankComparison) -> list[Mismatch]:
    """The first disagreements between ranks."""
    return [_mismatch(comparison, mismatch) for mismatch in comparison.matching.mismatches[:MOST_MISMATCHES]]


def _mismatch(comparison: RankComparison, mismatch: CollectiveMismatch) -> Mismatch:
    job = comparison.job
    row = comparison.matching.first_row(mismatch.instance)
    return Mismatch(
        group=int(job.table.group[row]),
        collective=mismatch.instance,
        step=job.step_of(row),
        what=mismatch.what,
        values=[
            Differing(
                value, [comparison.sources[member].worker for member in members[:MOST_WORKERS]], len(members)
            )
            for value, members in list(mismatch.values.items())[:MOST_VALUES]
        ],
        text=mismatch_text(job.name_of(row), mismatch),
    )
