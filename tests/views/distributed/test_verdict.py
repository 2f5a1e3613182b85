"""When a rank is named, and what as the cause."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.job_views import sentences, view
from tests.support.jobs import CULPRIT, Job, JobOp, ddp
from tests.support.simulation.simulator import (
    Delay,
    SimulatedKernel,
    Simulation,
    tensor_and_data_parallel,
    with_idle_stage,
)
from tests.support.simulation.simulator import ddp as simulated_ddp
from tests.support.simulation.simulator import pipeline as simulated_pipeline
from torch_tb_profiler.analyses.distributed import causes, stragglers
from torch_tb_profiler.analyses.distributed.stragglers import StragglerActivity
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.distributed.build import build


@pytest.mark.parametrize(("slow_us", "kind"), [(45.0, "balanced"), (90.0, "straggler")])
def test_a_delay_of_a_fiftieth_of_the_step_is_worth_a_name(slow_us: float, kind: str) -> None:
    """A step takes 3.2 ms: 64 us."""
    payload = build(Job(8, ddp(8), straggler=4, slow_us=slow_us, jitter_us=0.0).members(), NoParams())
    assert payload.verdict.kind == kind
    assert payload.stragglers[0].rank == 4  # the table lists the delay all the same


@pytest.mark.parametrize(
    ("ranks", "late", "kind"),
    [(2, 1, "straggler"), (7, 2, "uneven"), (8, 2, "straggler"), (11, 4, "uneven"), (12, 3, "straggler")],
)
def test_stragglers_are_at_most_a_quarter_of_the_ranks_or_one(ranks: int, late: int, kind: str) -> None:
    """Each of the late ranks computes before a collective of its own, and so delays all by as much."""
    everyone = tuple(range(ranks))
    program = [
        op
        for rank in range(late)
        for op in (
            JobOp("allreduce", (rank,), f"rank {rank} alone", compute_us=5000),
            JobOp("allreduce", everyone, "0"),
        )
    ]
    payload = view(Job(ranks, program, jitter_us=0.0))
    assert {row.rank for row in payload.stragglers if row.cost_ns > 3_000_000} == set(range(late))
    assert payload.verdict.kind == kind


@pytest.mark.parametrize(("here", "few"), [(3, True), (4, False)])
def test_with_less_than_half_of_the_ranks_nobody_is_named(here: int, few: bool) -> None:
    job = Simulation(simulated_ddp(8), delays=[Delay("host", 1, us=5000)]).run()
    payload = build(job.members(only=list(range(here))), NoParams())
    assert sentences(payload).startswith(f"Only {here} of 8 ranks were read") == few
    assert (payload.verdict.rank is None) == few


def test_a_delay_in_one_step_may_be_chance() -> None:
    """There is nothing that tells how much a step varies."""
    job = Simulation(simulated_ddp(4, 2, overlap=False), steps=1, delays=[Delay("host", 1, us=5000)])
    payload = build(job.run().members(), NoParams())
    assert (payload.verdict.kind, payload.verdict.rank, payload.verdict.cost_ns) == ("uncertain", None, None)
    text = "Rank 1 may be a straggler (5.00 ms per step), but 1 step isn't enough to tell."
    assert sentences(payload).startswith(text) and sentences(payload).count("enough to") == 1


@pytest.mark.parametrize(("share", "kind"), [(0.11, "uncertain"), (0.09, "balanced")])
def test_what_may_be_chance_is_a_doubt_if_it_would_cost_a_tenth_of_the_step(share: float, kind: str) -> None:
    program = simulated_ddp(4, 2, overlap=False)
    plain_step = build(Simulation(program, steps=1).run().members(), NoParams()).averages[0].duration_ns
    late = share / (1 - share) * plain_step / 1000
    payload = build(Simulation(program, steps=1, delays=[Delay("host", 1, us=late)]).run().members(), NoParams())
    assert payload.verdict.kind == kind
    assert sentences(payload).startswith("No rank is a clear straggler. Rank 1 costs the others most:") == (
        kind == "balanced"
    )


@pytest.mark.parametrize(
    ("other_us", "clause", "late"),
    [(0, "Rank 1 is late once", True), (1500, "Rank 1 is late once", True), (4500, "differences between", False)],
)
def test_a_delay_in_one_step_stands_out_if_no_other_rank_is_as_late(
    other_us: float, clause: str, late: bool
) -> None:
    """Rank 1 is 5 ms late in the first of three steps, rank 0 in the second."""
    delays = [Delay("host", 1, us=5000, steps=(0,)), Delay("host", 0, us=other_us, steps=(1,))]
    payload = build(Simulation(simulated_ddp(2, 2), steps=3, delays=delays).run().members(), NoParams())
    assert payload.verdict.kind == "uneven"
    assert clause in sentences(payload)
    assert ("Rank 1 is late once: in step" in sentences(payload)) == late


def test_a_kernel_that_is_late_once_is_named_and_not_the_call_that_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The host is in `aten::item` while the kernel runs, for as long."""
    measured = stragglers.straggler_activity

    def activity_with_waits(*args: Any) -> list[StragglerActivity]:
        return [
            replace(each, host=[replace(each.kernels[0], name="aten::item"), *each.host])
            for each in measured(*args)
        ]

    monkeypatch.setattr(causes, "straggler_activity", activity_with_waits)
    delays = [Delay("larger", 1, kernel="gemm", factor=6.0, steps=(2,))]
    payload = build(Simulation(simulated_ddp(4), steps=5, delays=delays, syncs=True).run().members(), NoParams())
    assert re.search(r"Rank 1 is late once: in step 3, by \d+\.\d+ ms, mostly in gemm\.", sentences(payload))


