"""Which kernels use Tensor Cores (or AMD's matrix cores), and which operators could, by their names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.base.patterns import AnyCase
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.kernels.families import family_of_name
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kinds import Kind, event_kinds, events_of_kind
from torch_tb_profiler.model.trace import Bool, Int32, Trace, distinct_codes, name_mask

TC_YES, TC_NO, TC_UNKNOWN = 1, 0, -1

_VERDICT_BY_REASON: dict[str, int] = {
    "the name carries the instruction": TC_YES,
    "a library that has only such kernels": TC_YES,
    "the main kernel of a fused attention": TC_YES,
    "the name says vector instructions": TC_NO,
    "work without a matrix product": TC_NO,
    "before or after the product, not the product": TC_NO,
    "a compiled kernel whose name doesn't show it": TC_UNKNOWN,
    "the name doesn't show it": TC_UNKNOWN,
    "names don't show it on this device": TC_UNKNOWN,
}
"""The verdict by its reason."""

# The instruction in a name is stronger evidence than the purpose of the kernel, so these rules come first.
_INSTRUCTION_RULES = tuple(
    (why, AnyCase(pattern))
    for why, pattern in (
        # Parts of attention and of split products that only move, convert, or sum, whatever else is in their name.
        (
            "before or after the product, not the product",
            r"combine(?!d)|convert_?d?q|dot_do_o|dotdoo|ograddoto|convertqgrad|clear_dk|bwdpreprocess|bwdpostprocess|mergestates|"
            r"merge_attn|repack|permute_cols|paged_attention_\w*reduce|splitk_?reduce|reducesplitk|reduce_1block",
        ),
        (
            "the name says vector instructions",
            r"ffma(?<![a-z]ffma)(?![a-z])|simt(?<![a-z]simt)(?![a-z])|opclasssimt|_dl_|gtcn\d|gcnasmconv|winograd_nonfused|"
            r"fmha_cutlass[fb]_(?:f32_\w*_sm[567]|\w*_sm5)\d|batchdecodewith|singledecodewith|paged_attention_v\d_kernel",
        ),
        (
            # Volta to Ampere spell the shape (s884, h16816, tensor16x8x8, s64x128x16gemm) or the class (tensorop,
            # wmma); Hopper and Blackwell the unit; AMD the MFMA or WMMA instruction, Tensile's after MI.
            "the name carries the instruction",
            r"(?<![a-z0-9])[shdicb](?:884|1688|16816|16832|16864|8816|8832|161616|32816|83216)(?!\d)|"
            r"tensor\d+x\d+x\d+|(?<![a-z0-9])[shdi]\d+x\d+x\d+(?:gemm|fprop|dgrad|wgrad)|"
            r"(?<![a-z])tensorop(?![a-z])|opclasstensorop|mmatensorop|"
            r"(?<![a-z])(?:[hidqb]mma|wgmma|[hiq]?gmma|umma|utc[a-z]*mma|mma_sync|wmma)(?![a-z])|tmagmma|tmaumma|"
            r"tcgen05|warpgroupsize|xdl|mfma|igemm_\w*gtcx|cijk_\w*_mi(?!0)\d+x\d+|sm\d+_mma_|sm\d+_\d+x\d+x\d+_f",
        ),
    )
)

_PRODUCT_RULES = tuple(
    (why, AnyCase(pattern))
    for why, pattern in (
        (
            "a library that has only such kernels",
            r"nvjet|marlin|custom_cijk|kernel_moe_(?:mx)?gemm|deep_gemm::\w*gemm|"
            r"^(?:bmm|gemm)_(?:bfloat16|fp16|e[2345]m\d|mxe\d)",
        ),
        (
            "the main kernel of a fused attention",
            r"flash_(?:fwd|bwd)|flashattn(?:fwd|bwd)|fmha_(?:cutlass|v\d|fwd|bwd)|fmha(?:fwd|bwd)|fmhasm\d|"
            r"prefillwith\w*kvcache|batchmlapagedattention|cudnn_generated_fort_native_sdpa",
        ),
        (
            "the name says vector instructions",
            r"(?:^|_)g?[sdczh]gemm(?!\w*_mi\d)|(?:^|_)scudnn|convolve_sgemm|[dw]grad\w*_(?:engine|alg)|dgrad2d|gemv|gemmsn|"
            r"gemmk1|dot_kernel|winograd|fft[12]d_",
        ),
        (
            "before or after the product, not the product",
            r"compute\w*offsets|flip_filter|im2d?2?col|pointwise_mult_and_sum|reduce_wgrad|scalepackedtensor|"
            r"epilogue::impl|transform_bias_rescale",
        ),
        ("a compiled kernel whose name doesn't show it", r"triton"),
    )
)

_AOTRITON = frozenset(("attn_fwd", "bwd_kernel_dk_dv", "bwd_kernel_dq", "bwd_kernel_fuse"))
"""Attention of PyTorch on ROCm (AOTriton): `tl.dot` of these becomes MFMA or WMMA."""

_PRODUCTS = frozenset(("matrix product", "convolution", "attention", "other"))
"""Families that may hold matrix products."""

ELIGIBLE_OPERATORS = frozenset(
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
"""Operators that run on Tensor Cores if dtype and shape allow it."""


@stored
def uses_tensor_cores(trace: Trace) -> npt.NDArray[np.int8]:
    """Return TC_YES, TC_NO, or TC_UNKNOWN for kernels, int8[n], by their names; TC_NO for other events."""
    vendor = device_kind(trace)
    rows = events_of_kind(trace, Kind.KERNEL)
    names = trace.events.name.take(rows)
    by_name = np.full(len(trace.strings) + 1, TC_UNKNOWN, np.int8)
    for code in distinct_codes(names):
        by_name[code] = tensor_core_verdict(trace.strings[code], vendor)[0]
    verdict = np.full(len(trace), TC_NO, np.int8)
    verdict[rows] = by_name.take(names)
    return verdict


def tensor_core_verdict(name: str, vendor: str) -> tuple[int, str]:
    """Return TC_YES, TC_NO, or TC_UNKNOWN for a kernel, and the reason; `vendor` is "CUDA", "ROCm", ..."""
    reason = _reason(name) if vendor in ("CUDA", "ROCm") else "names don't show it on this device"
    if vendor == "ROCm" and name in _AOTRITON:
        reason = "the main kernel of a fused attention"
    return _VERDICT_BY_REASON[reason], reason


def _reason(name: str) -> str:
    parts = parse_identifiers(name)
    text = f"{parts.path} {parts.arguments}"
    if reason := _first_match(_INSTRUCTION_RULES, text):
        return reason
    if family_of_name(name) not in _PRODUCTS and "triton" not in name:
        return "work without a matrix product"
    return _first_match(_PRODUCT_RULES, text) or "the name doesn't show it"


def _first_match(rules: tuple[tuple[str, AnyCase], ...], text: str) -> str | None:
    return next((why for why, pattern in rules if pattern.search(text)), None)


def are_eligible(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: which of these events are operators that could use Tensor Cores, by name."""
    names = trace.events.name.take(rows)
    by_name = name_mask(trace.strings, ELIGIBLE_OPERATORS.__contains__, names)
    eligible: Bool = (event_kinds(trace).take(rows) == Kind.CPU_OP) & by_name.take(names)
    return eligible
