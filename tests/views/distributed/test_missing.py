"""A rank whose trace is missing is not a rank that isn't there: what every surface says of such a job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from tests.support.job_views import sentences
from tests.support.jobs import ready_member
from tests.support.simulation.files import RecordedJob
from tests.support.simulation.simulator import (
    Action,
    Collective,
    Delay,
    Simulation,
    ddp,
    fsdp,
    on_two_devices,
    pipeline,
    tensor_and_data_parallel,
)
from tests.support.traces import read_bytes
from tests.views.critical_path.test_beside import answers
from tests.views.idle.test_ranks import answer
from tests.views.overview.test_ranks import both, waited_us
from torch_tb_profiler.analyses.distributed.costs import Suspect
from torch_tb_profiler.analyses.distributed.verdict import StragglerVerdict
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views._shared.job.members import judge_members
from torch_tb_profiler.views._shared.job.verdict import verdict_headline
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload

HERE = [0, 1, 2]
LATE_3 = Delay("host", 3, us=5000)
COUNT = "3 of 4 ranks were compared; the trace of rank 3 is missing."


def job(*delays: Delay, programs: Sequence[Sequence[Action]] = ddp(4, 1, overlap=False)) -> Simulation:
    return Simulation(programs, steps=5, delays=delays, jitter=0.01, syncs=True)


def distributed_payload(recorded: RecordedJob, only: Sequence[int] | None = HERE) -> DistributedPayload:
    return build(recorded.members(only), NoParams())


def test_a_missing_rank_is_a_suspect_when_the_others_wait_together() -> None:
    """Rank 3 is late at the only collective of each step: no faster one shows what the transfer needs."""
    simulation = job(LATE_3)
    payload = distributed_payload(simulation.run())
    assert (payload.verdict.kind, payload.verdict.rank) == ("unknown", None)
    match = re.fullmatch(
        r"Rank 3 may be the straggler, but its trace is missing: the 3 ranks found spend up to (.+) ms per step "
        r"waiting for it\.",
        plain(payload.headline),
    )
    assert (
        match is not None and simulation.cost_us() / 1000 <= float(match[1]) <= simulation.cost_us() / 1000 + 0.5
    )
    assert plain(payload.explanation).endswith(COUNT)
    assert (payload.compared_count, payload.expected_count) == (3, 4)


@pytest.mark.parametrize("missing", [0, 2])
def test_a_device_waits_for_a_missing_rank_although_another_one_of_its_process_computes(missing: int) -> None:
    """What one device computes while the other waits for messages is no exposed communication, but is a wait."""
    programs = [on_two_devices(each, 1.0, waits=False) for each in pipeline(3)]
    simulation = job(Delay("device", missing, factor=1.9), programs=programs)
    found = [rank for rank in range(3) if rank != missing]
    match = re.match(
        rf"Rank {missing} may be the straggler, .* the 2 ranks found spend up to (.+) ms per step",
        plain(distributed_payload(simulation.run(), found).headline),
    )
    assert match is not None and float(match[1]) >= simulation.cost_us() / 1000


def test_waits_outside_of_steps_are_no_waits_of_typical_steps() -> None:
    """The last step has no mark: its collectives are outside of all steps."""
    recorded = job(LATE_3).run()
    files = (recorded.file(rank).replace(b"ProfilerStep#4", b"evaluation") for rank in HERE)
    members = Members(ready_member(f"w{rank}", rank, read_bytes(file)) for rank, file in enumerate(files))
    payload = build(members, NoParams())
    assert "4" not in payload.steps and len(payload.steps) == 4
    assert plain(payload.headline).startswith("Rank 3 may be the straggler, but its trace is missing")


def test_without_notable_communication_a_missing_rank_is_no_suspect() -> None:
    """All time in collectives is below what is worth naming, so that a late rank would have been seen."""
    programs = [
        [replace(each, us=5.0) if isinstance(each, Collective) else each for each in program]
        for program in ddp(4, 1, overlap=False)
    ]
    payload = distributed_payload(job(programs=programs).run())
    assert payload.verdict.kind == "balanced"
    assert sentences(payload).startswith("The 3 ranks found are balanced; no straggler among them.")
    assert sentences(payload).endswith(COUNT)


@pytest.mark.parametrize("programs", [ddp(4, 1, overlap=False), ddp(4), fsdp(4)])
@pytest.mark.parametrize("late", [1, 3])
def test_waiting_is_at_least_and_transfer_at_most_what_is_said(
    programs: Sequence[Sequence[Action]], late: int
) -> None:
    simulation = job(Delay("host", late, us=5000), programs=programs)
    recorded = simulation.run()
    truth = 1000 * waited_us(recorded, 0, simulation.steps)
    _, overview = both(recorded, 0, HERE)
    idle = answer(recorded, 0, only=HERE)
    _, path = answers(recorded, 0, only=HERE)
    assert overview.waiting is not None and overview.waiting.bounded
    assert idle.communication == overview.waiting
    total = overview.waiting.waiting_ns + overview.waiting.transfer_ns
    assert overview.waiting.waiting_ns <= truth * 1.01 + 1000
    assert overview.waiting.transfer_ns >= (total - truth) * 0.99 - 1000
    assert path.communication is not None and path.communication.bounded
    if overview.waiting.waiting_ns < 0.01 * total:
        assert "isn't known exactly, because not every rank's part is recorded." in plain(overview.beside)
    else:
        assert "at least " in plain(overview.beside) and "and at most " in plain(overview.beside)
    assert not ("communication-bound" in plain(path.headline) and "twice as fast" in plain(path.headline))


def test_with_all_ranks_nothing_is_a_bound() -> None:
    recorded = job(LATE_3).run()
    _, overview = both(recorded, 0)
    assert overview.waiting is not None and not overview.waiting.bounded
    assert "at least" not in plain(overview.beside) and "compared" not in plain(overview.beside)
    assert not {note.kind for note in overview.health} & {"missing_ranks"}
    assert "Rank 3 is a straggler" in plain(distributed_payload(recorded, None).headline)


def test_the_cost_of_a_straggler_is_at_most_what_it_is_while_a_later_rank_is_missing() -> None:
    """Rank 3 is later yet: without rank 1's delay, nobody would be faster, and rank 1 doesn't arrive last.

    No faster collective shows that all wait for rank 3.
    """
    payload = distributed_payload(job(Delay("host", 1, us=5000), Delay("host", 3, us=9000)).run())
    assert re.match(
        r"Of the ranks found, rank 1 is a straggler: it arrives last at 5 of 5 collectives and costs every other "
        r"rank up to (?:4\.9\d|5\.00) ms per step\.",
        plain(payload.headline),
    )
    assert plain(payload.explanation).endswith(
        "Rank 3 may be a straggler, too: no other trace can show that. If so, fixing rank 1 alone saves less, or "
        "nothing."
    )


@pytest.mark.parametrize(
    ("kind", "us", "missing", "named"),
    [
        ("loading", 700, 0, False),  # while rank 0 computes what rank 1 waits for
        ("work", 700, 0, False),
        ("loading", 4000, 0, True),  # rank 0 is done with it long before
        ("device", 0, 0, True),  # rank 0 waits for the backward of rank 1, so that it is late as well
        ("loading", 700, 3, False),  # none of the ranks found waits for the missing one: the true cost is 0
    ],
)
def test_a_rank_that_a_missing_one_holds_up_longer_is_no_straggler(
    kind: str, us: float, missing: int, named: bool
) -> None:
    """Rank 1 is late for the first message of rank 0: that costs what rank 0 doesn't need to compute it anyway."""
    simulation = job(Delay(kind, 1, us=us, factor=1.4), programs=pipeline(4))
    payload = distributed_payload(simulation.run(), [rank for rank in range(4) if rank != missing])
    assert (simulation.cost_us() > 1000) == named
    said = plain(payload.headline)
    assert said.startswith("Of the ranks found, rank 1 is a straggler: ") == named
    assert ("straggler" in said and "rank 1" in said.lower()) == named