@pytest.mark.parametrize(("us", "is_said"), [(20_000, True), (8000, True), (3000, False)])
def test_a_rank_that_is_late_once_is_told_beside_a_straggler_if_anybody_waits_for_it(
    us: float, is_said: bool
) -> None:
    delays = [Delay("host", 1, us=5000), Delay("frame", 2, us=us, steps=(2,))]
    payload = build(
        Simulation(simulated_ddp(4, overlap=False), steps=8, delays=delays).run().members(), NoParams()
    )
    said = sentences(payload)
    assert said.startswith("Rank 1 is a straggler: ")
    assert (f"Rank 2 is late once: in step 3, by {us / 1000:#.3g} ms, mostly in " in said) == is_said
    assert ("Rank 2" in said) == is_said


def test_a_delay_of_many_ranks_is_said_to_be_of_no_few() -> None:
    """Three of eight: without one or two of them the others wait for the third."""
    delays = [Delay("host", rank, us=5000) for rank in (2, 5, 6)]
    payload = build(Simulation(simulated_ddp(8), delays=delays).run().members(), NoParams())
    assert sentences(payload).startswith(
        "No rank is a clear straggler, but differences between the ranks cost 5.00 ms per step. "
        "No small group of ranks causes most of it. "
    )


@pytest.mark.parametrize(("hidden_us", "names_one"), [(1000.0, True), (1800.0, False)])
def test_the_rank_that_causes_over_half_is_named_beside_what_differences_cost(
    hidden_us: float, names_one: bool
) -> None:
    """Without rank 0, which is 3 ms late, the others wait for rank 3."""
    programs = tensor_and_data_parallel(4, 2)
    delays = [Delay("host", 0, us=3000), Delay("host", 3, us=hidden_us)]
    simulation = Simulation(programs, steps=6, delays=delays, syncs=True)
    said = sentences(build(simulation.run().members(), NoParams()))
    saved = (simulation.cost_us() - Simulation(programs, steps=6, delays=delays[1:], syncs=True).cost_us()) / 1000
    named = re.search(r"\. Rank 0 costs the others most: (\S+) ms per step\.", said)
    assert (named is not None) == names_one == ("No small group" not in said)
    assert named is None or float(named[1]) == pytest.approx(saved, rel=0.1)


