"""The critical path of a job: drawn jobs with known paths, and the laws of the chains that it is made of."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.analyses.critical_path.simulator import simulate
from tests.support.traces import draw, read
from torch_tb_profiler.analyses.distributed.job_path import RankPath, reduce_path
from torch_tb_profiler.analyses.distributed.rank_details import rank_details
from torch_tb_profiler.analyses.schedule.chains import UNKNOWN_SOURCE, dependency_chains
from torch_tb_profiler.analyses.schedule.path import PATH_CATEGORIES, path_times
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.trace import NO_CODE
from torch_tb_profiler.view import Member, Members
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path.payload import JobPathParams, JobPathPayload, JobPathSegment
from torch_tb_profiler.views.critical_path.ranks import build

US = 1_000
GRADIENTS = "Input~Dims=[[1000000]]".replace("~", " ")


def step(number: int, begin: int, end: int) -> str:
    return f"host user_annotation ProfilerStep#{number} {begin} {end - begin}"


def loads(begin: int, duration: int) -> str:
    return f"host user_annotation enumerate(DataLoader)#_Iter.__next__ {begin} {duration}"


def reduces(launch: int, start: int, end: int, number: int) -> str:
    """Return an all-reduce that is launched for 10 us, and a wait for it until 4 us after its end."""
    return f"""
    host  cpu_op        nccl:all_reduce               {launch}      10  External id={number} {GRADIENTS}
    host  cuda_runtime  cudaLaunchKernel              {launch}      10  correlation={number}
    gpu0  kernel        ncclDevKernel_AllReduce_RING  {start}  {end - start}  correlation={number} stream=20
    host  cuda_runtime  cudaStreamSynchronize         {launch + 20}  {end - launch - 16}
    """


EARLY = f"{step(1, 0, 1_000)}\n{reduces(100, 115, 800, 1)}"
LATE = f"{step(1, 0, 900)}\n{loads(0, 600)}\n{reduces(650, 665, 800, 1)}"


def job(*pictures: str) -> Members[RankPath]:
    return Members(
        Member(f"rank{at}", at, "1", "ready", None, reduce_path(trace), partial(rank_details, trace))
        for at, trace in enumerate(map(draw, pictures))
    )


def answer(*pictures: str, step: str = "") -> JobPathPayload:
    return build(job(*pictures), JobPathParams(step=step))


def brief(segment: JobPathSegment) -> tuple[int | None, str, int, int]:
    return segment.rank, segment.step, segment.begin_ns // US, (segment.begin_ns + segment.duration_ns) // US


def test_the_path_goes_on_at_the_rank_that_arrives_last() -> None:
    payload = answer(EARLY, LATE)
    assert [brief(segment) for segment in payload.stays] == [(1, "1", 0, 800), (0, "1", 800, 1_000)]
    late, early = payload.stays
    assert (late.host_ns, late.communication_ns, late.latency_ns) == (660 * US, 135 * US, 5 * US)
    assert (early.host_ns, early.latency_ns, early.collective) == (196 * US, 4 * US, None)
    assert (late.collective, late.collective_id) == ("nccl:all_reduce", 0)
    assert late.link == "trace?worker=rank1&path=true&at=0-800000"
    times = {each.name: each.time_ns for each in payload.ranks[0].categories}
    assert times["data_loading"] == 600 * US
    assert payload.duration_ns == 1_000 * US == sum(rank.path_ns for rank in payload.ranks)
    assert plain(payload.headline) == (
        "80% of the job's critical path is on rank 1, including 600 µs of data loading per step."
    )


def test_where_one_rank_of_several_was_read_nothing_is_said_of_the_path_of_all() -> None:
    broken = Member[RankPath]("rank1", 1, "1", "failed", "the file is cut off", None)
    payload = build(Members([*job(LATE), broken]), JobPathParams())
    assert payload.headline == () and payload.ranks[0].path_ns == payload.duration_ns
    assert plain(payload.explanation).startswith("Only rank 0 was read.")
    assert answer(LATE).headline != ()


def test_a_rank_that_waits_is_left_whichever_it_is() -> None:
    payload = answer(LATE.replace("ProfilerStep#1 0 900", "ProfilerStep#1 0 1100"), EARLY)
    assert [brief(segment) for segment in payload.stays] == [(0, "1", 0, 1_100)]


def test_a_rank_with_its_clock_ahead_is_the_same_rank() -> None:
    moved = LATE
    for number in (665, 650, 670, 0):
        moved = moved.replace(f" {number} ", f" {number + 5_000} ")
    payload = answer(EARLY, moved)
    assert [(segment.rank, segment.duration_ns // US) for segment in payload.stays] == [(1, 800), (0, 200)]


TWO = (
    "\n".join(
        [step(1, 0, 1_000), reduces(100, 115, 800, 1)]
        + [step(2, 1_000, 2_000), loads(1_000, 500), reduces(1_600, 1_615, 1_700, 2)]
    ),
    "\n".join(
        [step(1, 0, 900), loads(0, 600), reduces(650, 665, 800, 1)]
        + [step(2, 900, 1_900), reduces(1_000, 1_015, 1_700, 2)]
    ),
)


def test_the_path_is_cut_where_a_rank_begins_a_step() -> None:
    payload = answer(*TWO)
    assert [brief(segment) for segment in payload.stays] == [
        (1, "1", 0, 800),
        (0, "1", 800, 1_000),
        (0, "2", 1_000, 2_000),
    ]
    assert [brief(segment) for segment in answer(*TWO, step="2").stays] == [(0, "2", 1_000, 2_000)]
    with pytest.raises(NotFoundError, match="step '9'"):
        answer(*TWO, step="9")
    assert (payload.steps, payload.duration_ns) == (2, 1_000 * US)


def test_without_a_collective_of_a_device_the_path_stays_on_its_rank_and_says_why() -> None:
    payload = answer(step(1, 0, 100), step(1, 0, 90))
    assert [brief(segment) for segment in payload.stays] == [(0, "1", 0, 100)]
    assert "no collective on a device" in plain(payload.reasons["stays"])
    assert payload.late_gain_ns is None


def test_without_a_step_there_is_no_path() -> None:
    payload = answer("gpu0 kernel k 0 10 stream=7")
    assert (payload.stays, payload.ranks, payload.duration_ns) == ([], [], 0)
    assert "No rank has a complete step, so there is no critical path." in plain(payload.headline)


@pytest.mark.parametrize("seed", range(12))
def test_chains_joined_at_their_nodes_are_the_path(seed: int) -> None:
    trace = read(simulate(seed)[0])
    found, spans = dependency_chains(trace), recorded_spans(trace)
    walked = found.source != UNKNOWN_SOURCE
    assert (found.times.sum(axis=1) == found.end - found.begin)[walked].all()
    assert (found.times >= 0).all()
    times, node = np.zeros(len(PATH_CATEGORIES), np.int64), len(found.end) - 1
    operations = len(collectives(trace).event)
    while node != NO_CODE:
        times += found.times[node]
        source = int(found.source[node])
        if 0 <= source < operations:
            times[PATH_CATEGORIES.index("communication")] += found.begin[node] - found.end[source]
        node = source
    assert times.sum() == spans.end[0, -1] - spans.begin[0, 0]
    between = times - path_times(trace).sum(axis=0)
    # What passes between two steps belongs to neither of them.
    assert between.sum() == (spans.begin[0, 1:] - spans.end[0, :-1]).sum()
    assert (between >= 0).all()


def test_while_ranks_are_read_nothing_is_said_of_the_whole_job() -> None:
    there, coming = job(EARLY, LATE)
    reading: Member[RankPath] = Member(coming.worker, coming.rank, coming.span, "loading", None, None)
    payload = build(Members([there, reading]), JobPathParams())
    assert payload.headline == ()
    assert plain(payload.reasons["ranks"]) == "1 trace still to be read"
