"""The limits of a verdict, each from both sides."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tests.support.jobs import Job, ddp
from torch_tb_profiler.analyses.distributed import significance as evidence
from torch_tb_profiler.analyses.distributed.causes import find_work_cause
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import StragglerCosts, straggler_costs
from torch_tb_profiler.analyses.distributed.stragglers import RankTime, StragglerActivity
from torch_tb_profiler.analyses.distributed.verdict import _longest_working
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.judgment import judge_members
from torch_tb_profiler.views._shared.job.members import compare_members


@pytest.fixture(scope="module")
def comparison() -> RankComparison:
    return compare_members(Job(4, ddp(4)).members())


@pytest.fixture(scope="module")
def of_job(comparison: RankComparison) -> StragglerCosts:
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
        categories=[RankTime("kernel", kernels, 0), RankTime("cpu_exec", 100 - kernels, 0)],
        host=[RankTime("prepare_batch", 100 - kernels, 0)],
        frames=[],
        kernels=[RankTime("extra_kernel", kernels, 0)],
        short_names={},
    )
    cause = find_work_cause(comparison, row)
    assert (cause.where, cause.name) == (where, "prepare_batch" if where == "host" else "extra_kernel")


@pytest.mark.parametrize(("share", "named"), [(0.66, False), (0.74, True)])
def test_a_rank_is_named_if_it_causes_seven_tenths_of_what_all_cost(
    of_job: StragglerCosts, share: float, named: bool
) -> None:
    of_all = msgspec.structs.replace(
        of_job, by_rank=np.array([0.0, share * 1e6, 0.0, 0.0]), sets=(), imbalance=1e6
    )
    found = _longest_working(of_all, min_cost=1.0)
    assert (found is not None and found.members == (1,)) == named


def stands_out(
    monkeypatch: pytest.MonkeyPatch, comparison: RankComparison, of_job: StragglerCosts, late: list[float]
) -> bool:
    """Rank 0 is late by so much in each step; the others by 1, the root of their mean square."""
    excess = np.vstack([late, np.ones((2, len(late)))])
    monkeypatch.setattr(evidence, "_excess_by_step", lambda *_: excess)
    monkeypatch.setattr(evidence, "_exceeds_jitter", lambda *_: True)
    return evidence.is_significant(comparison.job, of_job.work, [0])


# Late in one step of four by what is less than six times the rest: neither its steps nor its longest tell.
@pytest.mark.parametrize(("late", "clear"), [([12.0, 6.0, 1.0, 1.0], True), ([6.0, 4.0, 2.0, 1.0], False)])
def test_a_mean_of_four_times_what_others_vary_is_clear(
    monkeypatch: pytest.MonkeyPatch,
    comparison: RankComparison,
    of_job: StragglerCosts,
    late: list[float],
    clear: bool,
) -> None:
    assert stands_out(monkeypatch, comparison, of_job, late) == clear


@pytest.mark.parametrize(
    ("late", "clear"),
    [([2.0, 2.0], True), ([2.0, 2.0, 2.0], True), ([3.0, 0.5, 0.5], False)],
    ids=["four steps of others tell nothing", "all alike", "six tell that it varies"],
)
def test_six_steps_of_other_ranks_tell_how_much_they_vary(
    monkeypatch: pytest.MonkeyPatch,
    comparison: RankComparison,
    of_job: StragglerCosts,
    late: list[float],
    clear: bool,
) -> None:
    assert stands_out(monkeypatch, comparison, of_job, late) == clear


def test_a_step_that_is_not_whole_says_nothing_of_the_share_of_communication() -> None:
    members, shares = [], []
    for member in Job(4, ddp(4)).members():
        assert member.result is not None
        table = member.result.steps.table().copy()
        table["complete"] = [True, True, False]
        table["exposed"][2] = table["duration"][2]
        shares.append((table["exposed"][:2] / table["duration"][:2]).mean())
        steps = msgspec.structs.replace(member.result.steps, parts=table.tobytes())
        members.append(replace(member, result=msgspec.structs.replace(member.result, steps=steps)))
    spent = judge_members(Members(members)).verdict.communication
    assert spent is not None and spent.share == pytest.approx(np.mean(shares)) and max(shares) < 0.9
