"""What the name of a kernel tells of Tensor Cores and matrix cores, and where it tells nothing."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.kernels.tensor_cores import (
    TC_NO,
    TC_UNKNOWN,
    TC_YES,
    tensor_core_verdict,
    uses_tensor_cores,
)

HOSTS = {
    "CUDA": "host cuda_runtime cudaLaunchKernel 0 1",
    "ROCm": "host cuda_runtime hipLaunchKernel 0 1",
    "XPU": "host xpu_runtime urEnqueueKernelLaunch 0 1",
}


def uses(vendor: str, kernel: str, category: str = "kernel") -> int:
    trace = draw(f"{HOSTS[vendor]}\ngpu0 {category} {kernel} 10 5 stream=7")
    return int(uses_tensor_cores(trace)[1])


NAMES = """
UNKNOWN XPU gemm_kernel_s16816
UNKNOWN CUDA triton_poi_fused_add_0
YES     CUDA triton_tem_fused_mm_s16816_0
NO      ROCm void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)
YES     ROCm attn_fwd
UNKNOWN CUDA attn_fwd
YES     CUDA nvjet_tst_128x256_64x4
UNKNOWN CUDA wvSplitK_hf_sml_
NO      CUDA ampere_sgemm_128x64_nn
NO      CUDA void cublasLt::splitKreduce_kernel<32, 16, int, __half>(x)
UNKNOWN ROCm batched_gemm_kernel
YES     CUDA sm80_xmma_gemm_bf16f32_bf16f32_f32_nn_n_tilesize128x128x32_tensor16x8x16_execute_kernel__5x_cublas
NO      CUDA sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_ffma_aligna4_alignc4_execute_kernel__5x_cublas
YES     CUDA sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_tensor16x8x16
YES     CUDA sm80_xmma_dgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tensor16x8x8_kernel
YES     CUDA sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tensor16x8x8_kernel
YES     CUDA volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc2nchw_tn_v1
YES     CUDA turing_h1688gemm_128x128_ldg8_stages_32x1_nn
NO      CUDA volta_hgemm_128x64_nn
NO      CUDA void flash::flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<64,128>>(flash::Flash_bwd_params)
NO      CUDA void flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd>(x)
NO      CUDA void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd>(x)
YES     CUDA void flash::flash_fwd_splitkv_kernel<Flash_fwd>(x)
YES     CUDA void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<x>(y)
YES     CUDA void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<x>>>(y)
NO      CUDA void cutlass::device_kernel<flash::FlashAttnFwdCombine<x>>(y)
NO      CUDA void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<x>>(y)
YES     CUDA void cutlass::device_kernel<kernel::GemmUniversal<MainloopSm90TmaGmmaWarpSpecialized<4>>>(Params)
YES     CUDA void marlin::Marlin<half, 256, 1, 8, 8, 4, 8>(int4 const*)
NO      CUDA void marlin::gptq_marlin_repack_kernel<256, 4, false>(unsigned)
YES     CUDA void flashinfer::BatchPrefillWithPagedKVCacheKernel<x>(y)
NO      CUDA void flashinfer::BatchDecodeWithPagedKVCacheKernel<x>(y)
YES     ROCm Custom_Cijk_Alik_Bljk_F8BS_BH_Bias_shortname0_gfx942
YES     ROCm void ck::kernel_moe_gemm<ck::GridwiseMoeGemm<x>>(y)
YES     ROCm igemm_fwd_gtcx3_nhwc_fp32_bx0
YES     ROCm void ck::tensor_operation::device::kernel_gemm_xdl_cshuffle_v1<x>(y)
NO      ROCm SubTensorOpWithScalar1d
NO      ROCm _ZN7ck_tile6kentryILi2ENS_16MoeSortingKernelI
NO      ROCm _ZN7ck_tile6kentryILi1ENS_14Layernorm2dFwdI
YES     ROCm _ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelI
NO      ROCm _ZN7ck_tile6kentryILi2ENS_27FmhaFwdSplitKVCombineKernelI
UNKNOWN CUDA _fwd_kernel_triton
UNKNOWN CUDA fused_moe_kernel
UNKNOWN CUDA triton_tem_fused_mm_0
UNKNOWN ROCm Cijk_Ailk_Bljk_SB_MT64x64x8_SN
YES     CUDA cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64
NO      CUDA void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(x)
YES     CUDA ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_nn
YES     CUDA ampere_s1688tf32gemm_x
YES     CUDA cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x64_4x1x1_kernel0_0
YES     CUDA fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_128_sm80_kernel_nl
NO      CUDA fmha_cutlassF_f32_aligned_64x64_rf_sm75(x)
YES     CUDA fmha_cutlassF_f16_aligned_64x64_rf_sm75(x)
YES     CUDA void deep_gemm::sm90_fp8_gemm_1d2d_impl<x>(y)
YES     CUDA ampere_h16816gemm_256x128_ldg8_stages_32x3_tn
YES     CUDA void cask::xmma_hmma_kernel
YES     CUDA turing_int8_i8816cudnn_int8_256x128_ldg16_relu_small_t1r1s1
NO      CUDA maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt
YES     CUDA ampere_d884gemm_64x64_nn
NO      CUDA miopenGcnAsmConv1x1U
"""
VERDICTS = {"YES": TC_YES, "NO": TC_NO, "UNKNOWN": TC_UNKNOWN}


@pytest.mark.parametrize(
    ("answer", "vendor", "kernel"), [line.split(None, 2) for line in NAMES.strip().splitlines()]
)
def test_the_verdict_follows_from_the_name_of_a_kernel(vendor: str, kernel: str, answer: str) -> None:
    assert tensor_core_verdict(kernel, vendor)[0] == VERDICTS[answer]


def test_a_trace_has_the_verdicts_of_its_names() -> None:
    assert uses("CUDA", "ampere_fp16_s16816gemm_fp16_128x64_ldg8") == TC_YES
    assert uses("XPU", "gemm_kernel_s16816") == TC_UNKNOWN  # such names mean nothing on other devices
    assert uses("ROCm", "Cijk_Ailk_Bljk_HHS_BH_MT64x64x32_MI16x16x16x1_SN") == TC_YES


def test_copies_use_no_tensor_cores() -> None:
    assert uses("CUDA", "Memcpy~s16816", "gpu_memcpy") == TC_NO
