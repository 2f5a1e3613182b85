"""Recordings that begin or end at different steps, and ranks whose devices record nothing."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.simulation.files import RecordedJob
from tests.support.simulation.simulator import Delay, Simulation, ddp
from tests.support.traces import read_bytes
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


def without_device_work(job: RecordedJob, *ranks: int) -> list[bytes]:
    """Return the files of a job, some of whose profilers recorded the host alone."""
    files = []
    for rank in range(len(job.spans)):
        content = json.loads(job.file(rank))
        if rank in ranks:
            content["traceEvents"] = [each for each in content["traceEvents"] if each["cat"] != "kernel"]
        files.append(json.dumps(content).encode())
    return files


def test_the_path_of_a_job_leads_to_the_late_rank_where_another_has_no_device_times() -> None:
    """The step of rank 3 ends last, but it isn't known for whom it waits."""
    job = LATE.run()
    job.spans[3][-1].end += 1.0
    paths = [reduce_path(read_bytes(each)) for each in without_device_work(job, 3)]
    members = [
        Member(f"node0_{1000 + rank}", rank, "1", "ready", None, path, ready.details)
        for rank, (path, ready) in enumerate(zip(paths, job.members(), strict=True))
    ]
    payload = build_path(Members[RankPath](members), JobPathParams())
    assert re.match(r"\d+(\.\d)?% of the job's critical path is on rank 2\b", plain(payload.headline))
