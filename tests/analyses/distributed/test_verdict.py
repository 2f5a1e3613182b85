"""The thresholds of a verdict, each from both sides."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.jobs import Job, ddp
from torch_tb_profiler.analyses.distributed import significance
from torch_tb_profiler.analyses.distributed.causes import find_work_cause
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import StragglerCosts, straggler_costs
from torch_tb_profiler.analyses.distributed.stragglers import RankTime, StragglerActivity
from torch_tb_profiler.analyses.distributed.suspects import longest_working
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, judge_members


@pytest.fixture(scope="module")
def comparison() -> RankComparison:
    return compare_members(Job(4, ddp(4)).members())


@pytest.fixture(scope="module")
def job_costs(comparison: RankComparison) -> StragglerCosts:
    return straggler_costs(comparison.job, comparison.matching, comparison.split)


@pytest.mark.parametrize(("kernels", "where"), [(45, "host"), (55, "device")])
def test_the_device_is_the_cause_if_kernels_make_up_half_of_the_difference(
    comparison: RankComparison, kernels: int, where: str
) -> None:
    row = StragglerActivity(
        member=1,
        collectives=1,
        steps=1,
        latest=0,
        busy=200,
        median_busy=100,
        excess=100,
        categories=[RankTime("kernel", kernels, 0, 0), RankTime("cpu_exec", 100 - kernels, 0, 0)],
        host=[RankTime("prepare_batch", 100 - kernels, 0, 0)],
        frames=[],
        kernels=[RankTime("extra_kernel", kernels, 0, 0)],
        short_names={},
    )
    cause = find_work_cause(comparison, row)
    assert cause is not None
    assert (cause.where, cause.name) == (where, "prepare_batch" if where == "host" else "extra_kernel")


@pytest.mark.parametrize(("kernels", "where"), [(95, "extra_kernel"), (45, None)])
def test_a_kernel_is_the_cause_beside_a_second_device_that_computes_as_long(
    comparison: RankComparison, kernels: int, where: str | None
) -> None:
    """The device computes no longer in total, so no category says what the rank does longer."""
    row = StragglerActivity(
        member=1,
        collectives=1,
        steps=1,
        latest=0,
        busy=200,
        median_busy=200,
        excess=100,
        categories=[RankTime("kernel", 150, 150, 150), RankTime("memcpy", 0, 0, 0)],
        host=[],
        frames=[],
        kernels=[RankTime("extra_kernel", kernels, None, 0)],
        short_names={},
    )
    cause = find_work_cause(comparison, row)
    assert (None if cause is None else cause.name) == where


@pytest.mark.parametrize(("share", "named"), [(0.66, False), (0.74, True)])
def test_a_rank_is_named_if_it_causes_seven_tenths_of_the_total_cost(
    job_costs: StragglerCosts, share: float, named: bool
) -> None:
    costs = msgspec.structs.replace(
        job_costs, by_rank=np.array([0.0, share * 1e6, 0.0, 0.0]), sets=(), earliest=np.array([1e6, 9e6, 1e6, 1e6])
    )
    found = longest_working(costs, min_cost=1.0)
    assert (found is not None and found.members == (1,)) == named


def is_late_rank_significant(
    monkeypatch: pytest.MonkeyPatch, comparison: RankComparison, job_costs: StragglerCosts, late: list[float]
) -> bool:
    """Return whether rank 0 is significant that is late by `late` in each step; the others are late by 1."""
    excess = np.vstack([late, np.ones((2, len(late)))])
    monkeypatch.setattr(significance, "_sum_excess_by_step", lambda *_: excess)
    monkeypatch.setattr(significance, "_exceeds_jitter", lambda *_: True)
    return significance.is_significant(comparison.job, job_costs.work, [0])


# The variation of its own steps is too large, and its longest step less than six times the rest.
@pytest.mark.parametrize(("late", "expected"), [([12.0, 6.0, 1.0, 1.0], True), ([6.0, 4.0, 2.0, 1.0], False)])
def test_a_mean_of_four_times_the_variation_of_others_is_significant(
    monkeypatch: pytest.MonkeyPatch,
    comparison: RankComparison,
    job_costs: StragglerCosts,
    late: list[float],
    expected: bool,
) -> None:
    assert is_late_rank_significant(monkeypatch, comparison, job_costs, late) == expected


@pytest.mark.parametrize(
    ("late", "expected"),
    [([2.0, 2.0], True), ([2.0, 2.0, 2.0], True), ([3.0, 0.5, 0.5], False)],
    ids=["four steps of others are too few", "all equal", "six steps show variation"],
)
def test_the_variation_of_other_ranks_is_known_from_six_steps(
    monkeypatch: pytest.MonkeyPatch,
    comparison: RankComparison,
    job_costs: StragglerCosts,
    late: list[float],
    expected: bool,
) -> None:
    assert is_late_rank_significant(monkeypatch, comparison, job_costs, late) == expected


def test_an_incomplete_step_is_left_out_of_the_share_of_communication() -> None:
    members, shares = [], []
    for member in Job(4, ddp(4)).members():
        assert member.result is not None
        table = member.result.steps.table().copy()
        table["complete"] = table["typical"] = [True, True, False]
        table["exposed"][2] = table["duration"][2]
        table["duration"][1] *= 3  # a long step counts for more than a short one
        shares.append(table["exposed"][:2].sum() / table["duration"][:2].sum())
        steps = msgspec.structs.replace(member.result.steps, parts=table.tobytes())
        members.append(replace(member, result=msgspec.structs.replace(member.result, steps=steps)))
    spent = judge_members(Members(members)).verdict.communication
    assert spent is not None and spent.share == pytest.approx(np.mean(shares)) and max(shares) < 0.9
