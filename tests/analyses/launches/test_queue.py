from __future__ import annotations

import numpy as np

from tests.support.traces import draw
from torch_tb_profiler.analyses.launches.queue import blocked_launches, max_lengths_between, stream_queues
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.trace import Trace


def work(trace: Trace) -> np.ndarray:
    return rows_of_kind(trace, *DEVICE_KINDS)


PICTURE = """
host  cuda_runtime  launch   0  2  correlation=1
host  cuda_runtime  launch  10  2  correlation=2
host  cuda_runtime  launch  20  2  correlation=3
gpu0  kernel        a        5  9  correlation=1 stream=7
gpu0  kernel        b       20  9  correlation=2 stream=7
gpu0  kernel        c       60  9  correlation=3 stream=7
gpu0  kernel        orphan  80  9  stream=7
"""


def test_a_launch_adds_a_start_removes_and_calls_come_first() -> None:
    trace = draw(PICTURE)
    (queue,) = stream_queues(trace, work(trace))
    assert (queue.device, queue.stream) == (0, 7)
    assert queue.times.tolist() == [0, 5_000, 10_000, 20_000, 20_000, 60_000]
    assert queue.lengths.tolist() == [1, 0, 1, 2, 1, 0]
    assert (queue.longest, queue.empty_ns, queue.duration_ns) == (2, 5_000, 60_000)
    assert queue.mean == (5 + 10 + 40) / 60


def test_every_stream_has_its_own_queue() -> None:
    trace = draw("""
    host  cuda_runtime  launch   0  2  correlation=1
    host  cuda_runtime  launch   4  2  correlation=2
    gpu0  kernel        a       10  9  correlation=1 stream=7
    gpu1  kernel        b       20  9  correlation=2 stream=7
    """)
    assert [(queue.device, queue.longest) for queue in stream_queues(trace, work(trace))] == [(0, 1), (1, 1)]


def test_a_graph_adds_all_its_work_at_once() -> None:
    trace = draw("""
    host  cuda_runtime  cudaGraphLaunch   0  2  correlation=1
    gpu0  kernel        a                10  5  correlation=1 stream=7
    gpu0  kernel        b                20  5  correlation=1 stream=7
    """)
    (queue,) = stream_queues(trace, work(trace))
    assert queue.lengths.tolist() == [1, 2, 1, 0]


def test_a_skewed_clock_makes_no_queue_negative() -> None:
    trace = draw("""
    host  cuda_runtime  launch  10  2  correlation=1
    gpu0  kernel        a        5  9  correlation=1 stream=7
    """)
    (queue,) = stream_queues(trace, work(trace))
    assert queue.lengths.tolist() == [1, 0]


def test_the_curve_keeps_the_greatest_length_of_each_stretch() -> None:
    trace = draw(PICTURE)
    (queue,) = stream_queues(trace, work(trace))
    edges = np.array([0, 6_000, 12_000, 19_000, 21_000, 30_000, 60_000, 90_000])
    assert max_lengths_between(queue, edges).tolist() == [1, 1, 1, 2, 1, 1, 1]
    assert max_lengths_between(queue, np.array([-5, 0, 1, 100_000, 200_000])).tolist() == [0, 1, 2, 0]


def full_queue(capacity: int) -> Trace:
    """Draw 100 kernels of 100 us; a call returns 2 us after the kernel `capacity` places before its own starts."""
    lines, now = [], 0.0
    for i in range(100):
        end = now + 2 if i < capacity else max(now + 2, 12 + 100 * (i - capacity))
        lines.append(f"host cuda_runtime cudaLaunchKernel {now} {end - now} correlation={i + 1}")
        lines.append(f"gpu0 kernel gemm {10 + 100 * i} 100 correlation={i + 1} stream=7")
        now = end + 1
    return draw("\n".join(lines))


def test_calls_that_wait_for_a_full_queue_are_told_from_usual_ones() -> None:
    trace = full_queue(32)
    calls, blocked = blocked_launches(trace, work(trace))
    found = calls_of(trace)
    held = [ns for ns in found if ns > 2_000]
    assert calls == len(held) == 67
    assert blocked == sum(held) - len(held) * 2_000  # what a call takes that doesn't wait, though most do
    assert blocked_launches(full_queue(1000), work(full_queue(1000))) == (0, 0)


def calls_of(trace: Trace) -> list[int]:
    """Return the durations of all runtime calls."""
    lasting: list[int] = trace.events.duration[rows_of_kind(trace, Kind.RUNTIME)].tolist()
    return lasting
