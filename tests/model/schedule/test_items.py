"""Tests of when items were submitted, on which clock, and how soon they start."""

from __future__ import annotations

from tests.model.schedule.test_blocking import launches
from tests.support.traces import draw
from torch_tb_profiler.model.schedule.items import (
    NEVER,
    StartLatencies,
    clock_shift_ns,
    device_items,
    typical_latencies,
)
from torch_tb_profiler.model.schedule.threads import main_thread
from torch_tb_profiler.model.trace import ABSENT, NO_CODE


def test_a_device_clock_that_runs_behind_is_shifted_until_nothing_starts_before_its_call() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel  100  5  correlation=1
    host  cuda_runtime  cudaLaunchKernel  200  5  correlation=2
    gpu0  kernel        a                  60  20  correlation=1
    gpu0  kernel        b                 190  20  correlation=2
    """)
    assert clock_shift_ns(trace) == 41_000  # a began 40 us before its call, and no launch takes less than 1 us
    assert device_items(trace).start.tolist() == [101_000 - 60_000, 231_000 - 60_000]


def test_a_clock_that_agrees_is_not_shifted() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel  100  5  correlation=1
    gpu0  kernel        a                 100  20  correlation=1
    """)
    assert clock_shift_ns(trace) == 0


def test_an_item_is_submitted_at_the_end_of_its_call_or_when_it_starts() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel    0  10  correlation=1
    host  cuda_runtime  cudaLaunchKernel  100  10  correlation=2
    gpu0  kernel        a                   8  20  correlation=1
    gpu0  kernel        b                 150  20  correlation=2
    """)
    assert device_items(trace).submit_time.tolist() == [8_000, 110_000]


def test_an_item_queued_behind_another_was_submitted_within_a_typical_call() -> None:
    # The third call returns late, but its kernel starts as soon as the one before it has ended.
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel    0   10  correlation=1
    host  cuda_runtime  cudaLaunchKernel   20   10  correlation=2
    host  cuda_runtime  cudaLaunchKernel   40  200  correlation=3
    gpu0  kernel        a                  12   20  correlation=1
    gpu0  kernel        b                  34   66  correlation=2
    gpu0  kernel        c                 105   20  correlation=3
    """)
    items = device_items(trace)
    assert items.typical_call_ns == 10_000
    assert items.submit_time.tolist() == [10_000, 30_000, 50_000]
    assert items.previous_end.tolist() == [NEVER, 32_000, 100_000]


def test_an_item_that_starts_long_after_the_previous_one_was_submitted_when_it_starts() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel    0   10  correlation=1
    host  cuda_runtime  cudaLaunchKernel   20   10  correlation=2
    host  cuda_runtime  cudaLaunchKernel   40  200  correlation=3
    gpu0  kernel        a                  12   20  correlation=1
    gpu0  kernel        b                  34   66  correlation=2
    gpu0  kernel        c                 125   20  correlation=3
    """)
    assert device_items(trace).submit_time.tolist() == [10_000, 30_000, 125_000]


def test_each_stream_of_each_device_is_a_queue() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0  5  correlation=1
    host  cuda_runtime  cudaLaunchKernel  10  5  correlation=2
    host  cuda_runtime  cudaLaunchKernel  20  5  correlation=3
    gpu0  kernel        a                  6  9  correlation=1 device=0 stream=7
    gpu1  kernel        b                 16  9  correlation=2 device=1 stream=7
    gpu0  kernel        c                 26  9  correlation=3 device=0 stream=7
    """)
    items = device_items(trace)
    assert [trace.strings[trace.events.name[row]] for row in items.row] == ["a", "c", "b"]
    assert items.bounds.tolist() == [0, 2, 3]
    assert items.queue.tolist() == [0, 0, 1]


def test_a_graph_launch_submits_all_its_kernels_at_once() -> None:
    trace = draw("""
    host  cuda_runtime  cudaGraphLaunch   0  10  correlation=1
    gpu0  kernel        a                12   9  correlation=1
    gpu0  kernel        b                22   9  correlation=1
    gpu0  kernel        c                32   9  correlation=1
    """)
    assert device_items(trace).submit_time.tolist() == [10_000, 10_000, 10_000]


def test_an_item_without_a_launch_has_no_submission() -> None:
    items = device_items(draw("gpu0  kernel  a  12  9"))
    assert (items.call.tolist(), items.submit_time.tolist(), items.thread.tolist()) == (
        [NO_CODE],
        [ABSENT],
        [NO_CODE],
    )


def test_the_main_thread_is_that_of_the_steps() -> None:
    trace = draw("""
    host   user_annotation  ProfilerStep#1     0  50
    host2  cuda_runtime     cudaLaunchKernel  10   5  correlation=1
    host2  cuda_runtime     cudaLaunchKernel  20   5  correlation=2
    host   cuda_runtime     cudaLaunchKernel  30   5  correlation=3
    gpu0   kernel           a                 40   5  correlation=1
    gpu0   kernel           b                 50   5  correlation=2
    gpu0   kernel           c                 60   5  correlation=3
    """)
    assert trace.threads[main_thread(trace)].tid == 1


def test_without_steps_the_main_thread_launches_most_and_runs_no_autograd_task() -> None:
    trace = draw("""
    host   cuda_runtime  cudaLaunchKernel                                        0   5  correlation=1
    host2  cpu_op        autograd::engine::evaluate_function:~AddmmBackward0     8  50
    host2  cuda_runtime  cudaLaunchKernel                                       10   5  correlation=2
    host2  cuda_runtime  cudaLaunchKernel                                       20   5  correlation=3
    gpu0   kernel        a                                                      40   5  correlation=1
    gpu0   kernel        b                                                      50   5  correlation=2
    gpu0   kernel        c                                                      60   5  correlation=3
    """)
    assert trace.threads[main_thread(trace)].tid == 1


def test_a_trace_without_a_host_has_no_main_thread() -> None:
    assert main_thread(draw("gpu0  kernel  a  12  9")) == NO_CODE


def test_fewer_than_ten_items_have_default_latencies() -> None:
    """The defaults are 4 us from a launch and 2 us from the previous item to the start."""
    assert typical_latencies(device_items(draw(launches(9, 5)))) == StartLatencies(launch_ns=4_000, gap_ns=2_000)
    assert typical_latencies(device_items(draw(launches(10, 5)))).launch_ns == 5_000
