"""What the judge of random jobs asks of sentences, and which causes must be found, on jobs with known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.random_jobs.judge import judge_sentence, missed_causes
from tests.support.random_jobs.plan import JobPlan
from tests.support.random_jobs.rules import Context
from tests.support.random_jobs.truth import JobTruth
from tests.support.random_jobs.variants import draw_job
from tests.support.simulation.simulator import (
    Action,
    Call,
    Collective,
    Delay,
    Host,
    SimulatedKernel,
    Simulation,
    Sync,
    ddp,
    pipeline,
)


def truth_of(
    programs: Sequence[Sequence[Action]],
    causes: Sequence[Delay],
    *,
    steps: int = 5,
    odd: tuple[int, float] | None = None,
    present: tuple[int, ...] | None = None,
) -> JobTruth:
    """Return the truth of a job that isn't drawn."""
    simulation = Simulation(programs, steps=steps, delays=causes, syncs=True, odd=odd)
    found = tuple(range(len(programs))) if present is None else present
    return JobTruth.of(JobPlan(0, simulation, "rank", tuple(causes), None, odd, found, {}))


@pytest.mark.parametrize(("cost", "is_true"), [("5.60 ms", True), ("6.72 ms", False), ("4.67 ms", False)])
def test_a_planted_odd_step_is_left_out_once_of_what_stalls_cost(cost: str, is_true: bool) -> None:
    """Rank 1 stalls for 14 ms in two of the five steps that are not odd, and nobody else does in these."""
    stalls = [Delay("loading", rank, us=14_000.0, steps=(1, 5) if rank == 1 else (2,)) for rank in range(4)]
    truth = truth_of(ddp(4, 2), stalls, steps=6, odd=(0, 270_000.0))
    sentence = f"Rank 1 costs the others most: {cost} per step."
    assert (judge_sentence(sentence, Context(truth, 0)) is None) == is_true


@pytest.mark.parametrize(
    ("least", "most", "is_true"),
    [
        ("3.00 ms", "4.50 ms", True),
        ("3.00 ms", "6.50 ms", False),
        ("1.50 ms", "4.50 ms", False),
        ("4.50 ms", None, True),
    ],
)
def test_ranks_that_take_turns_are_late_by_chance_and_by_what_is_planned(
    least: str, most: str | None, is_true: bool
) -> None:
    """They are late by 3 ms and 4.5 ms."""
    late = [Delay("host", step % 2, us=4500.0 if step else 3000.0, steps=(step,)) for step in range(5)]
    said = f"Ranks take turns being late: in 5 of 5 steps, one of 2 is late by {least}"
    said += f" to {most}." if most else "."
    assert (judge_sentence(said, Context(truth_of(ddp(2, 1), late), 0)) is None) == is_true


def test_chance_makes_ranks_later_than_is_planned() -> None:
    """In one step a rank is planned to be late by 2.9 ms, of steps of 38 ms that vary by 2%."""
    truth = JobTruth.of(draw_job(49093))
    planned = max(truth.plan.lateness(each) for each in truth.plan.late_at_times)
    assert truth.lateness(1, 5) > 1.2 * planned
    assert truth.lateness(1, 5) == -truth.lateness(0, 5)


@pytest.mark.parametrize(("programs", "is_found"), [(pipeline(3), True), (ddp(3), False)])
def test_a_late_rank_need_not_be_found_if_only_a_missing_one_waits_for_it(
    programs: Sequence[Sequence[Action]], is_found: bool
) -> None:
    """Rank 1, between them, is as late: no file that is found shows who is the first."""
    truth = truth_of(programs, [Delay("rows", 2, factor=1.4)], present=(0, 2))
    said = "Rank 1 may be the straggler, but its trace is missing."
    assert (not [*missed_causes(truth, said)]) == is_found


@pytest.mark.parametrize(("transfer_us", "is_true"), [(50, False), (5000, True)])
def test_a_stage_may_wait_for_its_neighbor_or_for_a_slow_link(transfer_us: float, is_true: bool) -> None:
    """It has five messages of 50 us or 5 ms per step, and waits for less than 5 ms."""
    programs = [
        [replace(each, us=transfer_us) if isinstance(each, Collective) else each for each in program]
        for program in pipeline(2, 2)
    ]
    sentence = (
        "For 15.0 ms of an average step, this stage of a pipeline computes nothing while its messages take longer "
        "than their sizes explain: it waits for a neighbor stage, or the link to it is slow."
    )
    assert (judge_sentence(sentence, Context(truth_of(programs, [], present=(1,)), 1)) is None) == is_true