def test_what_a_rank_costs_is_nothing_if_a_missing_one_holds_it_up_anyway() -> None:
    payload = distributed_payload(job(Delay("loading", 1, us=700), programs=pipeline(4)).run(), [1, 2, 3])
    said = re.fullmatch(
        r"Rank 0 may be the straggler, but its trace is missing: .* Of the ranks that were found, rank 1 costs "
        r"the others most: up to (\d+) µs per step, but nothing if rank 0 is as late anyway\. 3 of 4 ranks .*",
        sentences(payload),
    )
    assert said is not None and 690 <= float(said[1]) <= 740
    first, *others = payload.stragglers
    assert (first.rank, first.cost_is_limit) == (1, True)
    assert not any(row.cost_is_limit for row in others)


@pytest.mark.parametrize("us", [3000, 7000])
def test_a_missing_rank_that_is_later_than_the_others_is_what_they_wait_for(us: float) -> None:
    """The second collective of a step is as large as the first, before which both ranks are late."""
    simulation = job(Delay("host", 1, us=5000), Delay("host", 3, us=us), programs=ddp(4, 2, overlap=False))
    payload = distributed_payload(simulation.run())
    if us < 5000:
        assert plain(payload.headline).startswith("Of the ranks found, rank 1 is a straggler: ")
    else:
        assert plain(payload.headline).startswith("All ranks found here wait for rank 3, whose trace is missing, ")
        assert "but nothing if rank 3 is as late anyway." in plain(payload.explanation)


