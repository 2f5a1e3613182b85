"""What of an operator's device time runs on Tensor Cores, and what does not tell."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.model.operators import operators

PICTURE = """
host  cpu_op        outer                       0  100
host  cuda_runtime  cudaLaunchKernel            5    5  correlation=1
host  cpu_op        inner                      20   50
host  cuda_runtime  cudaLaunchKernel           25    5  correlation=2
host  cuda_runtime  cudaLaunchKernel           35    5  correlation=3
gpu0  kernel        triton_poi_fused_0        100    7  correlation=1 stream=7
gpu0  kernel        ampere_s16816gemm         110   11  correlation=2 stream=7
gpu0  kernel        triton_poi_fused_1        130   13  correlation=3 stream=7
"""


def test_time_on_tensor_cores_and_of_unknown_kernels_is_separate() -> None:
    found = operators(draw(PICTURE))
    assert found.cores_self.tolist() == [0, 11_000]
    assert found.cores_total.tolist() == [11_000, 11_000]
    assert found.tc_unknown_self.tolist() == [7_000, 13_000]
    assert found.tc_unknown_total.tolist() == [20_000, 13_000]
    assert found.device_total.tolist() == [31_000, 24_000]


def test_an_operator_is_eligible_if_it_or_one_inside_uses_tensor_cores() -> None:
    assert operators(draw(PICTURE)).eligible.tolist() == [True, True]  # by what they launched
    plain = operators(draw("host cpu_op outer 0 50\nhost cpu_op aten::mm 5 10\nhost cpu_op aten::sin 20 10"))
    assert plain.eligible.tolist() == [True, True, False]  # by name


def test_runtime_calls_inside_one_another_count_once() -> None:
    found = operators(
        draw("""
        host  cpu_op        op                 0  100
        host  cuda_runtime  cudaLaunchKernel  10   20
        host  cuda_driver   cuLaunchKernel    12   10
        """)
    )
    assert found.host_self.tolist() == [80_000]


def test_a_chain_of_calls_of_one_name_is_one_call() -> None:
    """Only where the nested one is alone: two of them are two calls."""
    one = operators(draw("host cpu_op a 0 100\nhost cpu_op a 10 80\nhost cpu_op a 20 60\nhost cpu_op b 30 10"))
    assert (one.rows.tolist(), one.host_self.tolist()) == ([0, 3], [90_000, 10_000])
    two = operators(draw("host cpu_op a 0 100\nhost cpu_op a 10 20\nhost cpu_op a 40 20"))
    assert two.rows.tolist() == [0, 1, 2]


def test_device_time_reaches_every_operator_around_the_one_that_launched() -> None:
    """The deepest give theirs up first, however the file orders them; what stands alone keeps its own."""
    found = operators(
        draw("""
        host  cpu_op        alone             0   10
        host  cuda_runtime  cudaLaunchKernel  2    2  correlation=1
        host  cpu_op        a                20  100
        host  cpu_op        b                30   80
        host  cpu_op        c                40   60
        host  cpu_op        d                50   40
        host  cuda_runtime  cudaLaunchKernel 55    5  correlation=2
        host  cpu_op        e               101    5
        host  cuda_runtime  cudaLaunchKernel 102   2  correlation=3
        gpu0  kernel        k1              200    1  correlation=1 stream=7
        gpu0  kernel        k2              210   10  correlation=2 stream=7
        gpu0  kernel        k3              230  100  correlation=3 stream=7
        """)
    )
    names = ["alone", "a", "b", "c", "d", "e"]
    assert dict(zip(names, found.device_self.tolist(), strict=True)) == {
        "alone": 1_000, "a": 0, "b": 0, "c": 0, "d": 10_000, "e": 100_000,
    }  # fmt: skip
    assert dict(zip(names, found.device_total.tolist(), strict=True)) == {
        "alone": 1_000, "a": 110_000, "b": 110_000, "c": 10_000, "d": 10_000, "e": 100_000,
    }  # fmt: skip
