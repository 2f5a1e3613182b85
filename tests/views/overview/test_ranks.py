"""The overview of a rank beside the others, on simulated jobs whose truth is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from tests.support.jobs import ready_member
from tests.support.simulation.files import RecordedJob
from tests.support.simulation.simulator import Delay, Host, Simulation, ddp, fsdp, pipeline
from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.suspects import MIN_COST_SHARE
from torch_tb_profiler.analyses.distributed.verdict import StragglerVerdict
from torch_tb_profiler.analyses.overview.finding import Advice, Finding, Gain
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views._shared.job.members import judge_members
from torch_tb_profiler.views._shared.job.verdict import verdict_headline
from torch_tb_profiler.views._shared.text import plain, text
from torch_tb_profiler.views.overview import ranks
from torch_tb_profiler.views.overview.advice import build_recommendation
from torch_tb_profiler.views.overview.build import build
from torch_tb_profiler.views.overview.payload import Overview
from torch_tb_profiler.views.overview.ranks import build_beside_ranks

LATE = Delay("host", 5, us=5000)


def alone(job: RecordedJob, rank: int) -> Overview:
    return build(job.trace(rank), NoParams())


def both(job: RecordedJob, rank: int, only: Sequence[int] | None = None) -> tuple[Overview, Overview]:
    """Return what the file of a rank says alone, and beside those of the others (of `only` these)."""
    members, own = job.members(only), alone(job, rank)
    worker = next(member.worker for member in members if member.rank == rank)
    return own, build_beside_ranks(own, worker, members, NoParams())


def union(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union, the slow way."""
    length, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length


def waited_us(job: RecordedJob, rank: int, steps: int) -> float:
    """Return µs per step in which a rank is in a collective, but neither computes nor moves data, as simulated."""
    moving: dict[object, float] = {}
    for spans in job.spans:
        for span in spans:
            if span.collective is not None:
                moving[span.key] = max(moving.get(span.key, 0.0), span.start)
    spans = job.spans[rank]
    collectives = [span for span in spans if span.collective is not None]
    busy = [(span.start, span.end) for span in spans if span.kind == "kernel"]
    busy += [(moving[span.key], span.end) for span in collectives]
    everything = union([*busy, *((span.start, span.end) for span in collectives)])
    return (everything - union(busy)) / steps


@pytest.mark.parametrize(
    ("programs", "delay"),
    [
        (ddp(8), LATE),
        (ddp(8, overlap=False), LATE),
        (fsdp(4), Delay("device", 2, factor=1.3)),
        (ddp(8), Delay("work", 5, us=3000)),
    ],
)
def test_the_waiting_of_a_rank_is_parted_from_its_transfer_and_the_late_rank_is_the_advice(
    programs: Sequence[Sequence[object]], delay: Delay
) -> None:
    simulation = Simulation(programs, delays=[delay], jitter=0.02)  # type: ignore[arg-type]
    job = simulation.run()
    own, payload = both(job, 0)
    assert own.waiting is None and payload.waiting is not None and payload.average is not None
    assert payload.waiting.waiting_ns == pytest.approx(1000 * waited_us(job, 0, simulation.steps), rel=0.01)
    parts = payload.waiting.waiting_ns + payload.waiting.transfer_ns + payload.waiting.uncompared_ns
    assert parts == pytest.approx(payload.average.categories.communication)
    first = payload.recommendations[0]
    assert (first.id, first.evidence) == ("straggler", "distributed")
    assert plain(first.title) == f"Find out why rank {delay.rank} is late"
    assert first.gain_ns == pytest.approx(1000 * simulation.cost_us(), rel=0.1)
    assert plain(payload.headline).endswith(
        f"of an average step is waiting for other ranks; start here: find out why rank {delay.rank} is late."
    )
    assert not {"late_rank", "communication"} & {each.id for each in payload.recommendations}


def test_the_late_rank_reads_that_it_is_late_and_does_not_wait() -> None:
    _, payload = both(Simulation(ddp(8), delays=[LATE], jitter=0.02).run(), 5)
    titles = {each.id: plain(each.title) for each in payload.recommendations}
    assert titles["straggler"] == "Find out why this rank is late"
    assert payload.waiting is not None and payload.waiting.waiting_ns < 100_000
    assert "waiting for other ranks" not in plain(payload.headline)
    assert "in prepare_batch" in plain(next(e.text for e in payload.recommendations if e.id == "straggler"))


