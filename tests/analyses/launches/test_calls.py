from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.launches.calls import ApiCalls, api_calls, launch_calls, launch_pace
from torch_tb_profiler.analyses.shared.grouping import select_device_work
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.trace import Trace


def apis(trace: Trace, **limits: int) -> dict[str, ApiCalls]:
    """Return the statistics by name of the API, each with columns of one entry."""
    found = api_calls(trace, launch_calls(trace, rows_of_kind(trace, *DEVICE_KINDS)), **limits)
    columns = [getattr(found, field) for field in ApiCalls.__struct_fields__]
    return {
        trace.strings[trace.events.name[row]]: ApiCalls(*(column[i : i + 1] for column in columns))
        for i, row in enumerate(found.event.tolist())
    }


def test_a_call_its_work_and_the_delay_between() -> None:
    found = apis(
        draw("""
        host  cuda_runtime  cudaLaunchKernel   0  10  correlation=1
        host  cuda_runtime  cudaLaunchKernel  20   6  correlation=2
        host  cuda_runtime  cudaEventRecord   40   6  correlation=3
        gpu0  kernel        gemm              12   8  correlation=1 stream=7
        gpu0  kernel        gemm              25  90  correlation=2 stream=7
        gpu0  kernel        orphan           200  90  correlation=9 stream=7
        """)
    )
    assert found.keys() == {"cudaLaunchKernel"}
    api = found["cudaLaunchKernel"]
    assert (api.calls[0], api.items[0], api.call_ns[0], api.work_ns[0]) == (2, 2, 16_000, 98_000)
    assert api.delay_ns[0] == 2_000  # 12 - 10; the other starts inside its call
    assert (api.median_call[0], api.median_work[0], api.median_delay[0]) == (8_000, 49_000, 1_000)
    assert api.short[0] == 1


def test_outliers_are_set_by_parameters() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunchKernel    0  51  correlation=1
    host  cuda_runtime  cudaLaunchKernel  100  50  correlation=2
    gpu0  kernel        gemm              152  10  correlation=1 stream=7
    gpu0  kernel        gemm              250  10  correlation=2 stream=7
    """)
    api = apis(trace)["cudaLaunchKernel"]
    assert (api.slow[0], api.delayed[0], api.short[0]) == (
        1,
        1,
        1,
    )  # 51 > 50, 101 > 100; the slow call is not short
    api = apis(trace, slow_call_ns=51_000, long_delay_ns=101_000)["cudaLaunchKernel"]
    assert (api.slow[0], api.delayed[0], api.short[0]) == (0, 0, 2)


def test_the_items_of_a_graph_share_one_call() -> None:
    api = apis(
        draw("""
        host  cuda_runtime  cudaGraphLaunch  0  20  correlation=1
        gpu0  kernel        a               30   5  correlation=1 stream=7
        gpu0  kernel        b               36   5  correlation=1 stream=7
        gpu0  gpu_memset    c               42   5  correlation=1 stream=8
        """)
    )["cudaGraphLaunch"]
    assert (api.calls[0], api.items[0], api.work_ns[0], api.delay_ns[0]) == (1, 3, 15_000, 10_000)
    assert api.short[0] == 1


@pytest.mark.parametrize(
    ("category", "api", "work"),
    [
        ("cuda_driver", "cuLaunchKernelEx", "kernel"),
        ("hip_runtime", "hipExtModuleLaunchKernel", "kernel"),
        ("hip_runtime", "hipMemcpyWithStream", "gpu_memcpy"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "kernel"),
        ("mtia_runtime", "runFunction~-~job_prep_and_submit_for_execution", "mtia_ccp_events"),
    ],
)
def test_any_call_with_work_counts_whatever_its_vendor(category: str, api: str, work: str) -> None:
    found = apis(
        draw(f"""
        host  {category}  {api}   0  10  correlation=1
        gpu0  {work}      busy   15  20  correlation=1 stream=7
        """)
    )
    assert list(found) == [api.replace("~", " ")]


def test_work_is_chosen_by_the_step_of_its_launch_its_device_and_its_stream() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1   0  50
    host  user_annotation  ProfilerStep#2  50  50
    host  cuda_runtime     launch          10   2  correlation=1
    host  cuda_runtime     launch          60   2  correlation=2
    gpu0  kernel           late            55   5  correlation=1 stream=7
    gpu1  kernel           other           70   5  correlation=2 stream=8
    """)
    work = rows_of_kind(trace, *DEVICE_KINDS)
    assert select_device_work(trace, work).tolist() == [4, 5]
    assert select_device_work(trace, work, step="1").tolist() == [4]
    assert select_device_work(trace, work, device=1).tolist() == [5]
    assert select_device_work(trace, work, stream=7).tolist() == [4]


def test_the_pace_counts_each_call_once_in_order_of_its_start_on_its_thread() -> None:
    trace = draw("""
    host   cuda_runtime  cudaGraphLaunch   100  10  correlation=1
    host   cuda_runtime  cudaLaunchKernel  140  10  correlation=2
    host   cuda_runtime  cudaLaunchKernel    0  10  correlation=3
    host2  cuda_runtime  cudaLaunchKernel   30  10  correlation=4
    gpu0   kernel        first             120  10  correlation=1 stream=7
    gpu0   kernel        second            130  10  correlation=1 stream=7
    gpu0   kernel        third             140  10  correlation=1 stream=7
    gpu0   kernel        fourth            150  10  correlation=2 stream=7
    gpu0   kernel        early              12  10  correlation=3 stream=7
    gpu0   kernel        side               42  10  correlation=4 stream=8
    gpu0   kernel        orphan            200  10  correlation=9 stream=7
    """)
    pace = launch_pace(trace, 0)
    # 0 to 100 and 100 to 140 on one thread: the call of the other thread lies between, and counts for neither.
    assert (pace.launch_ns, pace.item_ns) == (70_000, 10_000)
