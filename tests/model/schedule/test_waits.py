"""Tests of waits between streams and hand-offs between threads."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.schedule.what_if import parse_target, step_times_without
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.schedule.stream_waits import stream_waits
from torch_tb_profiler.model.schedule.threads import handoffs
from torch_tb_profiler.model.trace import ABSENT, Trace


def waits(trace: Trace) -> list[tuple[str, str, bool]]:
    """Return (item, the item that it waits for, whether inferred)."""
    edges, items = stream_waits(trace), device_items(trace)
    names = [trace.strings[trace.events.name[row]] for row in items.row]
    return [
        (names[item], names[source], bool(inferred))
        for item, source, inferred in zip(edges.item, edges.source, edges.inferred, strict=True)
    ]


def test_the_next_launch_after_the_call_waits_for_the_other_stream() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel      0   5  correlation=1
    host  cuda_runtime  cudaStreamWaitEvent  10   2  correlation=2
    host  cuda_runtime  cudaLaunchKernel     15   5  correlation=3
    host  cuda_runtime  cudaLaunchKernel     25   5  correlation=4
    gpu0  kernel        compute               6  60  correlation=1 stream=7
    gpu0  kernel        reduce               68  10  correlation=3 stream=20
    gpu0  kernel        copy                 79  10  correlation=4 stream=20
    """)
    assert waits(trace) == [("reduce", "compute", False)]


def test_no_item_waits_for_one_that_ends_after_its_start() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel      0   5  correlation=1
    host  cuda_runtime  cudaStreamWaitEvent  10   2  correlation=2
    host  cuda_runtime  cudaLaunchKernel     15   5  correlation=3
    gpu0  kernel        compute               6  60  correlation=1 stream=7
    gpu0  kernel        reduce               22  10  correlation=3 stream=20
    """)
    assert waits(trace) == []


LATE = """
host  cuda_runtime  cudaLaunchKernel    0   5  correlation=1
host  cuda_runtime  cudaLaunchKernel   15   5  correlation=3
gpu0  kernel        compute             6  80  correlation=1 stream=7
"""


def test_a_late_start_right_after_another_stream_is_inferred_to_have_waited() -> None:
    assert waits(draw(LATE + "gpu0 kernel reduce 88 10 correlation=3 stream=20")) == [("reduce", "compute", True)]


def test_a_late_start_without_an_end_nearby_has_no_wait() -> None:
    assert waits(draw(LATE + "gpu0 kernel reduce 120 10 correlation=3 stream=20")) == []


def test_a_late_start_right_after_work_of_another_device_of_the_process_has_waited_for_it() -> None:
    after = "gpu1 kernel reduce {} 10 correlation=3 stream=20 device=1"
    assert waits(draw(LATE + after.format(88))) == [("reduce", "compute", True)]
    assert waits(draw(LATE + after.format(120))) == []


def test_a_wait_is_inferred_for_the_same_device_first() -> None:
    nearer = "gpu1 kernel other 7 80 stream=7 device=1\n"
    assert waits(draw(LATE + nearer + "gpu0 kernel reduce 88 10 correlation=3 stream=20")) == [
        ("reduce", "compute", True)
    ]


def test_a_recorded_wait_for_a_stream_of_another_device_is_of_that_device() -> None:
    picture = """
    host  cuda_runtime  cudaLaunchKernel      0   5  correlation=1
    host  cuda_runtime  cudaStreamWaitEvent  10   2  correlation=2
    host  cuda_runtime  cudaLaunchKernel     15   5  correlation=3
    gpu0  kernel        compute               6  60  correlation=1 stream=7
    gpu1  kernel        next_stage           68  10  correlation=3 stream=20 device=1
    gpu1  cuda_sync     Wait                 10   1  correlation=2 stream=20 wait_on_stream={stream} device=1
    """
    assert waits(draw(picture.format(stream=7))) == [("next_stage", "compute", False)]
    assert waits(draw(picture.format(stream=9)))[0][2] is True


def test_communication_waits_for_what_it_sends_although_other_communication_holds_it_up() -> None:
    picture = """
    host  cuda_runtime  cudaLaunchKernel            0   5  correlation=1
    host  cuda_runtime  cudaLaunchKernel           10   5  correlation=2
    host  cuda_runtime  cudaLaunchKernel           20   5  correlation=3
    host  cuda_runtime  cudaLaunchKernel           30   5  correlation=4
    gpu0  kernel        first                       6  50  correlation=1 stream=7
    gpu0  kernel        second                     56  20  correlation=3 stream=7
    gpu0  kernel        ncclDevKernel_AllReduce_1  58  90  correlation=2 stream=20
    gpu0  kernel        ncclDevKernel_AllReduce_2 149  90  correlation=4 stream=20
    """
    assert waits(draw(picture)) == [
        ("ncclDevKernel_AllReduce_1", "first", True),
        ("ncclDevKernel_AllReduce_2", "second", True),
    ]
    assert waits(draw(picture.replace("ncclDevKernel", "other_kernel"))) == [
        ("other_kernel_AllReduce_1", "first", True)
    ]


def test_communication_waits_for_the_work_of_its_device_although_another_got_work_since() -> None:
    """A process launches each kernel on both of its devices, and communicates on the first."""
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel            0   5  correlation=1
    host  cuda_runtime  cudaLaunchKernel           10   5  correlation=2
    host  cuda_runtime  cudaLaunchKernel           20   5  correlation=3
    host  cuda_runtime  cudaLaunchKernel           30   5  correlation=4
    host  cuda_runtime  cudaLaunchKernel           40   5  correlation=5
    gpu0  kernel        first                       6  50  correlation=1 stream=7
    gpu0  kernel        ncclDevKernel_AllReduce_1  58  90  correlation=2 stream=20
    gpu0  kernel        second                     60  20  correlation=3 stream=7
    gpu1  kernel        second                     36  20  correlation=4 stream=7
    gpu0  kernel        ncclDevKernel_AllReduce_2 149  90  correlation=5 stream=20
    """)
    assert waits(trace) == [
        ("ncclDevKernel_AllReduce_1", "first", True),
        ("ncclDevKernel_AllReduce_2", "second", True),
    ]
    devices = device_items(trace).device
    found = stream_waits(trace)
    assert devices[found.source].tolist() == devices[found.item].tolist() == [0, 0]


