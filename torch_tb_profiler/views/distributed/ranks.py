"""The ranks of a job: who takes part, on which devices, how their steps are spent, and how much they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.matching import ranks_without_times
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import (
    AverageRankStep,
    AverageRankWaiting,
    StepColumns,
    StepSums,
    average_steps,
    average_waiting,
    rank_spreads,
    step_columns,
    step_sums,
)
from torch_tb_profiler.base.format import natural_sort_key
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Member, Members
from torch_tb_profiler.views._shared.job.members import (
    compare_members,
    judge_members,
    member_rank,
    split_worker_name,
)
from torch_tb_profiler.views.distributed.payload.ranks import (
    AverageStepTimes,
    JobNode,
    NodeProcess,
    RankClockRow,
    RankDevice,
    RankEntry,
    RankFamily,
    RankSpreadRow,
    RankStepTimes,
)

_FAMILY_KINDS: Mapping[str, Literal["communication", "memory"]] = {
    "communication": "communication",
    "memory": "memory",
}
"""Kernel families that are no computation."""


@derived
def members_steps(members: Members[RankSummary]) -> StepColumns:
    return step_columns(compare_members(members))


@derived
def members_step_sums(members: Members[RankSummary]) -> StepSums:
    return step_sums(compare_members(members))


@derived
def members_averages(members: Members[RankSummary]) -> Sequence[AverageRankStep]:
    return average_steps(compare_members(members), members_steps(members))


@derived
def members_waiting(members: Members[RankSummary]) -> Sequence[AverageRankWaiting]:
    return average_waiting(compare_members(members), members_steps(members), members_step_sums(members))


def build_ranks(members: Members[RankSummary]) -> list[RankEntry]:
    """Return every member of the run, by rank; those without a rank last."""
    comparison = compare_members(members)
    rows = [_build_rank(comparison, member) for member in members]
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, natural_sort_key(row.worker)))


def _build_rank(comparison: RankComparison, member: Member[RankSummary]) -> RankEntry:
    summary, position = member.result, comparison.positions.get(member.worker)
    clock = None if position is None else comparison.clocks.clocks[position]
    reason = member.reason
    if member.worker in comparison.duplicates:
        reason = f"{comparison.duplicates[member.worker]} has the same rank and is compared instead"
    if member.worker in comparison.strangers:
        reason = f"it is of another job, with {plural(comparison.strangers[member.worker], 'rank')}"
    return RankEntry(
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
        clock=RankClockRow(clock.method, clock.offset, clock.residual, clock.ends, clock.shift) if clock else None,
    )


def build_nodes(comparison: RankComparison) -> list[JobNode]:
    """Group workers named `<host>_<process>` by host; any other worker is a host of its own."""
    processes: dict[str, list[NodeProcess]] = {}
    for source in comparison.sources:
        host, process = split_worker_name(source.worker)
        devices = [
            RankDevice(device.id, device.kind, device.name, device.memory_bytes, device.compute_capability)
            for device in source.summary.devices
        ]
        entry = NodeProcess(process or source.summary.process or "0", source.worker, source.rank, devices)
        processes.setdefault(source.worker if host is None else host, []).append(entry)
    return [
        JobNode(name, entries)
        for name, entries in sorted(processes.items(), key=lambda item: natural_sort_key(item[0]))
    ]


def build_step_times(comparison: RankComparison) -> list[RankStepTimes]:
    """Return how every step of every rank is spent."""
    untimed = ranks_without_times(comparison.job)
    return [
        RankStepTimes(
            worker=source.worker,
            rank=source.rank,
            step=name,
            start_ns=start,
            complete=complete and position not in untimed,
            duration_ns=duration,
            computation_ns=computation,
            overlap_ns=overlap,
            exposed_ns=exposed,
            other_ns=other,
        )
        for position, source in enumerate(comparison.sources)
        for name, (start, duration, computation, overlap, exposed, other, complete, _) in zip(
            source.summary.steps.names, source.summary.steps.table().tolist(), strict=True
        )
    ]


def build_averages(comparison: RankComparison, rows: Sequence[AverageRankStep]) -> list[AverageStepTimes]:
    """Return the average step of every rank that has typical steps."""
    return [
        AverageStepTimes(
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


def build_families(comparison: RankComparison) -> list[RankFamily]:
    """Return the device work of every rank by kernel family."""
    rows = []
    for source in comparison.sources:
        total = sum(family.time for family in source.summary.families)
        rows += [
            RankFamily(
                worker=source.worker,
                rank=source.rank,
                family=family.family,
                kind=_FAMILY_KINDS.get(family.family, "computation"),
                calls=family.calls,
                device_ns=family.time,
                share=family.time / total if total else 0.0,
                kernel=family.kernel,
                kernel_ns=family.kernel_time,
            )
            for family in source.summary.families
        ]
    return rows


def build_spreads(members: Members[RankSummary]) -> list[RankSpreadRow]:
    """Return how much the ranks differ in each measure that is known of a rank."""
    sources = compare_members(members).sources
    spreads = rank_spreads(members_averages(members), members_waiting(members), judge_members(members).rows)
    return [
        RankSpreadRow(
            measure=spread.measure,
            ranks=spread.ranks,
            mean_ns=spread.mean,
            least_ns=spread.min,
            p10_ns=spread.p10,
            median_ns=spread.median,
            p90_ns=spread.p90,
            p99_ns=spread.p99,
            most_ns=spread.max,
            least_worker=sources[spread.min_member].worker,
            most_worker=sources[spread.max_member].worker,
        )
        for spread in spreads
    ]
