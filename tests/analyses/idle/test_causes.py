"""One drawn trace per cause: two kernels, and between them what keeps the device waiting for the second."""

from __future__ import annotations

import pytest

from tests.analyses.idle.idle_traces import find_draining_calls, idle
from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace


def late_host(host_slice: str) -> Trace:
    """Draw a device that idles from 20 to 82 us: the next launch begins at 70, ends at 80, arrives at 82."""
    return draw(f"""
    host  cuda_runtime  cudaLaunchKernel   2   4  correlation=1
    gpu0  kernel        first             10  10  correlation=1 stream=7
    {host_slice}
    host  cuda_runtime  cudaLaunchKernel  70  10  correlation=2
    gpu0  kernel        second            82  18  correlation=2 stream=7
    """)


LAUNCH = [(10.0, "launch_call", "cudaLaunchKernel"), (2.0, "launch_latency", "cudaLaunchKernel")]
BEFORE = [(4.0, "launch_call", "cudaLaunchKernel"), (4.0, "launch_latency", "cudaLaunchKernel")]


@pytest.mark.parametrize(
    ("host_slice", "cause", "subject"),
    [
        ("host cpu_op aten::mm 15 55", "operator", "aten::mm"),
        ("host python_function train.py(3):~step 15 55", "python", "train.py(3): step"),
        ("host user_annotation my~range 15 55", "annotation", "my range"),
        ("", "unrecorded", ""),
        ("host cuda_runtime cudaStreamSynchronize 19 51", "sync", "cudaStreamSynchronize"),
        ("host cuda_runtime cudaMalloc 19 51", "allocator", "cudaMalloc"),
        ("host cuda_runtime hipFree 19 51", "allocator", "hipFree"),
        ("host cuda_runtime cudaEventRecord 19 51", "runtime", "cudaEventRecord"),
        ("host cuda_driver cuModuleLoadData 19 51", "compile", "cuModuleLoadData"),
        ("host cuda_runtime Lazy~Function~Loading 19 51", "compile", "Lazy Function Loading"),
        ("host cpu_op _compile.compile_inner 15 55", "compile", "_compile.compile_inner"),
        # It evaluates guards before each call of compiled code, and is over when anything is compiled.
        ("host cpu_op TorchDynamo~Cache~Lookup 15 55", "operator", "TorchDynamo Cache Lookup"),
        # A collection of garbage works; it waits for nothing.
        (
            "host python_function <built-in~function~collect> 15 55",
            "python",
            "<built-in function collect>",
        ),
        ("host python_function <built-in~function~sleep> 15 55", "wait", "<built-in function sleep>"),
        (
            "host python_function <built-in~method~acquire~of~_thread.lock~object~at~0x1> 15 55",
            "wait",
            "<built-in method acquire of _thread.lock object at 0x1>",
        ),
        ("host cpu_op gloo:all_reduce 15 55", "host_communication", "gloo:all_reduce"),
        (
            "host cpu_op enumerate(DataLoader)#_Single.__next__ 15 55",
            "data_loading",
            "enumerate(DataLoader)#_Single.__next__",
        ),
    ],
)
def test_what_the_host_is_in_while_it_has_not_submitted(host_slice: str, cause: str, subject: str) -> None:
    found = idle(late_host(host_slice))
    assert found[-3:] == [(50.0, cause, subject), *LAUNCH]


def test_the_innermost_slice_is_blamed_and_data_loading_holds_for_all_inside() -> None:
    found = idle(
        late_host("""
        host  cpu_op  enumerate(DataLoader)#_Single.__next__  15  40
        host  cpu_op  aten::stack                             30  10
        host  cpu_op  aten::mm                                55  30
        """)
    )
    assert found[-6:] == [
        (10.0, "data_loading", "enumerate(DataLoader)#_Single.__next__"),
        (10.0, "data_loading", "aten::stack"),
        (15.0, "data_loading", "enumerate(DataLoader)#_Single.__next__"),
        (15.0, "operator", "aten::mm"),
        *LAUNCH,
    ]


def test_data_loading_counts_where_it_does_not_nest() -> None:
    """The loader's mark sticks out of an annotation, so that the tree puts it aside."""
    found = idle(
        late_host("""
        host  user_annotation  range                                  15  30
        host  cpu_op           enumerate(DataLoader)#_Single.__next__  30  40
        """)
    )
    assert sum(us for us, cause, _ in found if cause == "data_loading") == 40
    assert sum(us for us, cause, _ in found if cause == "annotation") == 10


def test_the_profiler_s_own_work_is_its_own_cause() -> None:
    found = idle(late_host("host cpu_op aten::mm 15 55\nhost overhead Activity~Buffer~Request 30 20"))
    assert [cause for _, cause, _ in found][-5:-2] == ["operator", "profiler", "operator"]


def test_overhead_that_is_recorded_on_no_thread_of_the_program_holds_for_all_of_them() -> None:
    found = idle(late_host("host cpu_op aten::mm 15 55\nhost9 overhead Activity~Buffer~Request 30 20"))
    assert [cause for _, cause, _ in found][-5:-2] == ["operator", "profiler", "operator"]


