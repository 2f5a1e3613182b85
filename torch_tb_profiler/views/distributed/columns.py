"""What several tables of the job are arranged from, computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.distributed.groups import (
    GroupUsage,
    ParallelDimension,
    group_usage,
    parallel_dimensions,
)
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import (
    AverageRankStep,
    AverageRankWaiting,
    StepColumns,
    StepSums,
    average_steps,
    average_waiting,
    step_columns,
    step_sums,
)
from torch_tb_profiler.analyses.distributed.totals import GroupTotal, group_totals
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, judge_members


@derived
def steps_of(members: Members[RankSummary]) -> StepColumns:
    return step_columns(compare_members(members))


@derived
def sums_of(members: Members[RankSummary]) -> StepSums:
    return step_sums(compare_members(members))


@derived
def averages_of(members: Members[RankSummary]) -> Sequence[AverageRankStep]:
    return average_steps(compare_members(members), steps_of(members))


@derived
def waits_of(members: Members[RankSummary]) -> Sequence[AverageRankWaiting]:
    return average_waiting(compare_members(members), steps_of(members), sums_of(members))


@derived
def uses_of(members: Members[RankSummary]) -> Sequence[GroupUsage]:
    return group_usage(compare_members(members))


@derived
def totals_of(members: Members[RankSummary]) -> Mapping[int, Sequence[GroupTotal]]:
    return group_totals(compare_members(members), judge_members(members).totals)


@derived
def dimensions_of(members: Members[RankSummary]) -> Sequence[ParallelDimension]:
    return parallel_dimensions(compare_members(members), uses_of(members))