BACKWARD = """
host   cpu_op        aten::forward      0  20
host   cuda_runtime  cudaLaunchKernel   5   5  correlation=9
gpu0   kernel        forward           12  10  correlation=9
host2  cpu_op        autograd::engine::evaluate_function:~A  30  40
host2  cuda_runtime  cudaLaunchKernel  40   5  correlation=1
gpu0   kernel        grad              50  10  correlation=1
"""


def times(trace: Trace) -> list[tuple[int | str | None, int, int | str | None, int, int]]:
    """Return (source thread, its time, target thread, its time, since when it waits) in us.

    The last is -1 if the target had nothing left to do.
    """
    edges = handoffs(trace)
    return [
        (trace.threads[source].tid, begin // 1000, trace.threads[target].tid, end // 1000, max(held // 1000, -1))
        for source, begin, target, end, held in zip(
            edges.source.tolist(),
            edges.source_time.tolist(),
            edges.target.tolist(),
            edges.target_time.tolist(),
            edges.waiting_since.tolist(),
            strict=True,
        )
    ]


def test_the_backward_thread_starts_and_ends_with_the_main_thread() -> None:
    trace = draw(BACKWARD + "host cpu_op aten::optimizer 80 20\nhost cpu_op aten::optimizer 110 20")
    assert times(trace) == [(1, 20, 2, 30, -1), (2, 70, 1, 80, 20)]
    assert handoffs(trace).waiting_since[0] == ABSENT


def test_a_burst_that_fills_less_than_half_of_the_pause_does_not_block_the_main_thread() -> None:
    trace = draw(BACKWARD + "host cpu_op aten::optimizer 120 20\nhost cpu_op aten::optimizer 150 20")
    assert times(trace) == [(1, 20, 2, 30, -1)]


def test_a_thread_that_is_still_busy_gets_no_hand_off() -> None:
    busy = BACKWARD + "host cpu_op aten::more 65 20\nhost cpu_op aten::optimizer 110 20\n"
    assert times(draw(busy)) == [(1, 20, 2, 30, -1)]
    assert times(draw(busy + "host2 cpu_op aten::next 72 4")) == [(1, 20, 2, 30, -1)]
    assert times(draw(busy + "host2 cpu_op aten::next 90 4")) == [(1, 20, 2, 30, -1), (1, 85, 2, 90, -1)]


def test_a_burst_may_begin_and_end_at_the_times_of_the_call_around_it() -> None:
    """Clocks are rounded: without the hook, the main thread goes on 400 us earlier all the same."""
    trace = draw("""
    host  user_annotation ProfilerStep#0 0 1000
    host  python_function run_backward 100 500
    host2 cpu_op my_hook 100 400
    host2 cuda_runtime cudaLaunchKernel 590 10 correlation=1
    gpu0  kernel gemm 602 50 correlation=1 stream=7
    host  cpu_op aten::add 700 10
    """)
    found = handoffs(trace)
    assert found.source_time.tolist() == [0, 600_000] and found.target_time.tolist() == [100_000, 700_000]
    assert step_times_without(trace, [parse_target(trace, "operator:my_hook")]).tolist() == [600_000]
