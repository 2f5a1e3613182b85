"""What a replay leaves as it was: waiting, and all before the first step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import BUSY_HOST, draw
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import (
    host_time_target,
    host_time_targets,
    what_if_step_time,
)
from torch_tb_profiler.base.intervals import Intervals, merge


def test_a_slower_operator_does_not_wait_longer() -> None:
    trace = draw(BUSY_HOST)
    now = int(recorded_spans(trace).mean_ns[0])
    assert now == 600_000
    # Of its 455 us aten::item waits for all but 2 us before its call, the call's own part, and what follows it.
    assert now < what_if_step_time(trace, "operator:aten::item", -300) < now + 40_000


def test_what_runs_before_the_first_step_is_not_made_faster() -> None:
    trace = draw("""
    host  cuda_runtime     cudaLaunchKernel          0    5  correlation=1
    gpu0  kernel           warm_up                  10  200  correlation=1
    host  user_annotation  ProfilerStep#1          100  300
    host  cuda_runtime     cudaLaunchKernel        110    5  correlation=2
    gpu0  kernel           gemm                    211  100  correlation=2
    host  cuda_runtime     cudaDeviceSynchronize   120  195
    host  cuda_runtime     cudaLaunchKernel        320    5  correlation=3
    gpu0  kernel           warm_up                 328   20  correlation=3
    """)
    spans = recorded_spans(trace)
    gained = int(spans.mean_ns[0]) - what_if_step_time(trace, "kernel:warm_up", 100)
    assert gained == 0


@pytest.mark.parametrize("seed", range(30))
def test_targets_summed_together_are_those_summed_alone(seed: int) -> None:
    trace, random = (
        draw(f"{BUSY_HOST}\nhost2 cuda_runtime cudaDeviceSynchronize 50 300"),
        np.random.default_rng(seed),
    )
    # From before the first point to after the last; some intervals touch, and some hold several points.
    borders = np.unique(random.integers(-100_000, 1_500_000, random.integers(2, 60)))
    recorded = random.random(len(borders) - 1) < 0.7
    begin, end = borders[:-1][recorded], borders[1:][recorded]
    part = random.integers(-1, 4, len(begin)).astype(np.int32)
    lists = [[0], [1, 2], [2], []]
    together = host_time_targets(trace, Intervals(begin, end), part, lists)
    for numbers, found in zip(lists, together, strict=True):
        mine = np.isin(part, numbers)
        alone = host_time_target(trace, merge(begin[mine], end[mine]))
        assert found.host.tolist() == alone.host.tolist()
        assert not (found.items.any() or found.edges.any())


def test_kernels_that_outlast_the_host_of_a_trace_without_steps_can_be_faster() -> None:
    """The host does nothing after its last launch: no time of it is left when the kernels take none."""
    launches = (
        f"host cuda_runtime cudaLaunchKernel {10 * k} 5 correlation={k + 1}\n"
        f"gpu0 kernel gemv {10 + 100 * k} 100 correlation={k + 1} stream=7"
        for k in range(5)
    )
    trace = draw("\n".join(launches))
    assert int(recorded_spans(trace).mean_ns[0]) == 510_000
    assert what_if_step_time(trace, "device", 50) == 260_000
    assert what_if_step_time(trace, "device", 100) < 60_000


def test_without_the_allocator_nothing_waits_for_the_device_in_its_calls() -> None:
    """The host waits for 3.9 ms until memory is free, and works for 4 ms then."""
    trace = draw("""
        host user_annotation ProfilerStep#1 0 9010
        host cuda_runtime cudaLaunchKernel 10 5 correlation=1
        gpu0 kernel first 20 3980 correlation=1
        host cuda_runtime cudaFree 100 3910
        host cpu_op aten::tokenize 4010 3990
        host cuda_runtime cudaLaunchKernel 8000 5 correlation=2
        gpu0 kernel second 8010 990 correlation=2
        host cuda_runtime cudaDeviceSynchronize 8100 905
    """)
    assert what_if_step_time(trace, "allocator", 100) == pytest.approx(9_010_000 - 3_910_000, abs=30_000)