def test_a_half_of_the_ranks_that_works_longer_costs_the_other_half_the_difference() -> None:
    simulation = Simulation(
        simulated_ddp(8), delays=[Delay("host", rank, us=2000) for rank in (4, 5, 6, 7)], jitter=0.01
    )
    payload = build(simulation.run().members(), NoParams())
    text = re.match(r"No rank is a clear straggler, but .* cost (\S+) ms per step\.", sentences(payload))
    assert text is not None and float(text[1]) == pytest.approx(simulation.cost_us() / 1000, rel=0.1)


@pytest.mark.parametrize("missing", [None, 1])
def test_ranks_that_wait_for_each_other_in_turn_are_not_balanced(missing: int | None) -> None:
    """Some ranks are late in one step and the others in the next, so that all work as long in total."""
    delays = [Delay("host", rank, us=8000, steps=tuple(range(int(rank > 2), 6, 2))) for rank in range(5)]
    simulation = Simulation(simulated_ddp(5, overlap=False), steps=6, delays=delays)
    payload = build(simulation.run().members(only=[rank for rank in range(5) if rank != missing]), NoParams())
    text = re.match(r"No rank is a clear straggler, but .* cost (\S+) ms per step\.", sentences(payload))
    assert text is not None and float(text[1]) == pytest.approx(simulation.cost_us() / 1000, rel=0.1)


@pytest.mark.parametrize("jitter", [0.0, 0.01])
def test_stages_of_a_pipeline_that_stall_in_other_steps_than_the_last_one_are_not_balanced(jitter: float) -> None:
    """The job is as late by the stalls of the first stage alone, whose windows no other rank has."""
    delays = [Delay("loading", stage, us=3000, steps=(2,) if stage == 3 else (0, 4)) for stage in range(4)]
    simulation = Simulation(simulated_pipeline(4), steps=6, delays=delays, jitter=jitter, syncs=True)
    text = re.match(
        r"No rank is a clear straggler, but .* cost (\S+) ms per step\.",
        sentences(build(simulation.run().members(), NoParams())),
    )
    assert text is not None and float(text[1]) == pytest.approx(simulation.cost_us() / 1000, rel=0.1)


@pytest.mark.parametrize(
    "late",
    [
        Delay("host", 1, us=1900),  # over before most of what its first message waits for
        Delay("rows", 0, factor=1.2),
        Delay("device", 2, factor=1.3),
    ],
)
def test_a_stage_costs_no_more_than_it_works_longer_whatever_the_others_wait_in_the_pipeline(late: Delay) -> None:
    simulation = Simulation(simulated_pipeline(3, 4), steps=5, delays=[late], syncs=True)
    kernels = sum(each.us for each in simulation.programs[late.rank] if isinstance(each, SimulatedKernel))
    longer = late.us or (late.factor - 1) * kernels
    payload = build(simulation.run().members(), NoParams())
    text = re.match(rf"Rank {late.rank} is a straggler: .* up to (\S+) ms per step\.", sentences(payload))
    assert text is not None
    assert simulation.cost_us() / 1000 <= float(text[1]) <= 1.05 * longer / 1000
    assert max(row.waiting_per_step_ns for row in payload.stragglers) > 2 * float(text[1]) * 1e6


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ((0, 2, 4), "Rank 2 may be the straggler, but its trace is missing:"),
        (None, "All ranks found here wait for rank 2, whose trace is missing, at least "),
    ],
)
def test_a_missing_rank_is_the_straggler_if_all_others_wait_in_most_steps(
    steps: tuple[int, ...] | None, text: str
) -> None:
    delays = [Delay("host", 2, us=8000, steps=steps)]
    simulation = Simulation(simulated_ddp(4, overlap=False), steps=6, delays=delays)
    payload = build(simulation.run().members(only=[0, 1, 3]), NoParams())
    assert sentences(payload).startswith(text)


@pytest.mark.parametrize(
    ("share", "cause"),
    [
        (0.15, "rank 2 spends 8.50 ms per step in other communication"),
        (0.25, f"rank 2's host spends 2.50 ms per step in {CULPRIT}"),
    ],
)
def test_a_fifth_of_the_difference_is_a_cause(share: float, cause: str) -> None:
    """Rank 2 is 10 ms late: a share of it in one operator, the rest in a collective of its own."""
    alone = [
        JobOp("allreduce", (rank,), f"rank {rank} alone", 10, 10_000 * (1 - share) if rank == 2 else 20)
        for rank in range(4)
    ]
    program = [*alone, JobOp("allreduce", (0, 1, 2, 3), "0")]
    payload = view(Job(4, program, straggler=2, slow_us=10_000 * share, jitter_us=0.0))
    assert f"Before it arrives, {cause};" in sentences(payload)


