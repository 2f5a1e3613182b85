"""Which kernels use Tensor Cores (or AMD's matrix cores), and which operators could."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.kinds import Kind, kinds
from torch_tb_profiler.model.trace import Bool, Trace, derived, name_mask

YES, NO, UNKNOWN = 1, 0, -1

# Volta to Ampere name the instruction's shape; Hopper and Blackwell kernels name the library or the
# instruction; AMD's Tensile names the MFMA instruction after MI or a tile.
_USES = re.compile(
    r"h884|s884|h1688|s1688|c1688|hmma|imma|i8816|i16832|s16816|16816|161616|tensorop|"
    r"dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|direct_group|"
    r"xmma_(?:implicit_gemm|sparse_conv|warp_specialized_implicit_gemm|gemm|sparse_gemm)|"
    r"wgmma|gmma|utcmma|tcgen05|nvjet|sm(?:90|100|103|120)_xmma|cutlass.*sm(?:90|100|103|120)|cutlass3x|"
    r"flash_(?:fwd|bwd)|fmha_(?:cutlass|fwd|bwd|v2|sm)|cudnn_generated_fort_native_sdpa|"
    r"^bmm_(?:bfloat16|fp16|e[2345]m\d|mxe)|fmhasm\d|"
    r"mfma|^cijk_.*_mi\d|ck_tile|_wmma",
    re.IGNORECASE,
)
# Compilers choose the instruction per kernel and do not say so in the name.
_CANNOT_TELL = re.compile(r"^triton_|triton|^cijk_|^_?matmul_kernel|deep_gemm|_gemm_kernel|mega_", re.IGNORECASE)

ELIGIBLE = frozenset(
    """aten::_convolution aten::conv1d aten::conv2d aten::conv3d aten::conv_tbc aten::conv_transpose1d
    aten::conv_transpose2d aten::conv_transpose3d aten::convolution aten::cudnn_convolution
    aten::cudnn_convolution_transpose aten::prelu aten::addmm aten::addmv aten::addr aten::matmul aten::mm
    aten::mv aten::linear aten::addbmm aten::baddbmm aten::bmm aten::chain_matmul aten::linalg_multi_dot
    aten::_thnn_fused_lstm_cell aten::_thnn_fused_gru_cell aten::lstm_cell aten::gru_cell
    aten::rnn_tanh_cell aten::rnn_relu_cell CudnnConvolutionBackward BmmBackward0
    aten::cudnn_convolution_transpose_backward CudnnConvolutionTransposeBackward MmBackward
    aten::cudnn_convolution_backward_weight aten::addmm_ AddmvBackward MvBackward
    aten::cudnn_convolution_transpose_backward_weight aten::cudnn_convolution_transpose_backward_input
    AddmmBackward aten::cudnn_convolution_backward_input AddbmmBackward aten::cudnn_convolution_backward
    aten::miopen_convolution aten::miopen_convolution_backward aten::convolution_backward
    aten::_convolution_mode aten::einsum aten::_scaled_mm aten::_grouped_mm aten::_scaled_grouped_mm
    aten::_addmm_activation aten::scaled_dot_product_attention aten::_scaled_dot_product_flash_attention
    aten::_scaled_dot_product_efficient_attention aten::_scaled_dot_product_cudnn_attention
    aten::_scaled_dot_product_flash_attention_backward aten::_scaled_dot_product_efficient_attention_backward
    aten::_scaled_dot_product_cudnn_attention_backward aten::_flash_attention_forward
    aten::_flash_attention_backward aten::_efficient_attention_forward aten::_efficient_attention_backward
    ConvolutionBackward0 MmBackward0 AddmmBackward0 AddmvBackward0 MvBackward0 BaddbmmBackward0
    AddbmmBackward0 CudnnConvolutionBackward0 MiopenConvolutionBackward0 LinearBackward0
    ScaledDotProductFlashAttentionBackward0 ScaledDotProductEfficientAttentionBackward0
    ScaledDotProductCudnnAttentionBackward0""".split()
)
"""Operators that run on Tensor Cores when dtype and shape allow it."""


@derived
def uses_tensor_cores(trace: Trace) -> npt.NDArray[np.int8]:
    """int8[n]: YES, NO or UNKNOWN for kernels, NO elsewhere; inferred from the kernel's name."""
    matrix_device = device_kind(trace) in ("CUDA", "ROCm")
    by_name = np.array([_by_name(text, matrix_device) for text in trace.strings] + [UNKNOWN], np.int8)
    kernel = kinds(trace) == Kind.KERNEL
    return np.where(kernel, by_name[trace.events.name], NO).astype(np.int8)


def _by_name(name: str, matrix_device: bool) -> int:
    if not matrix_device:
        return UNKNOWN
    if _USES.search(name):
        return YES
    return UNKNOWN if _CANNOT_TELL.search(name) else NO


@derived
def eligible_operators(trace: Trace) -> Bool:
    """bool[n]: operators that could use Tensor Cores, by name."""
    by_name = name_mask(trace.strings, ELIGIBLE.__contains__)
    eligible: Bool = (kinds(trace) == Kind.CPU_OP) & by_name[trace.events.name]
    return eligible
