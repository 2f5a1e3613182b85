"""The headline of the operator table, and the traces that would make it false."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.operators.build import build
from torch_tb_profiler.views.operators.payload import OperatorsParams

HOST = """
    host  cpu_op  aten::mm    0   60
    host  cpu_op  aten::add  60   25
    host  cpu_op  aten::sum  85   15
"""


def headline_text(picture: str, params: OperatorsParams | None = None) -> str:
    device = {"id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0}
    trace = draw(picture, deviceProperties=[device])
    return plain(build(trace, params or OperatorsParams()).headline)


def test_one_operator_is_named_where_it_takes_most_of_the_host_time() -> None:
    assert headline_text(HOST) == "mm is the top operator: 60% of operator host time."


def test_more_are_named_until_they_take_most_but_never_more_than_three() -> None:
    assert headline_text(HOST.replace("0   60", "0   59")).startswith("mm and add are the top operators: ")
    even = "\n".join(f"host cpu_op aten::op{i} {i * 10} 10" for i in range(10))
    assert headline_text(even) == "op0, op1 and op2 are the top operators: 30% of operator host time."


def test_device_time_counts_where_there_is_some() -> None:
    launched = """
        host  cpu_op        aten::mm          0   10   External id=1
        host  cuda_runtime  cudaLaunchKernel  1    2   correlation=1
        host  cpu_op        aten::item       20   80
        gpu0  kernel        gemm             10   30   correlation=1
    """
    assert headline_text(launched).startswith("mm is the top operator: 100% of operator GPU time.")


def test_the_share_on_tensor_cores_is_given_as_far_as_kernel_names_tell() -> None:
    launch = """
        host  cpu_op        aten::mm          0   10
        host  cuda_runtime  cudaLaunchKernel  1    2   correlation=1
    """
    known = "gpu0 kernel ampere_fp16_s16816gemm_fp16_128x64 10 30 correlation=1"
    assert headline_text(launch + known).endswith(" 100% of the eligible GPU time uses Tensor Cores.")
    unclear = "gpu0 kernel triton_mm 10 30 correlation=1"
    assert "Tensor Cores" not in headline_text(launch + unclear)
    other = """
        host  cpu_op        aten::bmm        20   10
        host  cuda_runtime  cudaLaunchKernel 21    2   correlation=2
        gpu0  kernel        triton_bmm       50   30   correlation=2
    """
    assert headline_text(launch + known + other).endswith(
        " At least 50% of the eligible GPU time uses Tensor Cores."
    )
    assert "Tensor Cores" not in headline_text(launch + "gpu0 kernel ampere_sgemm 10 30 correlation=1" + other)
    simt = headline_text(launch + "gpu0 kernel ampere_sgemm 10 30 correlation=1")
    assert simt.endswith(" None of the eligible GPU time uses Tensor Cores.")


def test_a_filter_that_leaves_nothing_says_so_and_a_link_keeps_the_filters() -> None:
    assert headline_text(HOST, OperatorsParams(kernel="none")) == "No operator took any time."
    links = [phrase.link for phrase in build(draw(HOST), OperatorsParams(phase="forward")).headline if phrase.link]
    assert links == ["operators?phase=forward&select=aten%3A%3Amm"]
