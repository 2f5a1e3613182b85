"""The critical path of a rank beside the others: waiting on it is not a network's to give."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from tests.support.simulation.files import RecordedJob
from tests.support.simulation.simulator import (
    Action,
    Collective,
    Delay,
    Simulation,
    ddp,
    fsdp,
    tensor_and_data_parallel,
)
from torch_tb_profiler.analyses.distributed.steps import exposed_communication
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path.beside import build_beside_ranks
from torch_tb_profiler.views.critical_path.build import build
from torch_tb_profiler.views.critical_path.payload import CriticalPathParams, CriticalPathPayload

ALL = CriticalPathParams(what_if="communication:75")


def answers(
    job: RecordedJob, rank: int, *, only: Sequence[int] | None = None, params: CriticalPathParams = ALL
) -> tuple[CriticalPathPayload, ...]:
    """Return the path of a rank alone, and beside those of `only`, or of all."""
    members = job.members(only)
    worker = next(member.worker for member in members if member.rank == rank)
    alone = build(job.trace(rank), params)
    return alone, build_beside_ranks(alone, worker, members, params)


def faster_network(simulation: Simulation, part: float) -> Simulation:
    """Return the same job with transfers that take `part` of the time."""
    programs = [
        [replace(each, us=each.us * part) if isinstance(each, Collective) else each for each in program]
        for program in simulation.programs
    ]
    return replace(simulation, programs=programs, _ends={}, _arrived={})


def step_us(simulation: Simulation) -> float:
    return simulation.run().end / simulation.steps


def without(payload: CriticalPathPayload, percent: int) -> int:
    (row,) = (row for row in payload.targets if row.target == "communication")
    assert row.step_ns is not None
    return row.step_ns[payload.percents.index(percent)]


@pytest.mark.parametrize("programs", [ddp(4), ddp(4, overlap=False), fsdp(4)])
@pytest.mark.parametrize("percent", [50, 100])
def test_a_faster_network_saves_no_more_than_said(programs: Sequence[Sequence[Action]], percent: int) -> None:
    simulation = Simulation(programs, delays=[Delay("host", 2, us=30_000)], syncs=True, jitter=0.01)
    alone, beside = answers(simulation.run(), 0)
    saved = step_us(simulation) - step_us(faster_network(simulation, 1 - percent / 100))
    predicted = (beside.path.duration_ns - without(beside, percent)) / 1000
    transfer = sum(each.us for each in programs[0] if isinstance(each, Collective))
    assert 0 < saved - 2 <= predicted <= transfer * percent / 100 + 2
    assert predicted < (alone.path.duration_ns - without(alone, percent)) / 1000 / 2
    changed = beside.what_if[-1]
    assert (changed.target, changed.percent) == ("communication", 75)
    assert without(beside, 100) <= changed.step_ns <= without(beside, 50)


@pytest.mark.parametrize("seed", range(8))
def test_where_ranks_are_late_in_turn_a_faster_network_saves_what_the_job_does(seed: int) -> None:
    """In each step another rank computes longer than the transfers beside it, and the others wait for that."""
    rng = random.Random(seed)
    ranks, transfer_us, percent = rng.choice((2, 3)), rng.uniform(300, 1500), rng.choice((25, 50, 75, 90))
    programs = [
        [replace(each, us=transfer_us) if isinstance(each, Collective) else each for each in program]
        for program in fsdp(ranks)
    ]
    delays = [
        Delay("larger", rank, factor=rng.uniform(1.3, 2), kernel="gemm_forward", steps=(rank, rank + ranks))
        for rank in range(ranks)
    ]
    simulation = Simulation(programs, steps=2 * ranks, delays=delays, syncs=True)
    job, params = simulation.run(), CriticalPathParams(what_if=f"communication:{percent}")
    saved = step_us(simulation) - step_us(faster_network(simulation, 1 - percent / 100))
    for rank in range(ranks):
        _, beside = answers(job, rank, params=params)
        changed = beside.what_if[-1]
        assert (changed.target, changed.percent) == ("communication", percent)
        assert (beside.path.duration_ns - changed.step_ns) / 1000 == pytest.approx(saved, rel=0.02)


def test_waiting_is_a_part_of_its_own_and_the_headline_says_so() -> None:
    """Of three transfers of 400 µs two end while the backward pass goes on: only the last one delays the step."""
    alone, beside = answers(Simulation(ddp(4), delays=[Delay("host", 2, us=30_000)], syncs=True).run(), 0)
    times = {each.name: each.time_ns for each in beside.path.categories}
    before = {each.name: each.time_ns for each in alone.path.categories}
    assert times["rank_wait"] == pytest.approx(30e6, rel=0.15)
    assert times["rank_wait"] + times["communication"] == pytest.approx(before["communication"])
    assert sum(times.values()) == pytest.approx(beside.path.duration_ns)
    assert plain(beside.headline) == (
        "An average step is bound by other ranks: 82.9% of its critical path is waiting for other ranks. "
        "A faster network would save at most 400 µs."
    )
    assert "Rank 2 is a straggler" in plain(beside.beside)
    assert "communication accounts" not in plain(beside.explanation).lower()
    assert beside.communication is not None and beside.communication.waiting_ns == times["rank_wait"]


def test_on_the_path_exposed_communication_splits_as_in_the_overview() -> None:
    """All-gathers run beside the forward pass, so that all communication has more transfer than the path."""
    job = Simulation(fsdp(4), delays=[Delay("loading", 0, us=1300)], syncs=True).run()
    _, beside = answers(job, 1)
    assert beside.communication is not None
    exposed = exposed_communication(compare_members(job.members()), 1)
    assert exposed is not None and exposed.waiting > 1.2e6
    assert beside.communication.waiting_ns == pytest.approx(exposed.waiting, rel=0.02)
    assert beside.communication.transfer_ns == pytest.approx(exposed.transfer, rel=0.02)


def test_what_communication_hides_behind_that_is_removed_makes_a_saving_a_bound() -> None:
    """Without its products, the all-gather beside the forward pass shows, as no recorded call says who waits."""
    job = Simulation(fsdp(4, 2), delays=[Delay("device", 3, factor=1.25)], syncs=True).run()
    alone, _ = answers(job, 0)
    explanation = plain(alone.explanation)
    assert "removing it would cut the step to" in explanation
    assert "at best if communication time stays the same." in explanation


def test_a_rank_alone_says_that_waiting_may_be_in_it_and_offers_no_faster_network() -> None:
    alone, _ = answers(Simulation(ddp(4), delays=[Delay("host", 2, us=30_000)], syncs=True).run(), 0)
    assert plain(alone.headline).endswith("communication, including any waiting for other ranks.")
    assert "ommunication accounts" not in plain(alone.explanation)
    assert "waiting for other ranks, which a faster network doesn't shorten" in plain(alone.limits)


def test_without_waiting_communication_is_the_networks() -> None:
    """A slow network and no late rank: all of it is transfer, and twice as fast helps as in the second run."""
    programs = [
        [replace(each, us=20_000.0) if isinstance(each, Collective) else each for each in program]
        for program in ddp(4, 1, overlap=False)
    ]
    simulation = Simulation(programs, syncs=True)
    _, beside = answers(simulation.run(), 0)
    assert "communication-bound" in plain(beside.headline)
    saved = step_us(simulation) - step_us(faster_network(simulation, 0.5))
    assert (beside.path.duration_ns - without(beside, 50)) / 1000 == pytest.approx(saved, rel=0.02)
    assert "rank_wait" not in {each.name for each in beside.path.categories}


def test_until_all_are_read_and_where_nobody_can_tell_the_answer_is_that_of_the_rank_alone() -> None:
    job = Simulation(ddp(4), delays=[Delay("host", 2, us=30_000)], syncs=True).run()
    alone, beside = answers(job, 0, only=[0])
    assert structs.replace(beside, beside=()) == alone and "Only rank 0 was read" in plain(beside.beside)
    assert build_beside_ranks(alone, "nobody", Members(job.members()), ALL).communication is None


def test_with_ranks_missing_no_sentence_bounds_what_a_faster_network_saves() -> None:
    """A rank may wait for one that waits for transfers of ranks whose files are missing."""
    simulation = Simulation(tensor_and_data_parallel(4, 2), delays=[Delay("host", 1, us=30_000)], syncs=True)
    job = simulation.run()
    _, all_ranks = answers(job, 0)
    alone, some = answers(job, 0, only=[0, 1, 3])
    assert "A faster network would save at most" in plain(all_ranks.headline)
    assert "network" not in plain(some.headline) and "twice as fast" not in plain(some.headline)
    assert some.communication is not None
    assert alone.path.duration_ns - without(some, 100) < 0.1 * some.communication.waiting_ns
    assert "What-ifs of communication" in plain(all_ranks.limits)
    assert "What-ifs of communication" in plain(some.limits)
