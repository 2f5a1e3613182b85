"""A rank's kernels are compared with those of the median of all other ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.simulation.large_jobs import large_job
from torch_tb_profiler.analyses.distributed.job import DistributedJob
from torch_tb_profiler.analyses.distributed.rank_summary import KernelTotal
from torch_tb_profiler.analyses.distributed.uneven_work import (
    MIN_DIFFERENCE,
    find_resized_kernel,
    find_uneven_work,
    runs_more_often,
)
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.view import Member, Members
from torch_tb_profiler.views._shared.job.members import compare_members


def job_of(kernels: Sequence[tuple[str, int, int]]) -> DistributedJob:
    """Return a job whose ranks run one kernel each: its size, its calls and its ns in a step."""
    members = []
    for member, (size, calls, time) in zip(large_job(8), kernels, strict=True):
        assert member.result is not None
        steps = len(member.result.steps)
        total = KernelTotal(member.result.kernels[0].name, calls * steps, time * steps, size)
        summary = replace(member.result, kernels=(total,))
        members.append(Member(member.worker, member.rank, "1", "ready", None, summary, member.details))
    return compare_members(Members(members)).job


@pytest.mark.parametrize("seed", range(12))
def test_every_rank_is_compared_with_all_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = (rng.integers(6, 11, 8) * 100).tolist()
    kernels = [(str(rng.integers(1, 4)), int(rng.integers(1, 4)), time) for time in times]
    job = job_of(kernels)
    expected = []
    for member, (size, calls, time) in enumerate(kernels):
        others = kernels[:member] + kernels[member + 1 :]
        typical, sizes = median([each[2] for each in others]), [each[0] for each in others]
        frequent = max(sizes, key=sizes.count)  # of equally many the first
        found = find_resized_kernel(job, member, time - typical)
        assert (None if found is None else (found.size, found.typical_size)) == (
            (size, frequent) if size != frequent and time != typical else None
        )
        more = calls > (1 + MIN_DIFFERENCE) * median([each[1] for each in others])
        name = job.sources[member].summary.names[job.sources[member].summary.kernels[0].name]
        assert runs_more_often(job, member, name) == more
        if found is not None and abs(time / typical - 1) >= MIN_DIFFERENCE:
            expected.append((member, time / typical))
    uneven = find_uneven_work(job)
    assert expected
    assert uneven is not None
    assert (uneven.member, uneven.ratio) == max(expected, key=lambda each: abs(each[1] - 1))


def test_other_sizes_explain_nothing_where_all_ranks_take_as_long() -> None:
    assert find_uneven_work(job_of([(str(rank), 1, 500) for rank in range(8)])) is None
    assert find_uneven_work(job_of([("8x8", 1, 500 + 100 * rank) for rank in range(8)])) is None
