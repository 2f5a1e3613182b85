"""Idle time where several threads, devices, streams and clocks take part; the laws on random traces."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.analyses.idle.idle_traces import find_draining_calls, idle
from tests.support.traces import draw
from torch_tb_profiler.analyses.idle.device_time import device_step_times
from torch_tb_profiler.analyses.schedule.gaps import main_device
from torch_tb_profiler.base.errors import NotFoundError


def test_each_step_is_compute_exposed_communication_exposed_copies_and_idle() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1    0  100
    host  user_annotation  ProfilerStep#2  100  100
    host  cuda_runtime     launch            1    1  correlation=1
    host  cuda_runtime     launch            2    1  correlation=2
    host  cuda_runtime     launch            3    1  correlation=3
    host  cuda_runtime     launch          101    1  correlation=4
    gpu0  kernel           gemm             10   40  correlation=1 stream=7
    gpu0  kernel           ncclAllReduce    30   40  correlation=2 stream=8
    gpu0  gpu_memcpy       copy             60   30  correlation=3 stream=9
    gpu0  kernel           gemm            150   10  correlation=4 stream=7
    """)
    times = device_step_times(trace, 0)
    columns = (times.compute, times.communication, times.copies, times.idle)
    assert [column.tolist() for column in columns] == [
        [40_000, 10_000],
        [20_000, 0],
        [20_000, 0],
        [20_000, 90_000],
    ]


def test_a_gap_over_a_step_s_border_counts_for_both() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1   0  100
    host  user_annotation  ProfilerStep#2 100  100
    host  cuda_runtime     launch           1    1  correlation=1
    host  cuda_runtime     launch         150    1  correlation=2
    gpu0  kernel           a               10   40  correlation=1 stream=7
    gpu0  kernel           b              152   48  correlation=2 stream=7
    """)
    assert device_step_times(trace, 0).idle.tolist() == [60_000, 52_000]
    assert [us for us, _, _ in idle(trace)][-4:] == [50.0, 50.0, 1.0, 1.0]


def test_a_prefetch_on_a_side_stream_takes_no_blame() -> None:
    """The copy ends the gap, but the device waits for the next compute kernel, submitted by the other thread."""
    trace = draw("""
    host   cuda_runtime  cudaLaunchKernel   2   4  correlation=1
    gpu0   kernel        first             10  10  correlation=1 stream=7
    host   cpu_op        aten::mm          15  65
    host2  cpu_op        prefetch          15  45
    host2  cuda_runtime  cudaMemcpyAsync   50   5  correlation=2
    gpu0   gpu_memcpy    Memcpy~HtoD~(Pinned~->~Device)  60  5  correlation=2 stream=8
    host   cuda_runtime  cudaLaunchKernel  70   4  correlation=3
    gpu0   kernel        second            78  10  correlation=3 stream=7
    """)
    assert (40.0, "operator", "aten::mm") in idle(trace)
    assert not any(subject == "prefetch" for _, _, subject in idle(trace))


def test_a_kernel_that_was_queued_before_the_gap_leaves_the_blame_to_the_copy_that_it_waits_for() -> None:
    trace = draw("""
    host   cuda_runtime  cudaLaunchKernel   2   2  correlation=1
    gpu0   kernel        first             10  30  correlation=1 stream=7
    host   cuda_runtime  cudaLaunchKernel   6   2  correlation=2
    host2  cpu_op        pack              15  75
    host2  cuda_runtime  cudaMemcpyAsync   80   5  correlation=3
    gpu0   gpu_memcpy    Memcpy~HtoD~(Pinned~->~Device)  90  10  correlation=3 stream=8
    gpu0   kernel        second           101  10  correlation=2 stream=7
    """)
    assert (40.0, "operator", "pack") in idle(trace)


def test_the_next_compute_kernel_decides_although_a_copy_was_submitted_before() -> None:
    trace = draw("""
    host   cuda_runtime  cudaLaunchKernel   2   4  correlation=1
    gpu0   kernel        first             10  10  correlation=1 stream=7
    host2  cuda_runtime  cudaMemcpyAsync   12   4  correlation=2
    gpu0   gpu_memcpy    Memcpy~HtoD~(Pinned~->~Device)  60  5  correlation=2 stream=8
    host   cpu_op        aten::mm          18  30
    host   cuda_runtime  cudaLaunchKernel  40   4  correlation=3
    gpu0   kernel        second            78  10  correlation=3 stream=7
    """)
    assert (20.0, "operator", "aten::mm") in idle(trace)


def test_the_thread_that_is_handed_over_to_is_blamed_for_what_it_does() -> None:
    trace = draw("""
    host   user_annotation  ProfilerStep#1        0  200
    host   python_function  train.py(9):~backward 18 160
    host   cuda_runtime     cudaLaunchKernel      2   4  correlation=1
    gpu0   kernel           forward              10  20  correlation=1 stream=7
    host2  cpu_op           autograd::engine::evaluate_function:~MmBackward0  25  140
    host2  cuda_runtime     cudaLaunchKernel    150  10  correlation=2
    gpu0   kernel           backward            162  20  correlation=2 stream=7
    host   cpu_op           aten::add_          185  10
    host   cuda_runtime     cudaLaunchKernel    190   4  correlation=3
    gpu0   kernel           step                196   4  correlation=3 stream=7
    """)
    found = idle(trace)
    assert (120.0, "operator", "autograd::engine::evaluate_function: MmBackward0") in found
    # From 182 on the main thread is to submit: its frame is over, the other thread idle.
    assert (5.0, "operator", "aten::add_") in found


@pytest.mark.parametrize(
    ("main", "other", "blamed"),
    [
        ("host python_function train.py(9):~backward 18 167", "cpu_op MulBackward0", ("operator", "MulBackward0")),
        (
            "host python_function train.py(9):~backward 18 167",
            "user_annotation range",
            ("python", "train.py(9): backward"),
        ),
        ("", "user_annotation range", ("annotation", "range")),
    ],
)
def test_while_the_main_thread_waits_for_another_one_what_that_does_counts_if_it_says_more(
    main: str, other: str, blamed: tuple[str, str]
) -> None:
    category, name = other.split()
    trace = draw(f"""
    host   cuda_runtime  cudaLaunchKernel      2    4  correlation=1
    gpu0   kernel        forward              10   20  correlation=1 stream=7
    {main}
    host2  cuda_runtime  cudaLaunchKernel     25   10  correlation=2
    gpu0   kernel        backward             37    8  correlation=2 stream=7
    host2  {category}    {name}               50  130
    host   cuda_runtime  cudaLaunchKernel    190    4  correlation=3
    gpu0   kernel        step                196    4  correlation=3 stream=7
    """)
    assert (130.0, *blamed) in idle(trace)


def test_a_skewed_clock_is_shifted_for_attribution_and_nothing_else() -> None:
    straight = """
    host  cuda_runtime  cudaLaunchKernel   {}  4  correlation=1
    gpu0  kernel        first             10  10  correlation=1 stream=7
    host  cpu_op        aten::mm          {}  50
    host  cuda_runtime  cudaLaunchKernel  {}  10  correlation=2
    gpu0  kernel        second            82  18  correlation=2 stream=7
    """
    skewed = draw(straight.format(14, 20, 90))  # the host's clock is ahead: work starts before its launch
    assert device_step_times(skewed, 0).idle[0] == 62_000
    # Shifted by 9 us the first kernel runs from 19 to 29, the second starts at 91, inside its call.
    assert idle(skewed)[-3:] == [
        (41.0, "operator", "aten::mm"),
        (20.0, "unrecorded", ""),
        (1.0, "launch_call", "cudaLaunchKernel"),
    ]


def test_each_device_has_its_own_idle_time() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel  0   2  correlation=1
    host  cuda_runtime  cudaLaunchKernel  3   2  correlation=2
    gpu0  kernel        a                10  90  correlation=1 stream=7
    gpu1  kernel        b                50  50  correlation=2 stream=7
    gpu1  kernel        c               100  10  correlation=2 stream=7
    """)
    assert main_device(trace) == 1
    assert device_step_times(trace, 0).idle.tolist() == [20_000]
    assert device_step_times(trace, 1).idle.tolist() == [50_000]
    with pytest.raises(NotFoundError):
        device_step_times(trace, 5)


