"""What a replay leaves as it was: waiting, and all before the first step."""

from __future__ import annotations

from tests.support.traces import BUSY_HOST, draw
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import what_if_step_time


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