def test_in_a_balanced_job_nobody_is_late_and_the_step_is_spent_as_the_file_says() -> None:
    own, payload = both(Simulation(ddp(8, overlap=False), jitter=0.02).run(), 0)
    assert payload.headline == own.headline
    assert payload.recommendations == own.recommendations == []
    assert plain(payload.beside).startswith("Of 1.36 ms of exposed communication, 159 µs is spent waiting")
    assert plain(payload.beside).endswith("and 1.20 ms transferring data. The ranks are balanced; no straggler.")


def test_a_file_without_the_others_says_what_it_says_alone_and_why() -> None:
    job = Simulation(ddp(8), delays=[LATE], jitter=0.02).run()
    own, payload = both(job, 0, only=[0])
    assert payload == replace(own, beside=payload.beside, health=payload.health)
    assert plain(payload.beside).startswith("Only rank 0 was read")
    assert payload.health[-1].message == "1 of 8 ranks was compared; the traces of ranks 1-7 are missing"


def test_while_other_ranks_are_read_a_file_says_what_it_says_alone() -> None:
    job = Simulation(ddp(8), delays=[LATE], jitter=0.02).run()
    first, *others = job.members()
    members = Members([first, *(replace(each, state="loading", result=None) for each in others)])
    own = alone(job, 0)
    assert build_beside_ranks(own, first.worker, members, NoParams()) == own


def test_a_rank_of_a_job_too_large_to_read_is_said_not_to_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Simulation(ddp(4), delays=[dataclasses.replace(LATE, rank=2)], jitter=0.02).run()
    first, second, *others = job.members()
    unread = [replace(each, state="waiting", result=None) for each in others]
    own = alone(job, 0)
    monkeypatch.setattr(ranks, "MAX_RANKS_READ", 3)
    payload = build_beside_ranks(own, first.worker, Members([first, second, *unread]), NoParams())
    assert payload == replace(own, beside=payload.beside)
    assert plain(payload.beside) == (
        "2 of the 4 ranks weren't read for this page, so this rank isn't compared with the others. "
        "Distributed compares them all."
    )
    # All of them are read already: they are compared, however many they are.
    assert "Rank 2 is a straggler" in plain(
        build_beside_ranks(own, first.worker, job.members(), NoParams()).beside
    )


def test_advice_on_communication_gains_no_waiting() -> None:
    job = Simulation(ddp(8, overlap=False), jitter=0.02).run()
    members, own = job.members(), alone(job, 0)
    assert own.average is not None
    step = own.average.duration_ns
    advice = [
        build_recommendation(
            Advice(Finding("communication", case="ddp", event=7), Gain(0.9 * step, 0.9 * step, "share"), 0.9),
            "an average step",
        ),
        build_recommendation(
            Advice(Finding("late_rank", event=7), Gain(0.8 * step, 0.8 * step, "share"), 0.8), "an average step"
        ),
    ]
    payload = build_beside_ranks(replace(own, recommendations=advice), members[0].worker, members, NoParams())
    (only,) = payload.recommendations
    assert payload.waiting is not None and only.id == "communication"
    assert only.gain_ns == payload.waiting.transfer_ns == 1_200_000
    assert only.evidence == "trace?event=7" and "1.20 ms" in plain(only.text)
    # The waiting is taken out: a late rank is a reason against the advice in a file alone only.
    assert "a rank is late" in advice[0].exception and "a rank is late" not in only.exception


def test_where_gains_come_from_is_said_of_what_the_file_itself_tells() -> None:
    job = Simulation(ddp(8, overlap=False), jitter=0.02).run()
    members, own = job.members(), alone(job, 0)
    assert own.average is not None
    gain = Gain(0.2 * own.average.duration_ns, 0.2 * own.average.duration_ns, "share")
    limit = text("Savings are upper bounds.")
    talk, code = (
        build_recommendation(Advice(Finding(id, case=case, subject="load"), gain, 0.2), "an average step")
        for id, case in (("communication", "ddp"), ("host_code", "code"))
    )
    for given, filters in (([talk], ()), ([talk, code], limit)):
        payload = build_beside_ranks(
            replace(own, recommendations=given, gains=limit), members[0].worker, members, NoParams()
        )
        assert len(payload.recommendations) == len(given) and payload.gains == filters


def test_corrected_advice_on_an_engine_speaks_of_iterations() -> None:
    job = Simulation(ddp(8, overlap=False), jitter=0.02).run()
    members, own = job.members(), alone(job, 0)
    assert own.average is not None
    gain = Gain(0.2 * own.average.duration_ns, 0.2 * own.average.duration_ns, "share")
    advice = build_recommendation(Advice(Finding("communication", case="ddp"), gain, 0.2), "an average step")
    engine = replace(own, recommendations=[advice], step_noun="iteration")
    (shown,) = build_beside_ranks(engine, members[0].worker, members, NoParams()).recommendations
    assert "of an average iteration" in plain(shown.text) and shown.rule.endswith("of the iteration")


