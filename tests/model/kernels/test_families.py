"""The family of a kernel by its name, and of device work in a trace."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.kernels.families import FAMILIES, NO_FAMILY, family_codes, family_of_name
from torch_tb_profiler.model.kernels.short_names import short_kernel_names

NAMES = """
index and embedding | void at::native::(anonymous namespace)::compute_grad_weight<c10::BFloat16, long>(long const*)
index and embedding | void at::native::(anonymous namespace)::krn_partial_segment_offset<long>(long*, long const*)
attention | void cudnn::fusion::compute_dot_do_o_specialized<true, 64>(void const*, void const*)
attention | void cudnn::fusion::convert_dq_to_16bits<true>(void const*, void*, unsigned int)
convolution | void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<gemm>
matrix product      | ampere_sgemm_64x64_nn
matrix product      | fc
matrix product      | addmm
norm                | vector_norm
attention           | sage_fwd
elementwise         | add
matrix product      | void cublasLt::splitKreduce_kernel<32>(x)
convolution         | void cudnn::cnn::wgrad_alg0_engine<float>(x)
convolution         | volta_fp16_s884cudnn_fp16_128x128_nhwc2nchw_tn_v1
attention           | void flash::flash_bwd_dot_do_o_kernel<x>(y)
norm                | void at::native::vectorized_layer_norm_kernel<float>(x)
norm                | triton_red_fused_add_native_layer_norm_4
softmax             | void softmax_warp_forward<float>(x)
reduction           | void at::native::max_pool_forward_nchw<float>(x)
elementwise         | void at::native::elementwise_kernel<128, gpu_kernel_impl_nocast<CUDAFunctor_add<float>>>(x)
elementwise         | void at::native::unrolled_elementwise_kernel<Fill, std::array<char*>, LoadWithCast<1>>(x)
elementwise         | void vllm::rotary_embedding_kernel<float>(x)
copy and cast       | void at::native::unrolled_elementwise_kernel<direct_copy_kernel_cuda(x)>(x)
copy and cast       | triton_poi_fused_clone_transpose_3
index and embedding | void split_embedding_codegen_forward_kernel<float>(x)
index and embedding | void fbgemm_gpu::permute_2D_data_kernel<int>(x)
random              | void at::native::fused_dropout_kernel_vec<float>(x)
optimizer           | void multi_tensor_apply_kernel<AdamFunctor<float>>(x)
communication       | ncclDevKernel_SendRecv(ncclDevComm*)
memory              | __amd_rocclr_fillBufferAligned.kd
norm                | norm
copy and cast       | cat
index and embedding | jagged_to_padded_dense
reduction           | sum
elementwise         | masked_fill_
optimizer           | rowwise_adagrad
other               | my_sum
other               | merge
other               | my_kernel
other               | addition_table
other               | message_forward
"""


@pytest.mark.parametrize(("family", "name"), [line.split(" | ") for line in NAMES.strip().splitlines()])
def test_a_name_has_a_family(family: str, name: str) -> None:
    assert family_of_name(name) == family.strip()


def test_device_work_has_a_family_and_nothing_else_has() -> None:
    trace = draw("""
    host  cpu_op        aten::mm                       0   10
    gpu0  kernel        ampere_sgemm_64x64_nn         10    5  stream=7
    gpu0  gpu_memcpy    Memcpy~HtoD                   20    5  stream=7
    gpu0  gpu_memset    Memset~(Device)               30    5  stream=7
    gpu0  kernel        my_reduce                     40    5  stream=7 Collective~name=allreduce
    """)
    found = [FAMILIES[number] if number != NO_FAMILY else None for number in family_codes(trace).tolist()]
    assert found[:4] == [None, "matrix product", "memory", "memory"]
    assert short_kernel_names(trace)["ampere_sgemm_64x64_nn"] == "GEMM fp32 64x64 nn, ampere"