def test_the_cost_of_a_straggler_is_at_most_what_it_is_while_a_rank_that_is_as_late_is_missing() -> None:
    """Without rank 1's slow device, all would wait as long for rank 3's."""
    programs = [
        [replace(each, us=5.0) if isinstance(each, Collective) else each for each in program]
        for program in ddp(4, 1, overlap=False)
    ]
    slow = [Delay("device", rank, factor=1.4) for rank in (1, 3)]
    payload = distributed_payload(job(*slow, programs=programs).run())
    assert re.match(r"Rank 1 is a straggler: .* costs every other rank up to ", plain(payload.headline))
    assert plain(payload.explanation).endswith("If so, fixing rank 1 alone saves less, or nothing.")


def test_a_straggler_is_named_although_it_would_be_earlier_than_those_that_a_missing_rank_holds_up() -> None:
    """Rank 1 waits for rank 0, which has no file and waits for rank 2, whose rows cost the job 5.0 ms.

    What rank 1 waits counts as transfer: with fewer rows, rank 2 would be done far earlier than the ranks found.
    """
    simulation = job(Delay("rows", 2, factor=1.8), programs=tensor_and_data_parallel(4, 2, 2))
    payload = distributed_payload(simulation.run(), [1, 2, 3])
    found = re.match(
        r"Of the ranks found, rank 2 is a straggler: .* up to (.+) ms per step\.", plain(payload.headline)
    )
    assert found is not None and float(found[1]) >= simulation.cost_us() / 1000
    first, *others = payload.stragglers
    assert (first.rank, first.cost_is_limit) == (2, True) and first.cost_ns == payload.verdict.cost_ns
    assert not any(row.cost_is_limit for row in others)


def test_every_surface_says_how_many_ranks_were_compared_and_so_does_the_health() -> None:
    recorded = job(LATE_3).run()
    _, overview = both(recorded, 0, HERE)
    _, path = answers(recorded, 0, only=HERE)
    texts = (
        distributed_payload(recorded).explanation,
        overview.beside,
        answer(recorded, 0, only=HERE).beside,
        path.beside,
    )
    assert all(plain(each).endswith(COUNT) for each in texts)
    (note,) = (note for note in overview.health if note.kind == "missing_ranks")
    assert (note.severity, note.message, note.count) == ("warning", COUNT.removesuffix("."), 1)


def test_a_slower_transfer_without_its_rank_is_not_called_waiting() -> None:
    """Transfers vary by a few percent; only one twice as long as another shows that it waits."""
    simulation = Simulation(ddp(4, overlap=False), steps=5, jitter=0.01, syncs=True, seed=4)
    payload = distributed_payload(simulation.run())
    assert "whose trace is missing" not in plain(payload.headline)


def test_bounds_of_a_cost_are_rounded_to_the_side_on_which_they_hold() -> None:
    members = job(LATE_3).run().members()
    absent = StragglerVerdict("unknown", "absent", Suspect((), 11_050_000.0))
    missing = StragglerVerdict("unknown", "missing", missing_cost=11_049_000.0)
    late = judge_members(members).verdict
    limit = msgspec.structs.replace(late, suspect=Suspect((3,), 11_049_000.0), cost_is_limit=True)
    headlines = [plain(verdict_headline(members, verdict)) for verdict in (absent, missing, limit)]
    assert "at least 11.0 ms per step" in headlines[0]
    assert "up to 11.1 ms per step" in headlines[1]
    assert "up to 11.1 ms per step" in headlines[2]
