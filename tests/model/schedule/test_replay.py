"""Tests that a replay reproduces the recorded times, and of what changes do to small schedules."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model.schedule.test_blocking import full_queue, launches
from tests.model.schedule.test_waits import BACKWARD
from tests.support.traces import draw
from torch_tb_profiler.model.schedule.replay import ReplayTimes, replay
from torch_tb_profiler.model.schedule.schedule import StartLimit, schedule
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


def replay_with(trace: Trace, *, scale: float = 1, without: str | None = None) -> ReplayTimes:
    """Replay the trace with all kernels scaled, or without the waits of calls named `without`."""
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
    graph, again = schedule(trace), replay_with(trace)
    assert again.points[0].tolist() == graph.points.time.tolist()
    assert again.ends[0].tolist() == graph.items.end.tolist()


def test_launches_that_waited_for_a_full_queue_are_as_quick_as_others_if_kernels_are() -> None:
    """Launches of 5 us wait for kernels of 49 us, 168 of 200 of them; kernels of 12 us come every 13 us then."""
    trace = draw(full_queue(200, 32))
    faster = replay_with(trace, scale=0.25)
    assert faster.ends[0].max() / 200 == pytest.approx(13_250, rel=0.05)


def test_points_that_wait_for_a_kernel_come_sooner_if_it_is_faster() -> None:
    # The host waits for gemm until 100, then works for itself: 20 us of the call, 80 to the end of the step.
    trace = draw(STEP)
    graph = schedule(trace)
    faster = replay_with(trace, scale=0.5).points[0]
    moved = dict(zip(graph.points.time.tolist(), (graph.points.time - faster).tolist(), strict=True))
    assert moved[120_000] == moved[200_000] == 35_000
    assert moved[25_000] == 0


def test_a_removed_wait_leaves_the_time_of_the_call_itself() -> None:
    trace = draw(STEP)
    graph = schedule(trace)
    free = replay_with(trace, without="cudaStreamSynchronize").points[0]
    moved = dict(zip(graph.points.time.tolist(), (graph.points.time - free).tolist(), strict=True))
    assert moved[120_000] == moved[200_000] == 60_000 - 3_000


def test_slower_kernels_delay_their_stream_only_once_they_fill_it() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0   5  correlation=1
    host  cuda_runtime  cudaLaunchKernel  20   5  correlation=2
    gpu0  kernel        a                  8  10  correlation=1
    gpu0  kernel        b                 30  10  correlation=2
    """)
    assert replay_with(trace, scale=2).ends[0].tolist() == [28_000, 50_000]
    # ... until the stream is what limits them: the second starts its typical gap after the first.
    assert replay_with(trace, scale=4).ends[0].tolist() == [48_000, 48_000 + 2_000 + 40_000]


def test_each_item_has_the_limit_of_its_start() -> None:
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
    assert graph.limit.tolist() == [StartLimit.LAUNCH, StartLimit.STREAM, StartLimit.WAIT, StartLimit.NOTHING]
    assert graph.residual.tolist() == [0, 0, 2_000, 0]
    assert graph.explained_share == 0.75


def test_an_item_that_starts_late_without_a_limit_is_not_explained() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0   5  correlation=1
    gpu0  kernel        late              30  10  correlation=1
    """)
    assert schedule(trace).explained_share == 0.0
    assert schedule(draw("host cpu_op aten::mm 0 10")).explained_share is None


def test_only_work_of_complete_steps_needs_an_explanation() -> None:
    """The recording begins in the middle of a step, whose launches are missing: a replay changes nothing there."""
    before = "\n".join(f"gpu0 kernel queued_{number} {100 * number} 10" for number in range(5))
    trace = draw(f"""
    {before}
    host  user_annotation  ProfilerStep#2   500  100
    host  cuda_runtime     cudaLaunchKernel 510    5  correlation=1
    gpu0  kernel           launched         517   60  correlation=1
    host  user_annotation  ProfilerStep#3   600  100
    host  cuda_runtime     cudaLaunchKernel 610    5  correlation=2
    gpu0  kernel           launched         617   60  correlation=2
    """)
    assert schedule(trace).explained_share == 1.0
    assert schedule(draw(before)).explained_share == 0.0


@pytest.mark.parametrize(("end", "begin"), [(200.0, 200.0), (199.999, 200.0), (199.6, 199.6), (200.0, 200.3)])
def test_a_step_whose_border_is_rounded_into_a_wait_is_as_fast_as_its_kernels(end: float, begin: float) -> None:
    """Begins and durations are rounded: a call may seem to end after the step around it, or to begin before it."""
    trace = draw(f"""
    host  user_annotation  ProfilerStep#1          0  {end}
    host  cuda_runtime     cudaLaunchKernel       20    5  correlation=1
    gpu0  kernel           gemm                   30  166  correlation=1
    host  cuda_runtime     cudaStreamSynchronize  30  170  correlation=2
    host  user_annotation  ProfilerStep#2    {begin}  200
    host  cuda_runtime     cudaStreamSynchronize 200   50  correlation=3
    """)
    graph = schedule(trace)
    faster = replay_with(trace, scale=0.5).points[0]
    assert graph.points.time[graph.step_end[0]] - faster[graph.step_end[0]] == 83_000
    assert graph.points.time[graph.step_begin[1]] - faster[graph.step_begin[1]] == 83_000
