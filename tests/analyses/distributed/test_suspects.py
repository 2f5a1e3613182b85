"""Which ranks are suspected: those that cause most of what all wait for, by more than chance."""

from __future__ import annotations

import pytest

from tests.support.simulation.simulator import Delay, Simulation, ddp
from torch_tb_profiler.analyses.distributed.verdict import StragglerVerdict
from torch_tb_profiler.views._shared.job.members import judge_members


def judge(simulation: Simulation) -> StragglerVerdict:
    return judge_members(simulation.run().members()).verdict


@pytest.mark.parametrize("buckets", [1, 2])
@pytest.mark.parametrize(("us", "is_late"), [(6000, False), (2000, True), (0, True)])
def test_a_rank_that_waits_as_long_for_the_others_is_no_straggler(us: float, is_late: bool, buckets: int) -> None:
    """Rank 0 stalls in four of seven steps, all others in the other three: most ranks do, so that is typical."""
    stalls = [Delay("loading", 0, us=6000, steps=(0, 2, 4, 6))]
    stalls += [Delay("loading", rank, us=us, steps=(1, 3, 5)) for rank in (1, 2, 3)]
    verdict = judge(Simulation(ddp(4, buckets), steps=7, delays=stalls, syncs=True))
    assert (verdict.kind in ("straggler", "uncertain")) == is_late
    if not is_late:
        assert verdict.imbalance == pytest.approx(6e6, rel=0.05)


@pytest.mark.parametrize(
    "late", [Delay("work", 1, us=1200), Delay("device", 1, factor=1.15)], ids=["work", "device"]
)
@pytest.mark.parametrize("jitter", [0.0, 0.005])
def test_work_between_steps_is_no_variation_of_what_a_rank_does_longer_in_every_step(
    late: Delay, jitter: float
) -> None:
    """An evaluation before every second step makes its first window many times as long on all ranks."""
    simulation = Simulation(ddp(4, 1), steps=5, delays=[late], between=(2, 60_000.0), jitter=jitter, syncs=True)
    assert [row.member for row in judge(simulation).ranks] == [1]
