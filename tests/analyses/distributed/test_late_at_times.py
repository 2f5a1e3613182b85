"""What ranks cost that are late in some steps only: several at once, or one whose windows no other rank has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.simulation.simulator import Action, Delay, SimulatedKernel, Simulation, ddp, pipeline
from torch_tb_profiler.analyses.distributed.costs import straggler_costs
from torch_tb_profiler.views._shared.job.members import compare_members

STEPS = (0, 3)


def _scale_first(programs: Sequence[Sequence[Action]], factor: float) -> list[list[Action]]:
    """Return programs of which the first one computes that many times as long."""
    first = [
        replace(each, us=factor * each.us) if isinstance(each, SimulatedKernel) else each for each in programs[0]
    ]
    return [first, *([*program] for program in programs[1:])]


def _cost_at_times(simulation: Simulation) -> float:
    """Return µs per step."""
    comparison = compare_members(simulation.run().members())
    return straggler_costs(comparison.job, comparison.matching, comparison.split).at_times / 1000


@pytest.mark.parametrize(
    ("programs", "us"), [(ddp(4, overlap=False), 1000), (pipeline(4), 3000)], ids=["ddp", "pipeline"]
)
@pytest.mark.parametrize("late", [(0,), (1,), (0, 1, 2)], ids=str)
def test_what_ranks_cost_that_are_late_at_once_is_what_the_job_takes_less_without(
    programs: Sequence[Sequence[Action]], us: float, late: tuple[int, ...]
) -> None:
    delays = [Delay("loading", rank, us=us, steps=STEPS) for rank in late]
    simulation = Simulation(programs, steps=6, delays=delays, jitter=0.01, syncs=True)
    assert _cost_at_times(simulation) == pytest.approx(simulation.cost_us(), rel=0.15)


@pytest.mark.parametrize("first", [0.3, 2.0])
def test_a_longer_batch_is_no_lateness_although_it_adds_most_to_the_stage_that_has_most_to_do(
    first: float,
) -> None:
    delays = [Delay("rows", rank, factor=1.2, steps=STEPS) for rank in range(4)]
    _check_nobody_is_late(Simulation(_scale_first(pipeline(4), first), delays=delays))


def test_what_is_as_much_longer_on_each_stage_is_no_lateness_although_it_is_another_share_of_its_work() -> None:
    longer = Delay("larger", 0, kernel="gemm_backward", steps=STEPS)
    delays = [replace(longer, rank=rank, factor=1.5 if rank else 1.25) for rank in range(4)]
    _check_nobody_is_late(Simulation(_scale_first(pipeline(4), 2.0), delays=delays))


@pytest.mark.parametrize("rank", [0, 2])
def test_what_a_stage_does_longer_in_every_step_is_no_lateness_at_times(rank: int) -> None:
    _check_nobody_is_late(Simulation(pipeline(4), delays=[Delay("loading", rank, us=3000)]))


def _check_nobody_is_late(simulation: Simulation) -> None:
    simulation = replace(simulation, steps=6, syncs=True)
    assert simulation.cost_us() > 1000
    assert _cost_at_times(simulation) == 0
