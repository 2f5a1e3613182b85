"""Recordings that begin or end at different steps, ranks whose devices record nothing, and files of two jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from tests.support.simulation.simulator import Delay, Simulation, ddp
from torch_tb_profiler.analyses.distributed.job_path import RankPath, reduce_path
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path.payload import JobPathParams
from torch_tb_profiler.views.critical_path.ranks import build as build_path
from torch_tb_profiler.views.distributed.build import build

LATE = Simulation(ddp(4, 2, overlap=False), steps=8, delays=[Delay("host", 2, us=2000)], jitter=0.01, syncs=True)
"""Rank 2 costs the others 2 ms in each of 8 steps."""

COST = re.compile(
    r"Rank 2 is a straggler: it arrives last at \d+ of \d+ collectives and costs every other rank "
    r"(.+) ms per step\."
)
CAUSE = re.compile(r"Before it arrives, rank 2's host spends (.+) ms per step in prepare_batch;")


@pytest.mark.parametrize(("rank", "begin", "end"), [(1, 3, 8), (3, 0, 3), (2, 0, 3), (2, 4, 8)])
def test_a_straggler_costs_as_much_whichever_rank_records_fewer_steps(rank: int, begin: int, end: int) -> None:
    """In a step that one doesn't record, the others seem to wait for a rank that isn't there."""
    payload = build(LATE.run().with_recording(rank, begin, end).members(), NoParams())
    costs = COST.fullmatch(plain(payload.headline))
    cause = CAUSE.search(plain(payload.explanation))
    assert costs is not None and cause is not None
    assert [float(costs[1]), float(cause[1])] == pytest.approx([LATE.cost_us() / 1000] * 2, rel=0.05)
    assert "average step" in plain(payload.explanation)  # no step is odd


def test_the_path_of_a_job_leads_to_the_late_rank_where_another_has_no_device_times() -> None:
    """The step of rank 3 ends last, but it isn't known for whom it waits."""
    job = replace(LATE.run(), untimed=(3,))
    job.spans[3][-1].end += 1.0
    paths = [reduce_path(job.trace(rank)) for rank in range(4)]
    members = [
        Member(f"node0_{1000 + rank}", rank, "1", "ready", None, path, ready.details)
        for rank, (path, ready) in enumerate(zip(paths, job.members(), strict=True))
    ]
    payload = build_path(Members[RankPath](members), JobPathParams())
    assert re.match(r"\d+(\.\d)?% of the critical path of the ranks found is on rank 2\b", plain(payload.headline))


def explained(job: Simulation, *untimed: int, found: Sequence[int] | None = None) -> tuple[str, str, int]:
    """Return the headline, the explanation and the number of compared ranks of a job."""
    payload = build(replace(job.run(), untimed=untimed).members(found), NoParams())
    return plain(payload.headline), plain(payload.explanation), payload.compared_count


def test_a_rank_whose_device_records_nothing_is_no_missing_trace_but_a_suspect() -> None:
    """Rank 2 is late at the only collective of each step, and its file records no kernels."""
    late = Simulation(ddp(4, 1, overlap=False), steps=6, delays=[Delay("host", 2, us=5000)], syncs=True)
    headline, explanation, compared = explained(late, 2)
    assert headline.startswith(
        "Rank 2 may be the straggler, but its operations have no device times: the 3 ranks compared spend up to "
    )
    assert explanation.endswith("3 of 4 ranks were compared; the operations of rank 2 have no device times.")
    assert compared == 3
    headline, explanation, _ = explained(late, 2, found=(0, 1, 2))
    assert headline.startswith("Ranks 2, 3 may be stragglers, but they can't all be compared: ")
    assert explanation.endswith(
        "2 of 4 ranks were compared; the trace of rank 3 is missing, and the operations of rank 2 have no device "
        "times."
    )


def test_ranks_that_wait_for_one_without_device_times_are_not_said_to_lack_its_trace() -> None:
    """The second collective of each step, at which nobody is late, shows how long the transfer takes."""
    late = Simulation(ddp(4, 2, overlap=False), steps=6, delays=[Delay("host", 2, us=5000)], syncs=True)
    headline, explanation, _ = explained(late, 2)
    assert headline.startswith("All ranks whose times of a collective are known wait for another one, at least ")
    assert "missing" not in headline + explanation
    assert "ranks that were compared" in explanation


def test_ranks_without_any_time_are_no_few_of_all() -> None:
    headline, explanation, compared = explained(LATE, 0, 1, 2, 3)
    assert compared == 4 and "were compared" not in explanation
    assert "missing" not in headline


@pytest.mark.parametrize("other", ["job_1", "other_1"])
def test_of_two_jobs_in_a_folder_the_one_with_most_files_is_judged_as_if_alone(other: str) -> None:
    """Both have ranks 0 and 1; rank 1 of two is late by more than rank 2 of four, by whatever names they sort."""
    late = Simulation(ddp(2, 1, overlap=False), steps=6, delays=[Delay("host", 1, us=5000)], syncs=True).run()
    strangers = [msgspec.structs.replace(each, worker=f"{other}_{each.rank}") for each in late.members()]
    alone = build(LATE.run().members(), NoParams())
    both = build(Members([*LATE.run().members(), *strangers]), NoParams())
    assert (both.headline, both.explanation) == (alone.headline, alone.explanation)
    assert (both.compared_count, both.expected_count) == (4, 4)
    assert [plain(each.text) for each in both.problems] == [
        "The traces are of jobs with 2 and 4 ranks; only those of the job with 4 are compared"
    ]
    reasons = [each.reason for each in both.ranks if not each.compared]
    assert reasons == ["it is of another job, with 2 ranks"] * 2


def test_beside_a_missing_suspect_the_rank_found_that_costs_most_is_named() -> None:
    """Ranks 1 and 3 take turns being 3 ms late; without rank 3, its half of the waits may be anything."""
    delays = [Delay("host", rank, us=3000, steps=tuple(range(rank // 2, 8, 2))) for rank in (1, 3)]
    turns = Simulation(ddp(4, 1, overlap=False), steps=8, delays=delays, syncs=True)
    headline, explanation, _ = explained(turns, found=(0, 1, 2))
    assert headline.startswith("Rank 3 may be the straggler, but its trace is missing")
    cost = re.match(
        r"Of the ranks that were found, rank 1 costs the others most: up to (\S+) ms per step, ", explanation
    )
    assert cost is not None and turns.cost_us() / 2000 <= float(cost[1]) <= 1.05 * turns.cost_us() / 2000 + 0.01
    _, explanation, _ = explained(replace(turns, delays=delays[1:]), found=(0, 1, 2))
    assert "costs the others most" not in explanation
