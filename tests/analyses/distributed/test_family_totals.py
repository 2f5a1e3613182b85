"""The device work of a rank by family."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.rank_summary import kernel_family_totals


def test_families_sum_to_all_device_work_and_name_their_largest_kernel() -> None:
    trace = draw("""
    gpu0  kernel      volta_sgemm_64x64_nn                          0  50  stream=7
    gpu0  kernel      volta_sgemm_128x128_nn                       50  30  stream=7
    gpu0  kernel      volta_sgemm_128x128_nn                       80  30  stream=7
    gpu0  kernel      ncclDevKernel_AllReduce_Sum_f32_RING_LL      90  90  stream=20
    gpu0  gpu_memcpy  Memcpy~HtoD                                 200   5  stream=7
    host  cpu_op      aten::mm                                      0  500
    """)
    found = kernel_family_totals(trace)
    assert [(each.family, each.calls, each.time) for each in found] == [
        ("matrix product", 3, 110_000),
        ("communication", 1, 90_000),
        ("memory", 1, 5_000),
    ]
    assert (found[0].kernel, found[0].kernel_time) == ("GEMM fp32 128x128 nn, volta", 60_000)
    assert (found[2].kernel, found[2].kernel_time) == ("Memcpy HtoD", 5_000)


def test_a_rank_without_a_device_has_no_families() -> None:
    assert kernel_family_totals(draw("host cpu_op aten::mm 0 10")) == ()
