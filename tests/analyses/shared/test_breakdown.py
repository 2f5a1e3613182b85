from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.traces import draw, read
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, breakdown, missing_host_reason
from torch_tb_profiler.analyses.shared.utilization import utilizations
from torch_tb_profiler.model.calls.missing import NO_DEVICE_REASON
from torch_tb_profiler.model.trace import Trace


def times(trace: Trace, step: int = 0) -> dict[str, float]:
    """Return category -> us of a step, without those that have no time."""
    found = breakdown(trace)
    return {key: int(found.times[key][step]) / 1000 for key in CATEGORIES if found.times[key][step]}


def test_all_categories_in_order_of_priority() -> None:
    trace = draw(
        """
        host   user_annotation  ProfilerStep#1                                50  400
        host   cpu_op           enumerate(DataLoader)#_SingleProcess.__next__ 60  180
        host   cpu_op           aten::to                                     250   50
        host   cuda_runtime     cudaMemcpyAsync                              260   20  correlation=334
        host   cuda_runtime     cudaLaunchKernel                             300   20  correlation=335
        host   cuda_runtime     cudaMemsetAsync                              340   20  correlation=336
        gpu0   gpu_memcpy       Memcpy                                       280   40  correlation=334 stream=7
        gpu0   kernel           vol                                          320   15  correlation=335 stream=7
        gpu0   gpu_memset       Memset                                       360    5  correlation=336 stream=7
        """
    )
    assert times(trace) == {
        "kernel": 15,
        "memcpy": 40,
        "memset": 5,
        "runtime": 40,  # 260-280 and 340-360; 300-320 lies under the copy
        "dataloader": 180,
        "cpu_exec": 10,  # 250-260
        "other": 110,
    }


def test_a_fully_covered_step_counts_nothing_twice() -> None:
    trace = draw(
        """
        host  user_annotation  ProfilerStep#1  0 100
        host  cpu_op           op              0  50
        host  cuda_runtime     launch          0   5  correlation=1
        gpu0  kernel           k               0 100  correlation=1 stream=7
        gpu0  gpu_memcpy       m              10  40  correlation=2 stream=8
        """
    )
    assert times(trace) == {"kernel": 100}


def test_a_step_reaches_to_the_end_of_its_device_work() -> None:
    trace = draw(
        """
        host  user_annotation  ProfilerStep#1    0 100
        host  cuda_runtime     launch           90   5  correlation=1
        host  user_annotation  ProfilerStep#2  100 100
        host  cuda_runtime     launch          150   5  correlation=2
        gpu0  kernel           k1              120  60  correlation=1 stream=7
        gpu0  kernel           k2              180  40  correlation=2 stream=7
        """
    )
    found = breakdown(trace).steps
    assert found.names == ("1", "2")
    assert found.starts.tolist() == [0, 180_000]
    assert found.ends.tolist() == [180_000, 220_000]


def test_trailing_steps_without_their_device_work_are_incomplete() -> None:
    trace = draw(
        """
        host  user_annotation  ProfilerStep#1    0 100
        host  cuda_runtime     launch           10   5  correlation=1
        host  user_annotation  ProfilerStep#2  100 100
        host  cuda_runtime     launch          150   5  correlation=2
        gpu0  kernel           k1               20  60  correlation=1 stream=7
        """
    )
    assert breakdown(trace).steps.complete.tolist() == [True, False]


def test_without_steps_the_whole_trace_is_one() -> None:
    trace = draw(
        """
        host  cpu_op  a  10 20
        host  cpu_op  b  50 50
        host  Trace   PyTorch~Profiler~(0)  0 500
        """
    )
    found = breakdown(trace)
    assert not found.steps.recorded
    assert found.durations.tolist() == [90_000]
    assert times(trace) == {"cpu_exec": 70, "other": 20}


def test_steps_of_the_device_do_not_count() -> None:
    trace = draw(
        """
        host  user_annotation      ProfilerStep#1  0 100
        gpu0  gpu_user_annotation  ProfilerStep#1  5  90  stream=7
        """
    )
    assert breakdown(trace).steps.names == ("1",)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_Broadcast_RING_LL_Sum_int8_t",
        "rcclGenericKernel",
        "void~vllm::cross_device_reduce_1stage<__half,8>",
        "void~sglang::multimem_all_reduce",
    ],
)
def test_communication_kernels_of_any_library(name: str) -> None:
    trace = draw(
        f"""
        host  user_annotation  ProfilerStep#1     0 100
        host  user_annotation  nccl:all_reduce   10  20
        host  cuda_runtime     launch            15   5  correlation=1
        gpu0  kernel           {name}            40  30  correlation=1 stream=7
        gpu0  kernel           gemm              60  20  correlation=2 stream=8
        """
    )
    # The host side of a collective that launched a kernel is host time; the kernel is communication.
    assert times(trace) == {"kernel": 20, "communication": 20, "runtime": 5, "cpu_exec": 15, "other": 40}


