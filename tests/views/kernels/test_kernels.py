from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import parse_params
from torch_tb_profiler.views._shared.availability import kernels_reason
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.kernels import build as kernels
from torch_tb_profiler.views.kernels.build import build_instances
from torch_tb_profiler.views.kernels.payload import KernelRowParams, KernelsParams, KernelsPayload

PICTURE = """
host  cpu_op        aten::mm   0   50
host  cuda_runtime  launch     5    5   correlation=1
host  cuda_runtime  launch    15    5   correlation=2
host  cpu_op        aten::add 60   20
host  cuda_runtime  launch    65    5   correlation=3
gpu0  kernel        gemm      10   30   correlation=1 device=0 stream=7 grid=[4,1,1] block=[128,1,1]
gpu0  kernel        gemm      50   10   correlation=2 device=0 stream=7 grid=[8,1,1] block=[128,1,1]
gpu1  kernel        gemm      70   20   correlation=3 device=1 stream=9 grid=[4,1,1] block=[128,1,1]
gpu0  gpu_memcpy    copy     100    2   device=0 stream=7 bytes=4000
gpu0  gpu_memcpy    copy     110    2   device=0 stream=7 bytes=6000
gpu0  gpu_memset    fill     120    1   device=0 stream=7
"""


def table(trace: Trace, **params: str) -> KernelsPayload:
    return kernels.build(trace, parse_params(KernelsParams, params))


def test_durations_by_name() -> None:
    (row,) = table(draw(PICTURE)).rows
    assert (row.calls, row.total_ns, row.mean_ns, row.median_ns) == (3, 60_000, 20_000, 20_000)
    assert (row.max_ns, row.min_ns, row.p95_ns) == (30_000, 10_000, 29_000)
    assert (row.mean_blocks_per_sm, row.mean_occupancy, row.operator) == (None, None, None)


def test_by_launch_every_parameter_tells_rows_apart() -> None:
    found = table(draw(PICTURE), group_by="launch").rows
    assert [(row.operator, row.grid, row.total_ns) for row in found] == [
        ("aten::mm", "[4,1,1]", 30_000),
        ("aten::add", "[4,1,1]", 20_000),
        ("aten::mm", "[8,1,1]", 10_000),
    ]


FAMILIES = """
host  cuda_runtime  cudaLaunchKernel                    0   1  correlation=9
gpu0  kernel        ampere_fp16_s16816gemm_fp16_128x64  0  70  correlation=1
gpu0  kernel        ampere_sgemm_64x64                 80  20  correlation=2
gpu0  kernel        ampere_fp16_s16816gemm_fp16_64x64 100   5  correlation=3
gpu0  kernel        softmax_warp_forward              110   5  correlation=4
gpu0  gpu_memcpy    copy                              120   2  bytes=4000
"""


def test_rows_of_families_sum_their_kernels_up_and_say_nothing_where_these_differ() -> None:
    found = table(draw(FAMILIES), group_by="family")
    assert [(row.name, row.short_name, row.family, row.calls, row.total_ns) for row in found.rows] == [
        ("matrix product", "matrix product", "matrix product", 3, 95_000),
        ("softmax", "softmax", "softmax", 1, 5_000),
    ]
    # Two of the three products run on Tensor Cores.
    assert [row.tc_used for row in found.rows] == [None, False]
    assert found.rows[0].tc_reason == "its kernels differ"
    summed = {each.family: (each.calls, each.total_ns) for each in found.families}
    assert {row.name: (row.calls, row.total_ns) for row in found.rows} == {
        family: sums for family, sums in summed.items() if family != "memory"
    }
    assert found.total_ns == sum(row.total_ns for row in found.rows)
    assert "the kernels of each family differ" in plain(found.reasons["limiter"])


