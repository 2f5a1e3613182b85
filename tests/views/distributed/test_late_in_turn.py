"""A cause that ranks share in turn is found where no rank is late in most steps, and named if it is recorded."""

from __future__ import annotations

import pytest

from tests.support.simulation.simulator import Action, Delay, SimulatedKernel, Simulation, Sync, ddp
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload


def view(kind: str, ranks: tuple[int, ...], us: float = 5000) -> DistributedPayload:
    """Return the view of eight steps of four ranks; one of `ranks` is late in each."""
    delays = [Delay(kind, ranks[step % len(ranks)], us=us, steps=(step,)) for step in range(8)]
    return build(Simulation(ddp(4), steps=8, delays=delays, jitter=0.01).run().members(), NoParams())


def test_another_rank_in_each_step_is_garbage_collection_where_nothing_is_recorded() -> None:
    payload = view("stall", (0, 2, 1, 3))
    assert payload.verdict.kind == "uneven"
    assert plain(payload.headline).startswith("Ranks take turns being late: in 8 of 8 steps, one of 4 is late by ")
    clause = plain(payload.explanation)
    assert clause.startswith("That costs ") and "garbage collector is the likely cause" in clause
    assert float(clause.removeprefix("That costs ").split()[0]) == pytest.approx(5, rel=0.1)
    assert "Call gc.freeze() after warm-up" in clause


def test_what_is_recorded_is_named_and_is_no_garbage_collection() -> None:
    clause = plain(view("host", (0, 2, 1, 3)).explanation)
    assert "All of them spend it in prepare_batch: do that on all ranks in the same step" in clause
    assert "garbage" not in clause


def test_kernels_that_have_more_work_in_turn_are_named_and_are_no_garbage_collection() -> None:
    """As of a mixture of experts, whose tokens go to another rank's expert in each step."""
    delays = [Delay("larger", (0, 2, 1, 3)[step % 4], factor=3.0, steps=(step,)) for step in range(8)]
    payload = build(Simulation(ddp(4), steps=8, delays=delays, jitter=0.01).run().members(), NoParams())
    assert plain(payload.headline).startswith("Ranks take turns being late")
    clause = plain(payload.explanation)
    assert "The late rank spends it in attention: give every rank the same amount of work in each step." in clause
    assert "garbage" not in clause


@pytest.mark.parametrize(("ranks", "us"), [((2,), 5000), ((2, 2, 2, 0), 5000), ((0, 2, 1, 3), 300)])
def test_one_rank_or_too_little_is_no_turn(ranks: tuple[int, ...], us: float) -> None:
    assert "take turns" not in plain(view("stall", ranks, us).headline)


@pytest.mark.parametrize(("share", "is_turn"), [(0.06, True), (0.04, False)])
def test_lateness_in_turn_counts_from_a_twentieth_of_a_step(share: float, is_turn: bool) -> None:
    step_us = 10_300.0
    assert ("take turns" in plain(view("stall", (0, 2, 1, 3), share * step_us).headline)) == is_turn


def test_a_kernel_that_a_window_does_not_list_is_not_one_that_it_lacks() -> None:
    """Windows list five of seven kernels: the fifth is now one, now the other of two that take as long."""
    delays = [
        Delay("larger", rank, kernel="gemm", factor=1.45, steps=(step,)) for step, rank in enumerate((0, 2, 1, 3))
    ]
    last: list[Action] = [SimulatedKernel("adam", 700), SimulatedKernel("clip_norm", 700), Sync()]
    programs = [[*program[:-2], *last] for program in ddp(4)]
    payload = build(Simulation(programs, steps=4, delays=delays, jitter=0.01).run().members(), NoParams())
    assert "The late rank spends it in gemm" in plain(payload.explanation)
    assert {activity.kernels[0].name for activity in payload.meanwhile} == {"gemm"}
    rows = {(row.name, row.median_ns is None) for each in payload.meanwhile for row in each.kernels}
    assert ("adam", True) in rows and ("gemm", False) in rows


def test_a_rank_that_is_late_more_often_than_all_others_is_not_late_in_turn() -> None:
    late = {0: 2, 1: 2, 2: 2, 3: 2, 4: 0, 5: 1, 6: 3}
    delays = [Delay("stall", rank, us=5000, steps=(step,)) for step, rank in late.items()]
    payload = build(Simulation(ddp(4), steps=12, delays=delays, jitter=0.01).run().members(), NoParams())
    assert "take turns" not in plain(payload.headline)


def test_two_ranks_that_take_turns_are_not_called_balanced_where_one_is_late_once_more() -> None:
    delays = [
        Delay("larger", rank, kernel="attention", factor=3, steps=tuple(range(rank, 7, 2))) for rank in range(2)
    ]
    payload = build(Simulation(ddp(2), steps=7, delays=delays).run().members(), NoParams())
    assert plain(payload.headline).startswith("Ranks take turns being late: in 7 of 7 steps, one of 2 is late by")
    assert "chance" not in plain(payload.explanation)


@pytest.mark.parametrize(("times", "is_turn"), [((0, 1, 0, 0, 1, 0), True), ((0, 1, 0, 0, 0, 0), False)])
def test_two_ranks_take_turns_if_neither_is_late_in_over_two_thirds_of_the_steps(
    times: tuple[int, ...], is_turn: bool
) -> None:
    delays = [
        Delay("larger", rank, factor=1.5 + rank, steps=tuple(i for i, each in enumerate(times) if each == rank))
        for rank in range(2)
    ]
    payload = build(Simulation(ddp(2, 1), steps=6, delays=delays).run().members(), NoParams())
    said = "Ranks take turns being late: in 6 of 6 steps, one of 2 is late by"
    assert plain(payload.headline).startswith(said) == is_turn


def test_two_ranks_of_which_one_is_hardly_late_are_said_to_differ() -> None:
    """Rank 0 is late by 8% of a step in four of seven, which may be chance; that they differ is none."""
    delays = [Delay("host", 0, us=800, steps=(0, 2, 4, 6)), Delay("host", 1, us=400, steps=(1, 3, 5))]
    payload = build(Simulation(ddp(2), steps=7, delays=delays).run().members(), NoParams())
    assert plain(payload.headline).startswith(
        "No rank is a clear straggler, but differences between the ranks cost "
    )
