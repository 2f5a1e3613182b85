"""Steps, waiting, and bandwidth add up."""

from __future__ import annotations

import pytest

from tests.support.job_views import view
from tests.support.jobs import Job, ddp, fsdp
from torch_tb_profiler.views.distributed.collectives import CollectivesParams, build_collectives


def test_steps_add_up_and_waiting_and_transfer_are_the_communication() -> None:
    payload = view(Job(4, ddp(4), straggler=1))
    for row in payload.overview:
        assert row.duration_ns == row.computation_ns + row.overlap_ns + row.exposed_ns + row.other_ns
    steps = {(row.worker, row.step): row for row in payload.overview}
    for wait in payload.waiting:
        assert wait.step is not None and wait.transfer_ns is not None and wait.waiting_ns is not None
        step = steps[wait.worker, wait.step]
        assert wait.transfer_ns + wait.waiting_ns == step.exposed_ns + step.overlap_ns
        assert wait.transfer_ns == pytest.approx(150_000, abs=5_000)
    late = [wait.waiting_ns for wait in payload.waiting if wait.rank == 1]
    assert max(late) < 30_000  # type: ignore[type-var,operator]


def test_bandwidth_is_that_of_the_transfer() -> None:
    payload = view(Job(4, ddp(4, 1), straggler=1))
    for row in payload.collectives:
        assert (row.name, row.calls, row.bytes, row.lower_bound) == ("nccl:all_reduce", 3, 3 * 400_000, False)
        assert row.algorithm_bandwidth == pytest.approx(400_000 / 50e-6, rel=0.03)
        assert row.algorithm_bandwidth is not None
        assert row.bus_bandwidth == pytest.approx(row.algorithm_bandwidth * 1.5)


@pytest.mark.parametrize(
    ("position", "name", "message", "factor"),
    [(0, "nccl:all_gather", 8_000_000, 7 / 8), (2, "nccl:reduce_scatter", 1_000_000, 7 / 8)],
)
def test_message_sizes_follow_the_conventions_of_nccl(
    position: int, name: str, message: int, factor: float
) -> None:
    rows = build_collectives(Job(8, fsdp(8), steps=1).members(), CollectivesParams()).rows
    row = rows[position]
    assert (row.name, row.bytes) == (name, message)
    assert row.bus_bandwidth is not None and row.algorithm_bandwidth is not None
    assert row.bus_bandwidth / row.algorithm_bandwidth == pytest.approx(factor)