def test_metadata_tells_communication_before_names() -> None:
    named = {"Collective name": "allreduce", "correlation": 1, "device": 0, "stream": 7}
    kernel = {"ph": "X", "cat": "kernel", "name": "my_own", "pid": 0, "tid": 7, "ts": 10, "dur": 5, "args": named}
    assert times(draw("host cpu_op op 0 10", kernel)) == {"communication": 5, "cpu_exec": 10}


def test_gloo_counts_by_its_time_on_the_host() -> None:
    trace = draw(
        """
        host   user_annotation  ProfilerStep#1    0 100
        host   cpu_op           aten::add        10  20
        host2  cpu_op           gloo:all_reduce  20  40
        """
    )
    assert times(trace) == {"communication": 40, "cpu_exec": 10, "other": 50}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "dataloader"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__init__", "cpu_exec"),  # begins workers, waits not
        ("enumerate(DataPipe)#Mapper", "dataloader"),
        ("my_enumerate(DataLoader)#x.__next__", "cpu_exec"),
    ],
)
def test_waiting_for_data_is_the_wait_for_the_next_batch(name: str, category: str) -> None:
    assert times(draw(f"host user_annotation {name} 0 100")) == {category: 100}


def test_what_was_not_recorded_is_unknown_not_zero() -> None:
    device_only = draw("gpu0 kernel k 0 10 stream=7")
    assert breakdown(device_only).unknown == dict.fromkeys(
        ("runtime", "dataloader", "cpu_exec"), missing_host_reason(device_only)
    )
    host_only = draw("host cpu_op a 0 10\nhost cuda_runtime cudaLaunchKernel 2 3")
    assert breakdown(host_only).unknown == dict.fromkeys(
        ("kernel", "memcpy", "memset", "communication"), NO_DEVICE_REASON
    )
    with_host = draw("host cpu_op gloo:all_reduce 0 10\nhost cuda_runtime cudaLaunchKernel 20 3")
    assert "communication" not in breakdown(with_host).unknown
    cpu = draw("host cpu_op a 0 10")
    assert breakdown(cpu).unknown == {}


def test_device_estimates() -> None:
    """The vector of the predecessor's own test: window 100..220 us."""
    rows = [
        (90, 20, 0.5, 0.0), (130, 5, 0.5, 0.6), (135, 5, 0.5, 0.6), (140, 5, 0.6, 0.6),
    ]  # fmt: skip
    kernels = [
        {
            "ph": "X", "cat": "Kernel", "name": "k", "pid": 1, "tid": 7, "ts": ts, "dur": dur,
            "args": {"device": 1, "stream": 7, "blocks per SM": blocks, "est. achieved occupancy %": 100 * occ},
        }
        for ts, dur, blocks, occ in rows
    ]  # fmt: skip
    trace = draw("host user_annotation ProfilerStep#1 100 120", *kernels)
    (found,) = utilizations(trace)
    assert found.utilization == pytest.approx((10 + 15) / 120)
    assert found.sm_efficiency == pytest.approx((0.5 * 10 + 0.5 * 5 + 0.5 * 5 + 0.6 * 5) / 120)
    assert found.achieved_occupancy == pytest.approx((0.6 * 15) / 25)


def test_estimates_that_were_not_recorded_are_none_with_a_reason() -> None:
    trace = draw(
        """
        host  user_annotation  ProfilerStep#1  0 100
        host  cpu_op           aten::mm        0  50
        host  hipLaunchKernel  x               0   1
        gpu2  kernel           Cijk_Ailk_MI16  10 30  stream=0
        """
    )
    (found,) = utilizations(trace)
    assert found.device.id == 2
    assert found.streams == 1
    assert found.sm_efficiency is None
    assert "blocks per SM" in found.unknown["sm_efficiency"]


KINDS = ["kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cpu_op", "user_annotation", "python_function"]
NAMES = [
    "a",
    "nccl:all_reduce",
    "ncclKernel",
    "enumerate(DataLoader)#x.__next__",
    "ProfilerStep#1",
    "ProfilerStep#2",
]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.sampled_from(NAMES),
            st.integers(0, 60),
            st.integers(-2, 40),
            st.integers(0, 3),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=25,
    )
)
def test_no_trace_for_which_the_breakdown_does_not_sum(events: list[tuple[str, str, int, int, int, int]]) -> None:
    objects: list[Any] = [
        {
            "ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start + 0.123, "dur": duration,
            "args": {"correlation": correlation, "device": 0, "stream": tid},
        }
        for cat, name, start, duration, correlation, tid in events
    ]  # fmt: skip
    found = breakdown(read(objects))
    total = np.sum([found.times[key] for key in CATEGORIES], axis=0)
    assert (total == found.durations).all()
    assert all((found.times[key] >= 0).all() for key in CATEGORIES)