@pytest.mark.parametrize(("share", "named"), [(0.5, False), (3.0, True)])
def test_a_rank_is_advised_on_where_its_lateness_is_worth_naming(share: float, named: bool) -> None:
    """Late by half of what is worth naming, or by three times that."""
    balanced = alone(Simulation(ddp(8, overlap=False)).run(), 0)
    assert balanced.average is not None
    us = share * MIN_COST_SHARE * balanced.average.duration_ns / 1000
    job = Simulation(ddp(8, overlap=False), delays=[dataclasses.replace(LATE, us=us)]).run()
    _, payload = both(job, 0)
    assert ("straggler" in [each.id for each in payload.recommendations]) == named


def test_advice_on_communication_that_is_all_waiting_is_not_given() -> None:
    job = Simulation(fsdp(4), delays=[Delay("host", 2, us=80_000)]).run()
    members, own = job.members(), alone(job, 0)
    advice = [
        build_recommendation(
            Advice(Finding("communication", case="fsdp"), Gain(70e6, 70e6, "share"), 0.8), "an average step"
        )
    ]
    payload = build_beside_ranks(replace(own, recommendations=advice), members[0].worker, members, NoParams())
    assert [each.id for each in payload.recommendations] == ["straggler"]


def test_of_communication_on_the_host_nobody_says_that_nothing_runs_meanwhile() -> None:
    """Threads of the host compute while gloo exchanges gradients: all of its time counts, hidden or not."""
    picture = """
    host   user_annotation  ProfilerStep#1                                 0  1000
    host   cpu_op           DistributedDataParallel.forward                0   100
    host   cpu_op           aten::mm                                     100   880
    host2  cpu_op           autograd::engine::evaluate_function:~Mm      110   860
    host3  user_annotation  gloo:all_reduce                              200   500  Input Dims=[[10]]
    """
    members = Members([ready_member(f"rank{number}", number, draw(picture)) for number in range(2)])
    own = build(draw(picture), NoParams())
    payload = build_beside_ranks(own, "rank0", members, NoParams())
    assert plain(payload.beside).startswith("Of 500 µs of communication, none is spent waiting for other ranks")
    for each in (own, payload):
        (talk,) = (one for one in each.recommendations if one.id == "communication")
        assert plain(talk.text) == (
            "For 500 µs of the step, gradients are all-reduced; operators on the host may run at the same time."
        )


@pytest.mark.parametrize(
    ("delays", "title", "costs"),
    [
        (
            [Delay("host", (0, 2, 1, 3)[step % 4], us=5000, steps=(step,)) for step in range(8)],
            "Find out why ranks take turns being late",
            5_000_000,
        ),
        ([Delay("rows", 3, factor=0.6)], "Divide the work evenly between the ranks", None),
        ([Delay("host", 3, us=5000)], None, None),
        ([], None, None),
    ],
)
def test_what_no_single_rank_causes_is_advised_on_too(
    delays: Sequence[Delay], title: str | None, costs: float | None
) -> None:
    """On every rank, with what Distributed says of it; where a rank is the straggler, that is the advice."""
    job = Simulation(ddp(4), steps=8, delays=delays, jitter=0.01).run()
    for rank in (0, 3):
        _, payload = both(job, rank)
        found = [each for each in payload.recommendations if each.id == "imbalance"]
        assert [plain(each.title) for each in found] == ([] if title is None else [title])
        if title is not None:
            assert plain(found[0].text).startswith(plain(verdict_headline(job.members(), judge(job))))
            turns = judge(job).in_turn
            # As bound, what the late ranks are late by; the replay may find less.
            assert found[0].gain_ns == max(judge(job).imbalance or 0, turns.per_step if turns is not None else 0)
        if costs is not None:
            assert found[0].gain_ns == pytest.approx(costs, rel=0.1)


@pytest.mark.parametrize("rank", [0, 3])
def test_larger_work_of_a_straggler_saves_no_more_than_an_even_split(rank: int) -> None:
    """Rank 3 has 1.4 times the rows: the four ranks have to compute 1.1 times the rows each."""
    job = Simulation(ddp(4), steps=8, delays=[Delay("rows", 3, factor=1.4)], jitter=0.001).run()
    _, payload = both(job, rank)
    suspect = judge(job).suspect
    (advice,) = [each for each in payload.recommendations if each.id == "straggler"]
    assert suspect is not None and advice.gain_ns == pytest.approx(0.75 * suspect.cost, rel=0.05)
    assert f"Split evenly, the same work would save {format_duration(advice.gain_ns)} per step." in plain(
        advice.text
    )


