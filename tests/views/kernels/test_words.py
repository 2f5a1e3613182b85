"""The headline of the kernel table, and the traces that would make it false."""

from __future__ import annotations

from typing import Any

from tests.support.traces import draw
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.kernels.build import build
from torch_tb_profiler.views.kernels.payload import KernelsParams, KernelsPayload

LAUNCH = "host cuda_runtime cudaLaunchKernel 0 1 correlation=9"
TENSOR = "gpu0 kernel ampere_fp16_s16816gemm_fp16_128x64 0 75 correlation=1"
PLAIN = "gpu0 kernel ampere_sgemm_64x64 80 25 correlation=2"
UNNAMED = "gpu0 kernel triton_poi_fused_add 200 25 correlation=3"


def payload(*lines: str, **params: Any) -> KernelsPayload:
    device = {"id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0}
    trace = draw("\n".join([LAUNCH, *lines]), deviceProperties=[device])
    return build(trace, KernelsParams(**params))


def headline_of(*lines: str, **params: Any) -> str:
    return plain(payload(*lines, **params).headline)


def test_the_kernel_with_the_most_time_is_named() -> None:
    assert headline_of(TENSOR, PLAIN) == (
        "GEMM fp16 128x64, ampere is the top kernel: 75% of kernel time. 75% of kernel time uses Tensor Cores."
    )


def test_the_family_with_the_most_time_is_named() -> None:
    assert headline_of(TENSOR, PLAIN, UNNAMED, group_by="family") == (
        "Matrix product is the top family: 80% of kernel time. At least 60% of kernel time uses Tensor Cores."
    )


def test_names_that_do_not_show_it_make_it_a_lower_bound() -> None:
    assert headline_of(TENSOR, UNNAMED).endswith(" At least 75% of kernel time uses Tensor Cores.")


def test_tensor_cores_are_left_out_where_no_name_shows_their_use() -> None:
    assert headline_of(UNNAMED) == "Triton add is the top kernel: 100% of kernel time."


def test_the_headline_says_where_no_kernel_uses_tensor_cores() -> None:
    assert (
        headline_of(PLAIN)
        == "GEMM fp32 64x64, ampere is the top kernel: 100% of kernel time. No kernel time uses Tensor Cores."
    )


def test_filters_and_kernels_of_no_length() -> None:
    assert headline_of(PLAIN, operator="nobody") == "No kernel matches the filters."
    assert headline_of("gpu0 kernel short 0 0 correlation=1") == "All kernels have zero duration."


def test_a_trace_of_copies_alone_has_no_filter_that_hides_kernels() -> None:
    trace = draw("gpu0 gpu_memcpy Memcpy~HtoD~(Pageable~->~Device) 0 10")
    assert plain(build(trace, KernelsParams()).headline) == "No kernels were recorded, only copies and memsets."
    assert plain(build(trace, KernelsParams(device=0)).headline) == "No kernel matches the filters."


def test_a_link_keeps_the_grouping() -> None:
    links = [phrase.link for phrase in payload(PLAIN, group_by="launch").headline if phrase.link]
    assert links == ["kernels?group_by=launch&select=ampere_sgemm_64x64+%7C++%7C++%7C++%7C++%7C+"]


def test_cores_are_called_as_the_maker_of_the_device_does() -> None:
    launch = "host cuda_runtime hipLaunchKernel 0 5 correlation=1"
    assert headline_of(launch, TENSOR).endswith("of kernel time uses Matrix Cores.")
