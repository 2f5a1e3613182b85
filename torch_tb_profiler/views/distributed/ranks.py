"""The ranks of the job: who takes part, on which devices, and how their steps are spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.matching import ranks_without_times
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import AverageRankStep
from torch_tb_profiler.base.format import natural_sort_key
from torch_tb_profiler.view import Member, Members
from torch_tb_profiler.views._shared.job.members import compare_members, member_rank, split_worker_name
from torch_tb_profiler.views.distributed.payload.ranks import (
    AverageTimes,
    Clock,
    DeviceEntry,
    Node,
    Process,
    Rank,
    RankFamily,
    StepTimes,
)

_KINDS: Mapping[str, Literal["communication", "memory"]] = {
    "communication": "communication",
    "memory": "memory",
}
"""Families that do not compute."""


def ranks(members: Members[RankSummary]) -> list[Rank]:
    """Every member of the run, by rank; those without one last."""
    comparison = compare_members(members)
    rows = [_rank(comparison, member) for member in members]
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, natural_sort_key(row.worker)))


def _rank(comparison: RankComparison, member: Member[RankSummary]) -> Rank:
    summary, position = member.result, comparison.positions.get(member.worker)
    clock = None if position is None else comparison.clocks.clocks[position]
    reason = member.reason
    if member.worker in comparison.duplicates:
        reason = f"{comparison.duplicates[member.worker]} has the same rank and is compared in its place"
    return Rank(
        worker=member.worker,
        rank=member_rank(member),
        span=member.span,
        state=member.state,
        reason=reason,
        compared=position is not None,
        backend=summary.backend if summary else None,
        world_size=summary.world_size if summary else None,
        calls=len(summary.operations) if summary else None,
        recording_start_ns=clock.shift if clock else None,
        recording_duration_ns=summary.length if summary else None,
        clock=Clock(clock.method, clock.offset, clock.residual, clock.ends, clock.shift) if clock else None,
    )


def nodes(comparison: RankComparison) -> list[Node]:
    """Workers that are named `<host>_<process>` by host; every other is a host of its own."""
    processes: dict[str, list[Process]] = {}
    for source in comparison.sources:
        host, process = split_worker_name(source.worker)
        devices = [
            DeviceEntry(each.id, each.kind, each.name, each.memory_bytes, each.compute_capability)
            for each in source.summary.devices
        ]
        entry = Process(process or source.summary.process or "0", source.worker, source.rank, devices)
        processes.setdefault(source.worker if host is None else host, []).append(entry)
    return [
        Node(name, entries)
        for name, entries in sorted(processes.items(), key=lambda row: natural_sort_key(row[0]))
    ]


def step_times(comparison: RankComparison) -> list[StepTimes]:
    """Every step of every rank."""
    without = ranks_without_times(comparison.job)
    return [
        StepTimes(
            worker=source.worker,
            rank=source.rank,
            step=name,
            start_ns=start,
            complete=complete and position not in without,
            duration_ns=duration,
            computation_ns=computation,
            overlap_ns=overlap,
            exposed_ns=exposed,
            other_ns=other,
        )
        for position, source in enumerate(comparison.sources)
        for name, (start, duration, computation, overlap, exposed, other, complete) in zip(
            source.summary.steps.names, source.summary.steps.table().tolist(), strict=True
        )
    ]


def families(comparison: RankComparison) -> list[RankFamily]:
    """Device work of every rank by family of kernels."""
    rows = []
    for source in comparison.sources:
        whole = sum(each.time for each in source.summary.families)
        rows += [
            RankFamily(
                worker=source.worker,
                rank=source.rank,
                family=each.family,
                kind=_KINDS.get(each.family, "computation"),
                calls=each.calls,
                device_ns=each.time,
                share=each.time / whole if whole else 0.0,
                kernel=each.kernel,
                kernel_ns=each.kernel_time,
            )
            for each in source.summary.families
        ]
    return rows


def averages(comparison: RankComparison, rows: Sequence[AverageRankStep]) -> list[AverageTimes]:
    """Of every rank that has complete steps."""
    return [
        AverageTimes(
            worker=comparison.sources[row.member].worker,
            rank=comparison.sources[row.member].rank,
            steps=row.steps,
            duration_ns=row.duration,
            computation_ns=row.computation,
            overlap_ns=row.overlap,
            exposed_ns=row.exposed,
            other_ns=row.other,
        )
        for row in rows
    ]