# ---- gradients that are reduced in some steps only ------------------------------------------------------


@pytest.mark.parametrize("every", [2, 3, 4])
def test_who_is_late_in_each_step_is_a_straggler_where_few_steps_communicate(every: int) -> None:
    """Its lateness adds up until the gradients are reduced: no rank can be late in steps without a collective.

    Of four steps one is a quarter, which would be odd: lateness shows in no other step.
    """
    simulation = Simulation(
        simulated_ddp(3, 2), steps=4 * every, delays=[Delay("host", 1, us=3000)], jitter=0.01, accumulates=every
    )
    payload = build(simulation.run().members(), NoParams())
    assert (payload.verdict.kind, payload.verdict.rank) == ("straggler", 1)
    assert payload.verdict.cost_ns == pytest.approx(1000 * simulation.cost_us(), rel=0.1)


@pytest.mark.parametrize("every", [2, 3, 4])
def test_who_waits_in_the_few_steps_that_communicate_spends_that_share_of_all_steps(every: int) -> None:
    """Of four steps one is odd for the ranks that wait, not for the late one: its typical steps communicate."""
    delay = Delay("host", 1, us=3000)
    job = Simulation(simulated_ddp(3, 2), steps=4 * every, delays=[delay], jitter=0.01, accumulates=every).run()
    text = sentences(build(job.members(), NoParams()))
    found = re.search(r"Ranks 0 and 2 spend ([\d.]+)% of an average step in exposed communication", text)
    assert found, text
    # They wait 3 ms per step on average, and a step takes about 10 ms.
    assert 29 < float(found[1]) < 31, text


def test_who_is_late_in_one_of_the_few_steps_that_communicate_is_late_once() -> None:
    simulation = Simulation(
        simulated_ddp(3, 2), steps=12, delays=[Delay("host", 1, us=9000, steps=(4,))], jitter=0.01, accumulates=2
    )
    text = sentences(build(simulation.run().members(), NoParams()))
    assert "Rank 1 is late once: in step 6, by" in text, text


def test_what_a_rank_costs_in_typical_steps_is_no_cost_of_the_step_in_which_it_is_late() -> None:
    """Step 3 takes all ranks so much longer that averages of typical steps leave it out."""
    delays = [Delay("host", 0, us=60_000, steps=(2,)), Delay("host", 0, us=100)]
    simulation = Simulation(simulated_ddp(3, 2), steps=7, delays=delays, jitter=0.01)
    text = sentences(build(simulation.run().members(), NoParams()))
    assert "Rank 0 is late once: in step 3, by" in text
    assert "costs the other" not in text, text


def test_a_cost_per_step_leaves_out_the_parts_of_steps_at_the_ends_of_a_recording() -> None:
    simulation = Simulation(simulated_ddp(3, 2), steps=5, delays=[Delay("host", 1, us=3000)])
    job = simulation.run()
    steps = [span for span in job.spans[0] if span.kind == "step"]
    begin, end = ((step.start + step.end) / 2 for step in (steps[0], steps[-1]))
    verdict = build(job.between(begin, end).members(), NoParams()).verdict
    assert (verdict.kind, verdict.rank) == ("straggler", 1)
    assert verdict.cost_ns == pytest.approx(1000 * simulation.cost_us(), rel=0.05)


@pytest.mark.parametrize(("idle", "kind"), [(None, "balanced"), (3, "uneven")])
def test_the_verdict_is_as_uneven_as_its_sentence(idle: int | None, kind: str) -> None:
    programs = simulated_pipeline(4) if idle is None else with_idle_stage(4, idle)
    payload = build(Simulation(programs).run().members(), NoParams())
    assert payload.verdict.kind == kind
    assert ("balanced" in sentences(payload)) == (idle is None)
