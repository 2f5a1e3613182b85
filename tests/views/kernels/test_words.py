"""The headline of the kernel table, and the traces that would make it false."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.kernels.build import build
from torch_tb_profiler.views.kernels.payload import KernelsParams, KernelsPayload

LAUNCH = "host cuda_runtime cudaLaunchKernel 0 1 correlation=9"
TENSOR = "gpu0 kernel ampere_fp16_s16816gemm_fp16_128x64 0 75 correlation=1"
PLAIN = "gpu0 kernel ampere_sgemm_64x64 80 25 correlation=2"
UNTOLD = "gpu0 kernel triton_poi_fused_add 200 25 correlation=3"


def payload(*lines: str, **params: str) -> KernelsPayload:
    device = {"id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0}
    trace = draw("\n".join([LAUNCH, *lines]), deviceProperties=[device])
    return build(trace, KernelsParams(**params))  # type: ignore[arg-type]


def says(*lines: str, **params: str) -> str:
    return plain(payload(*lines, **params).headline)


def test_the_kernel_with_the_most_time_is_named() -> None:
    assert says(TENSOR, PLAIN) == (
        "GEMM fp16 128x64, ampere takes 75% of the kernel time; 75% of all kernel time runs on Tensor Cores."
    )


def test_the_family_with_the_most_time_is_named() -> None:
    assert says(TENSOR, PLAIN, UNTOLD, group_by="family") == (
        "The family matrix product takes 80% of the kernel time; "
        "at least 60% of all kernel time runs on Tensor Cores."
    )


def test_names_that_do_not_tell_make_it_a_lower_bound() -> None:
    assert says(TENSOR, UNTOLD).endswith("; at least 75% of all kernel time runs on Tensor Cores.")


def test_nothing_is_said_of_tensor_cores_where_no_name_tells() -> None:
    assert says(UNTOLD) == "Triton add takes 100% of the kernel time."


def test_kernels_that_are_known_to_run_elsewhere_are_said_so() -> None:
    assert (
        says(PLAIN)
        == "GEMM fp32 64x64, ampere takes 100% of the kernel time; 0% of all kernel time runs on Tensor Cores."
    )


def test_filters_and_kernels_of_no_length() -> None:
    assert says(PLAIN, operator="nobody") == "No kernel matches."
    assert says("gpu0 kernel short 0 0 correlation=1") == "The kernels take no time."


def test_a_link_keeps_the_grouping() -> None:
    links = [phrase.link for phrase in payload(PLAIN, group_by="launch").headline if phrase.link]
    assert links == ["kernels?group_by=launch&select=ampere_sgemm_64x64+%7C++%7C++%7C++%7C++%7C+"]


def test_cores_are_called_as_the_maker_of_the_device_does() -> None:
    launch = "host cuda_runtime hipLaunchKernel 0 5 correlation=1"
    assert says(launch, TENSOR).endswith("of all kernel time runs on Matrix Cores.")