def test_a_stream_waits_for_another_one() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel      0  2  correlation=1
    host  cuda_runtime  cudaLaunchKernel      3  2  correlation=2
    host  cuda_runtime  cudaStreamWaitEvent   6  1  correlation=4
    host  cuda_runtime  cudaLaunchKernel      8  2  correlation=3
    gpu0  kernel        a                    10 10  correlation=1 stream=7
    gpu0  kernel        ncclAllReduce        12 88  correlation=2 stream=8
    gpu0  kernel        b                   102 10  correlation=3 stream=7
    """)
    assert idle(trace, stream=7)[-2:] == [
        (80.0, "waits_for_stream", "ncclAllReduce"),
        (2.0, "kernel_gap", "cudaLaunchKernel"),
    ]


def test_with_blocking_launches_every_launch_empties_the_queue() -> None:
    lines = []
    for i in range(12):
        lines.append(f"host cuda_runtime cudaLaunchKernel {i * 100} 40 correlation={i + 1}")
        lines.append(f"gpu0 kernel gemm {i * 100 + 5} 30 correlation={i + 1} stream=7")
    assert find_draining_calls(draw("\n".join(lines)))[1:] == ["cudaLaunchKernel"] * 12


def test_without_the_host_nothing_is_blamed_on_it() -> None:
    trace = draw("gpu0 kernel a 0 10 stream=7\ngpu0 kernel b 50 10 stream=7")
    assert idle(trace) == [(40.0, "unlinked", "b")]


@pytest.mark.parametrize("seed", range(40))
def test_laws_on_random_traces(seed: int) -> None:
    rng = random.Random(seed)
    number = 0
    lines = [f"host user_annotation ProfilerStep#{step} {step * 400} 400" for step in range(rng.choice([0, 3]))]
    for _ in range(60):
        number += 1
        at = rng.uniform(0, 1200)
        thread = rng.choice(["host", "host", "host2"])
        lines.append(f"{thread} cuda_runtime {rng.choice(['launch', 'cudaFree', 'cudaStreamSynchronize'])} "
                     f"{at:.3f} {rng.uniform(0, 20):.3f} correlation={number}")  # fmt: skip
        if rng.random() < 0.8:
            lines.append(
                f"gpu{rng.randrange(2)} {rng.choice(['kernel', 'kernel', 'gpu_memcpy'])} "
                f"{rng.choice(['gemm', 'nccl'])} {at + rng.uniform(-5, 200):.3f} {rng.uniform(0, 30):.3f} "
                f"correlation={number} stream={rng.randrange(7, 9)}"
            )
        lines.append(f"{thread} cpu_op aten::mm {rng.uniform(0, 1200):.3f} {rng.uniform(0, 90):.3f}")
    trace = draw("\n".join(lines))
    for device in (0, 1):
        idle(trace, device)
        for stream in np.unique([7, 8]).tolist():
            idle(trace, device, stream)
