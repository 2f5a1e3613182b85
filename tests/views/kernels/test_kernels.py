from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import parse_params
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
    assert "ProfilerActivity" in (kernels.unavailable(draw("host  cpu_op  op  0  1")) or "")
