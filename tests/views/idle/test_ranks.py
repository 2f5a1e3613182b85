"""Exposed communication of a rank beside the others, on simulated jobs whose truth is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tests.support.simulation.files import RecordedJob
from tests.support.simulation.simulator import Delay, Simulation, ddp, fsdp
from tests.views.overview.test_ranks import both, waited_us
from torch_tb_profiler.analyses.distributed.steps import step_sums, waiting_by_step
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members
from torch_tb_profiler.views._shared.text import Text, plain
from torch_tb_profiler.views.idle import ranks
from torch_tb_profiler.views.idle.build import build
from torch_tb_profiler.views.idle.payload import IdleParams, IdlePayload, IdleStream
from torch_tb_profiler.views.idle.ranks import build_with_ranks

LATE = Delay("host", 5, us=5000)
ALL = IdleParams()


def answer(
    job: RecordedJob, rank: int, params: IdleParams = ALL, only: Sequence[int] | None = None
) -> IdlePayload:
    """Return the idle time of a rank beside those of `only`, or of all."""
    members = job.members(only)
    worker = next(member.worker for member in members if member.rank == rank)
    return build_with_ranks(build(job.trace(rank), params), worker, members, params)


def reason(payload: IdlePayload) -> Text:
    """Return why nothing is known, which holds of all steps then."""
    assert payload.communication is None
    assert all((step.waiting_ns, step.transfer_ns, step.waits_for) == (None, None, []) for step in payload.steps)
    return payload.reasons["waiting_ns"]


@pytest.mark.parametrize(
    ("programs", "delay"),
    [
        (ddp(8), LATE),
        (ddp(8, overlap=False), LATE),
        (fsdp(4), Delay("device", 2, factor=1.3)),
    ],
)
def test_the_waiting_is_that_of_the_overview_and_for_the_rank_that_is_late(
    programs: Sequence[Sequence[object]], delay: Delay
) -> None:
    simulation = Simulation(programs, delays=[delay], jitter=0.02)  # type: ignore[arg-type]
    job = simulation.run()
    payload, (_, overview) = answer(job, 0), both(job, 0)
    assert payload.communication is not None and payload.communication == overview.waiting
    assert payload.communication.waiting_ns == pytest.approx(1000 * waited_us(job, 0, simulation.steps), rel=0.01)
    assert payload.communication.transfer_ns > 0
    first, rest = payload.waits_for[0], payload.waits_for[1:]
    assert first.rank == delay.rank
    assert first.waiting_ns > 0.9 * payload.communication.waiting_ns
    assert first.waiting_ns + sum(each.waiting_ns for each in rest) <= payload.communication.waiting_ns
    assert f"for rank {delay.rank}" in plain(payload.beside)
    assert "waiting_ns" not in payload.reasons


def test_each_step_has_its_transfer_and_its_waiting() -> None:
    job = Simulation(ddp(8, overlap=False), delays=[LATE], jitter=0.02).run()
    payload = answer(job, 0)
    steps = [step for step in payload.steps if step.complete]
    assert len(steps) > 1 and payload.communication is not None
    for step in steps:
        assert step.waiting_ns is not None and step.transfer_ns is not None
        assert step.waiting_ns + step.transfer_ns <= step.exposed_communication_ns
        assert step.waits_for[0].rank == 5
        alone = answer(job, 0, IdleParams(step=step.name))
        assert alone.communication is not None
        assert alone.communication.waiting_ns == step.waiting_ns
        assert [each.waiting_ns for each in alone.waits_for] == [each.waiting_ns for each in step.waits_for]
    assert sum(step.waiting_ns or 0 for step in steps) == pytest.approx(
        len(steps) * payload.communication.waiting_ns
    )


def test_where_nothing_is_overlapped_it_is_what_distributed_says_of_each_step() -> None:
    job = Simulation(ddp(8, overlap=False), delays=[LATE], jitter=0.02).run()
    comparison = compare_members(job.members())
    rows = waiting_by_step(comparison, step_sums(comparison))
    recorded_time = {row.step: (row.transfer, row.waiting) for row in rows if row.member == 0}
    for step in answer(job, 0).steps:
        if step.complete:
            assert (step.transfer_ns, step.waiting_ns) == recorded_time[step.name]


def test_the_late_rank_waits_for_nobody() -> None:
    payload = answer(Simulation(ddp(8), delays=[LATE], jitter=0.02).run(), 5)
    assert payload.communication is not None and payload.communication.waiting_ns < 100_000
    assert 5 not in {each.rank for each in payload.waits_for}


def test_two_late_ranks_share_the_waiting_by_who_comes_last() -> None:
    job = Simulation(ddp(8), delays=[LATE, Delay("host", 3, us=8000)], jitter=0.02).run()
    assert answer(job, 0).waits_for[0].rank == 3
    assert answer(job, 3).communication is not None


def test_what_cannot_be_known_is_null_with_its_reason() -> None:
    job = Simulation(ddp(8), delays=[LATE], jitter=0.02).run()
    assert "Only rank 0 was read" in plain(reason(answer(job, 0, only=[0])))
    stream = build(job.trace(0), ALL).streams[0].stream
    assert "not for a single stream" in plain(reason(answer(job, 0, IdleParams(stream=stream))))
    own = build(job.trace(0), ALL)
    two = replace(own, streams=[*own.streams, IdleStream(1, 7)])
    assert "several devices" in plain(reason(build_with_ranks(two, "rank0", job.members(), ALL)))


def test_while_other_ranks_are_read_or_are_too_many_the_file_speaks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Simulation(ddp(4), delays=[dataclasses.replace(LATE, rank=2)], jitter=0.02).run()
    first, *others = job.members()
    own = build(job.trace(0), ALL)
    members = Members([first, *(replace(each, state="loading", result=None) for each in others)])
    assert build_with_ranks(own, first.worker, members, ALL) == own
    monkeypatch.setattr(ranks, "MAX_RANKS_READ", 3)
    payload = build_with_ranks(own, first.worker, members, ALL)
    assert payload == replace(own, beside=payload.beside)
    assert "3 of the 4 ranks weren't read" in plain(payload.beside)