@pytest.mark.parametrize(
    ("rank", "gain", "is_true"), [(0, "1.20 ms", True), (0, "0.3 ms", False), (1, "1.20 ms", False)]
)
def test_advice_on_a_function_names_one_that_the_rank_runs(rank: int, gain: str, is_true: bool) -> None:
    """Its name has a file and a line, of which an operator's has none."""
    truth = truth_of(ddp(2), [Delay("frame", 0, us=1200.0)])
    sentence = f"Shorten /job/train.py(42): prepare_batch: saves up to {gain}, 9% on this rank alone (what-if)"
    assert (judge_sentence(sentence, Context(truth, rank)) is None) == is_true


@pytest.mark.parametrize(
    ("saved", "is_true"),
    [("at most 2.50 ms", True), ("at most 2.00 ms", False), ("3.70 ms", True), ("5.00 ms", False)],
)
def test_a_stage_alone_saves_less_than_the_job_with_faster_kernels(saved: str, is_true: bool) -> None:
    """Half of its own 5 ms of kernels, and of those of the other stage that it waits for."""
    truth = truth_of(pipeline(2, 2), [])
    sentence = f"Kernels twice as fast would save {saved}."
    assert (judge_sentence(sentence, Context(truth, 1)) is None) == is_true


@pytest.mark.parametrize(("then", "is_true"), [("5.10 ms", True), ("6.20 ms", False), ("4.00 ms", False)])
def test_a_step_without_waits_is_as_fast_as_in_a_row_of_typical_ones(then: str, is_true: bool) -> None:
    """Its kernel takes 5 ms, its host 2; a step in which a checkpoint is saved is none of these."""
    program: list[Action] = [Host("aten::sort", 2_000), SimulatedKernel("gemm", 5_000), Sync()]
    truth = truth_of([program], (), steps=12, odd=(5, 60_000))
    sentence = f"Removing the waits in cudaStreamSynchronize would cut the step to {then}."
    assert (judge_sentence(sentence, Context(truth, 0)) is None) == is_true


@pytest.mark.parametrize(("saved", "is_true"), [("1.02 ms", True), ("0.7 ms", False)])
def test_memory_is_freed_only_after_a_collective_so_faster_kernels_save_less(saved: str, is_true: bool) -> None:
    """Kernels take 3 ms beside a collective of 2 ms, for which `cudaFree` waits, too: 1 of 1.5 ms is saved."""
    program: list[Action] = [
        Collective("allreduce", (0, 1), "0", 2000),
        SimulatedKernel("gemm", 3000),
        Call("cudaFree", 1100, waits=True),
        Sync(),
    ]
    sentence = f"Kernels twice as fast would save at most {saved}."
    assert (judge_sentence(sentence, Context(truth_of([program] * 2, ()), 0)) is None) == is_true


@pytest.mark.parametrize(("late", "is_true"), [(0, True), (1, False)])
def test_ranks_that_are_found_are_balanced_although_a_missing_one_is_late(late: int, is_true: bool) -> None:
    truth = truth_of(ddp(4), [Delay("host", late, us=12_000.0, steps=(3,))], present=(1, 2, 3))
    sentence = "The 3 ranks found are balanced; no straggler among them."
    assert (judge_sentence(sentence, Context(truth, 2)) is None) == is_true


@pytest.mark.parametrize(("step", "is_found"), [(4, True), (3, False)])
@pytest.mark.parametrize("late", [0, 1])
def test_of_a_missing_rank_that_is_late_once_only_the_odd_step_can_be_found(
    late: int, step: int, is_found: bool
) -> None:
    truth = truth_of(ddp(4), [Delay("host", late, us=12_000.0, steps=(3,))], present=(1, 2, 3))
    said = (
        f"Step {step} takes 11.8 ms more than a typical step (18.1 ms), mostly in NCCL AllReduce Sum f32 RING LL."
    )
    assert (not [*missed_causes(truth, said)]) == (is_found and late == 0)