def test_a_family_of_which_all_kernels_agree_says_so() -> None:
    lines = FAMILIES.replace("ampere_sgemm_64x64                ", "ampere_fp16_s16816gemm_fp16_256x64")
    found = table(draw(lines), group_by="family").rows[0]
    assert (found.tc_used, found.tc_reason) == (True, "the names of all its kernels agree")


def test_the_durations_of_a_family_are_of_all_of_its_launches() -> None:
    trace = draw(FAMILIES)
    row = table(trace, group_by="family").rows[0]
    assert build_instances(trace, KernelRowParams(row.event, "family")).calls == 3


def test_filters() -> None:
    trace = draw(PICTURE)
    assert table(trace, device="1").total_ns == 20_000
    assert table(trace, stream="7").total_ns == 40_000
    assert table(trace, operator="aten::mm").total_ns == 40_000
    assert [(s.device, s.stream, s.calls) for s in table(trace).streams] == [(0, 7, 5), (1, 9, 1)]


def test_a_family_filters_the_rows_and_another_can_be_chosen_instead() -> None:
    found = table(draw(PICTURE), family="matrix product")
    assert [row.family for row in found.rows] == ["matrix product"]
    assert found.memory_operations == []
    assert [family.family for family in found.families] == ["matrix product", "memory"]
    assert table(draw(PICTURE), family="norm").rows == []


def test_copies_have_a_bandwidth_where_their_bytes_are_known() -> None:
    copy, fill = table(draw(PICTURE)).memory_operations
    assert (copy.kind, copy.calls, copy.bytes, copy.bandwidth) == ("memcpy", 2, 10_000, 2.5e9)
    assert (fill.kind, fill.bytes, fill.bandwidth) == ("memset", None, None)


def test_blocks_and_occupancy_are_weighted_by_duration() -> None:
    more = "device=0 stream=7 blocks per SM={} est. achieved occupancy %={}"
    trace = draw(
        f"gpu0  kernel  k   0  30  {more.format(1.0, 50)}\ngpu0  kernel  k  40  10  {more.format(5.0, 90)}\n"
        "gpu0  kernel  k  60  99  device=0 stream=7"
    )
    (row,) = table(trace).rows
    assert row.mean_blocks_per_sm == 2.0
    assert row.mean_occupancy == pytest.approx(0.6)


def test_the_tightest_resource_limits_the_occupancy() -> None:
    properties = [
        {
            "id": 0,
            "maxThreadsPerMultiprocessor": 2048,
            "regsPerMultiprocessor": 65536,
            "sharedMemPerMultiprocessor": 65536,
        }
    ]
    lines = [
        "gpu0  kernel  threads    0  1  block=[1024,1,1] registers per thread=16 shared memory=0 blocks per SM=40",
        "gpu0  kernel  registers 10  1  block=[256,1,1] registers per thread=200 shared memory=0 blocks per SM=40",
        "gpu0  kernel  shared  20  1  block=[64,1,1] registers per thread=16 shared memory=40000 blocks per SM=9",
        "gpu0  kernel  grid      30  1  block=[64,1,1] registers per thread=16 shared memory=0 blocks per SM=0.5",
        "gpu0  kernel  unknown   40  1  stream=7",
    ]
    found = {row.name: row.limiter for row in table(draw("\n".join(lines), deviceProperties=properties)).rows}
    assert found == {
        "threads": "threads",
        "registers": "registers",
        "shared": "shared memory",
        "grid": "grid",
        "unknown": None,
    }


def test_durations_of_a_row() -> None:
    trace = draw(PICTURE)
    (row,) = table(trace).rows
    assert build_instances(trace, KernelRowParams(row.event)).calls == 3
    copy = table(trace).memory_operations[0]
    assert build_instances(trace, KernelRowParams(copy.event)).calls == 2
    with pytest.raises(NotFoundError):
        build_instances(trace, KernelRowParams(0))


def test_a_trace_without_device_work_says_what_to_record() -> None:
    assert "ProfilerActivity" in (kernels_reason(draw("host  cpu_op  op  0  1")) or "")