def test_a_launch_inside_of_communication_on_the_host_is_a_launch() -> None:
    found = idle(late_host("host cpu_op gloo:all_reduce 15 66"))
    assert found[-3:] == [(50.0, "host_communication", "gloo:all_reduce"), *LAUNCH]


def test_the_call_of_a_pageable_copy_stages_it() -> None:
    found = idle(
        draw("""
        host  cuda_runtime  cudaLaunchKernel   2   4  correlation=1
        gpu0  kernel        first             10  10  correlation=1 stream=7
        host  cuda_runtime  cudaMemcpyAsync   30  60  correlation=2
        gpu0  gpu_memcpy    Memcpy~HtoD~(Pageable~->~Device)  70  15  correlation=2 stream=7
        """)
    )
    assert (40.0, "copy_staging", "cudaMemcpyAsync") in found


def test_submitted_work_that_starts_late() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0   2  correlation=1
    host  cuda_runtime  cudaLaunchKernel   3   2  correlation=2
    host  cuda_runtime  cudaLaunchKernel   6   2  correlation=3
    gpu0  kernel        first             10  10  correlation=1 stream=7
    gpu0  kernel        second            25  10  correlation=2 stream=7
    gpu0  kernel        third             75  10  correlation=3 stream=7
    """)
    assert idle(trace)[-2:] == [(5.0, "kernel_gap", "cudaLaunchKernel"), (40.0, "device_wait", "")]


def test_work_of_one_graph_follows_by_itself() -> None:
    trace = draw("""
    host  cuda_runtime  cudaGraphLaunch   0   5  correlation=1
    gpu0  kernel        first            10  10  correlation=1 stream=7
    gpu0  kernel        second           23  10  correlation=1 stream=7
    """)
    assert idle(trace)[-1] == (3.0, "graph_gap", "cudaGraphLaunch")


def test_a_device_that_waits_for_another_one() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0   2  correlation=1
    host  cuda_runtime  cudaLaunchKernel   3   2  correlation=2
    host  cuda_runtime  cudaLaunchKernel   6   2  correlation=3
    gpu0  kernel        first             10  10  correlation=1 stream=7
    gpu1  kernel        elsewhere         10  85  correlation=2 stream=7
    gpu0  kernel        second           100  10  correlation=3 stream=7
    """)
    assert idle(trace)[-1] == (80.0, "device_wait", "elsewhere")
    assert idle(trace, device=1)[-1] == (15.0, "tail", "")


def test_what_ended_long_before_on_another_device_is_not_what_a_device_waits_for() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel   0   2  correlation=1
    host  cuda_runtime  cudaLaunchKernel   3   2  correlation=2
    host  cuda_runtime  cudaLaunchKernel   6   2  correlation=3
    gpu0  kernel        first             10  10  correlation=1 stream=7
    gpu1  kernel        elsewhere         10  69  correlation=2 stream=7
    gpu0  kernel        second           100  10  correlation=3 stream=7
    """)
    assert idle(trace)[-1] == (80.0, "device_wait", "")


def test_what_is_not_linked_or_was_launched_before_the_recording_is_not_blamed_on_the_host() -> None:
    assert idle(draw("host cpu_op aten::mm 0 50\ngpu0 kernel lost 50 10 stream=7")) == [(50.0, "unlinked", "lost")]
    trace = draw("""
    host  cpu_op        aten::mm          0  90
    host  cuda_runtime  cudaLaunchKernel  0   2  correlation=1
    gpu0  kernel        first            60  30  correlation=1 stream=7
    """)
    assert idle(trace)[-1] == (58.0, "before_recording", "first")


def test_nothing_follows_at_the_end() -> None:
    trace = late_host("host cpu_op aten::mm 15 55\nhost cpu_op aten::save 110 40")
    assert idle(trace)[-1] == (50.0, "tail", "")


def test_what_emptied_the_queue() -> None:
    waited = late_host("host cpu_op aten::item 7 28\nhost cuda_runtime cudaStreamSynchronize 8 15")
    assert find_draining_calls(waited) == ["", "cudaStreamSynchronize"]
    found = idle(waited)[-5:]
    assert found[0] == (3.0, "sync", "cudaStreamSynchronize")  # 20 to 23: nothing left to wait for
    assert found[1] == (12.0, "operator", "aten::item")
    assert find_draining_calls(late_host("host cpu_op aten::mm 15 55")) == ["", ""]
    # A synchronization that is over before the work ends has not emptied the queue.
    assert find_draining_calls(late_host("host cuda_runtime cudaStreamSynchronize 8 10")) == ["", ""]


@pytest.mark.parametrize(("launch", "emptied"), [(20, ""), (122, ""), (135, "cudaEventSynchronize")])
def test_a_queue_with_work_submitted_before_the_call_returned_was_not_drained(launch: int, emptied: str) -> None:
    trace = draw(f"""
    host  cuda_runtime  cudaLaunchKernel       0    5  correlation=1
    host2 cuda_runtime  cudaLaunchKernel       {launch}    5  correlation=2
    host  cuda_runtime  cudaEventSynchronize  30  100
    gpu0  kernel        a                     10  110  correlation=1 stream=7
    gpu0  kernel        b                    250   50  correlation=2 stream=9
    """)
    assert find_draining_calls(trace)[1] == emptied
