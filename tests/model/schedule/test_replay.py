"""A schedule gives the recorded times, and what a change does to small ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model.schedule.test_blocking import full_queue, launches
from tests.model.schedule.test_waits import BACKWARD
from tests.support.traces import draw
from torch_tb_profiler.model.schedule.replay import Times, replay
from torch_tb_profiler.model.schedule.schedule import Bound, schedule
from torch_tb_profiler.model.trace import Trace

STEP = """
host  user_annotation  ProfilerStep#1          0  200
host  cpu_op           aten::mm               10   30
host  cuda_runtime     cudaLaunchKernel       20    5  correlation=1
gpu0  kernel           gemm                   30   70  correlation=1
host  cpu_op           aten::item             50   80
host  cuda_runtime     cudaStreamSynchronize  60   60  correlation=2
host  user_annotation  ProfilerStep#2        200  100
"""


def replayed(trace: Trace, *, scale: float = 1, without: str | None = None) -> Times:
    """The trace with all kernels scaled, or without the waits of calls of one name."""
    graph = schedule(trace)
    duration = ((graph.items.end - graph.items.start) * scale).astype(np.int64)[None]
    names = np.array([trace.strings[trace.events.name[row]] if row >= 0 else "" for row in graph.edges.call])
    return replay(trace, graph.step[None], duration, (names == without)[None])


@pytest.mark.parametrize(
    "picture",
    [
        STEP,
        BACKWARD + "host cpu_op aten::optimizer 80 20\nhost cpu_op aten::optimizer 110 20",
        launches(12, 115),
        full_queue(300, 32),
        "gpu0 kernel a 12 9\ngpu0 kernel b 30 9",
        "host cpu_op aten::mm 0 10",
    ],
    ids=["item", "backward", "blocking launches", "full queue", "no host", "no device"],
)
def test_unchanged_input_gives_the_recorded_times(picture: str) -> None:
    trace = draw(picture)
    graph, again = schedule(trace), replayed(trace)
    assert again.points[0].tolist() == graph.points.time.tolist()
    assert again.ends[0].tolist() == graph.items.end.tolist()


def test_what_waits_for_a_kernel_comes_sooner_if_it_is_faster() -> None:
    # The host waits for gemm until 100, then works for itself: 20 us of the call, 80 to the end of the step.
    trace = draw(STEP)
    graph = schedule(trace)
    faster = replayed(trace, scale=0.5).points[0]
    moved = dict(zip(graph.points.time.tolist(), (graph.points.time - faster).tolist(), strict=True))
    assert moved[120_000] == moved[200_000] == 35_000
    assert moved[25_000] == 0


def test_a_host_that_no_longer_waits_keeps_what_the_call_takes() -> None:
    trace = draw(STEP)
    graph = schedule(trace)
    free = replayed(trace, without="cudaStreamSynchronize").points[0]
    moved = dict(zip(graph.points.time.tolist(), (graph.points.time - free).tolist(), strict=True))
    assert moved[120_000] == moved[200_000] == 60_000 - 3_000


def test_slower_kernels_are_launched_as_before() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0   5  correlation=1
    host  cuda_runtime  cudaLaunchKernel  20   5  correlation=2
    gpu0  kernel        a                  8  10  correlation=1
    gpu0  kernel        b                 30  10  correlation=2
    """)
    assert replayed(trace, scale=2).ends[0].tolist() == [28_000, 50_000]
    # ... until the stream is what they wait for: the second starts its usual gap after the first.
    assert replayed(trace, scale=4).ends[0].tolist() == [48_000, 48_000 + 2_000 + 40_000]


def test_what_holds_up_an_item_is_told() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel      0   5  correlation=1
    host  cuda_runtime  cudaLaunchKernel     10   5  correlation=2
    host  cuda_runtime  cudaStreamWaitEvent  16   2  correlation=3
    host  cuda_runtime  cudaLaunchKernel     20   5  correlation=4
    gpu0  kernel        launched              8  40  correlation=1 stream=7
    gpu0  kernel        queued               50  10  correlation=2 stream=7
    gpu0  kernel        waiting              66  10  correlation=4 stream=20
    gpu0  kernel        unknown              90  10  stream=21
    """)
    graph = schedule(trace)
    assert graph.bound.tolist() == [Bound.LAUNCH, Bound.STREAM, Bound.WAIT, Bound.NOTHING]
    assert graph.residual.tolist() == [0, 0, 2_000, 0]
    assert graph.explained == 0.75


def test_an_item_that_starts_late_for_no_reason_is_not_explained() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0   5  correlation=1
    gpu0  kernel        late              30  10  correlation=1
    """)
    assert schedule(trace).explained == 0.0
    assert schedule(draw("host cpu_op aten::mm 0 10")).explained is None
