"""What the name of a kernel tells of Tensor Cores and matrix cores, and where it tells nothing."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.tensor_cores import NO, UNKNOWN, YES, uses_tensor_cores

HOSTS = {
    "CUDA": "host cuda_runtime cudaLaunchKernel 0 1",
    "ROCm": "host cuda_runtime hipLaunchKernel 0 1",
    "XPU": "host xpu_runtime urEnqueueKernelLaunch 0 1",
}


def uses(vendor: str, kernel: str, category: str = "kernel") -> int:
    trace = draw(f"{HOSTS[vendor]}\ngpu0 {category} {kernel} 10 5 stream=7")
    return int(uses_tensor_cores(trace)[1])


@pytest.mark.parametrize(
    ("vendor", "kernel", "answer"),
    [
        ("CUDA", "ampere_fp16_s16816gemm_fp16_128x64_ldg8", YES),
        ("CUDA", "ampere_sgemm_128x64_nn", NO),
        ("CUDA", "nvjet_tst_128x256_64x4", YES),
        ("CUDA", "triton_poi_fused_add_0", UNKNOWN),  # its compiler chose and did not say
        ("CUDA", "triton_tem_fused_mm_s16816_0", YES),  # what is said counts
        ("ROCm", "Cijk_Ailk_Bljk_HHS_BH_MT64x64x32_MI16x16x16x1_SN", YES),
        ("ROCm", "Cijk_Ailk_Bljk_SB_MT64x64x8_SN", UNKNOWN),
        ("ROCm", "void~at::native::vectorized_elementwise_kernel", NO),
        ("XPU", "gemm_kernel_s16816", UNKNOWN),  # such names mean nothing on other devices
    ],
)
def test_the_name_of_a_kernel_tells(vendor: str, kernel: str, answer: int) -> None:
    assert uses(vendor, kernel) == answer


def test_copies_use_none() -> None:
    assert uses("CUDA", "Memcpy~s16816", "gpu_memcpy") == NO