@pytest.mark.parametrize(
    ("delays", "only"),
    [
        ([Delay("device", 3, factor=1.4)], None),
        ([Delay("rows", 3, factor=1.4), Delay("host", 3, us=2000)], None),  # only its kernels can be split
        ([Delay("rows", 3, factor=1.4)], [0, 1, 3]),  # of the missing rank's work nothing is known
    ],
)
def test_what_cannot_be_split_evenly_saves_what_the_straggler_costs(
    delays: Sequence[Delay], only: Sequence[int] | None
) -> None:
    job = Simulation(ddp(4), steps=8, delays=delays, jitter=0.001).run()
    _, payload = both(job, 3, only)
    suspect = judge_members(job.members(only)).verdict.suspect
    (advice,) = [each for each in payload.recommendations if each.id == "straggler"]
    assert suspect is not None and advice.gain_ns == suspect.cost
    assert "Split evenly" not in plain(advice.text)


def judge(job: RecordedJob) -> StragglerVerdict:
    return judge_members(job.members()).verdict


@pytest.mark.parametrize(
    ("delay", "own_advice"),
    [(LATE, "Look into prepare_batch."), (Delay("loading", 5, us=5000), "Load data in worker processes.")],
)
def test_a_late_rank_hears_of_its_cause_once(delay: Delay, own_advice: str) -> None:
    job = Simulation(ddp(8), delays=[delay], syncs=True).run()
    own, payload = both(job, 5)
    rules = {"host_code", "data_loading"}
    assert rules & {each.id for each in own.recommendations}
    assert not rules & {each.id for each in payload.recommendations}
    (straggler,) = [each for each in payload.recommendations if each.id == "straggler"]
    assert plain(straggler.text).endswith(own_advice)


def test_what_a_late_rank_does_as_long_as_the_others_stays_advice_of_its_own() -> None:
    """All ranks tokenize for 6 ms, and one prepares a batch for 5 ms beside."""
    shared = [[Host("tokenize", 6_000), *program] for program in ddp(8)]
    for delay in (LATE, Delay("loading", 5, us=1_500)):
        job = Simulation(shared, delays=[delay], syncs=True).run()
        _, payload = both(job, 5)
        assert any("tokenize" in plain(each.title) for each in payload.recommendations if each.id == "host_code")
        assert any(each.id == "straggler" for each in payload.recommendations)


@pytest.mark.parametrize("rank", [1, 6])
def test_each_of_two_stragglers_hears_of_its_own_cause_once(rank: int) -> None:
    """Rank 1 prepares its batch on the host, rank 6 loads its data: both for 5 ms beyond the others."""
    delays = [Delay("host", 1, us=5000), Delay("loading", 6, us=5000)]
    job = Simulation(ddp(8), delays=delays, syncs=True).run()
    own, payload = both(job, rank)
    rules = {"host_code", "data_loading"}
    assert rules & {each.id for each in own.recommendations}
    assert not rules & {each.id for each in payload.recommendations}
    (straggler,) = [each for each in payload.recommendations if each.id == "straggler"]
    assert "Ranks 1 and 6" in plain(straggler.text)
    mine, other = (
        ("prepare_batch", "Load data in worker processes") if rank == 1 else ("DataLoader", "prepare_batch")
    )
    assert mine in plain(straggler.text) and other not in plain(straggler.text)


def test_waiting_is_at_least_what_it_is_where_some_communication_is_not_compared() -> None:
    _, payload = both(Simulation(ddp(4), delays=[Delay("host", 1, us=5000)]).run(), 0)
    assert payload.average is not None and payload.waiting is not None
    for rest, at_least in ((0.0, False), (payload.waiting.waiting_ns, True)):
        clause = ranks._waiting_clause(payload.average, replace(payload.waiting, uncompared_ns=rest), "a step")
        assert plain(clause).startswith("At least ") == at_least


@pytest.mark.parametrize("rank", [0, 2, 3])
def test_a_rank_saves_no_more_than_its_step(rank: int) -> None:
    simulation = Simulation(pipeline(4), delays=[Delay("host", 1, us=20_000)], jitter=0.02)
    job = simulation.run()
    _, payload = both(job, rank)
    average, verdict = payload.average, judge(job)
    assert average is not None and verdict.suspect is not None
    # Each sum of waits is longer than the step, as messages are awaited side by side; the work takes 20 ms longer.
    assert (
        0.99 * simulation.cost_us()
        <= verdict.suspect.cost / 1000
        <= min(1.03 * 20_000, average.duration_ns / 1000)
    )
    [advice] = [each for each in payload.recommendations if each.id == "straggler"]
    assert advice.gain_ns is not None
    assert 0 < advice.gain_ns <= average.duration_ns
