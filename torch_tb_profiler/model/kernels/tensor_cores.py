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

_SHAPES = ("884", "1688", "16816", "16832", "16864", "8816", "8832", "161616", "32816", "83216")

# The instruction in a name is stronger evidence than the purpose of the kernel, so these rules come first.
_INSTRUCTION_RULES = (
    # Parts of attention and of split products that only move, convert, or sum, whatever else is in their name.
    (
        "before or after the product, not the product",
        AnyCase(
            """dot_do_o dotdoo ograddoto convertqgrad clear_dk bwdpreprocess bwdpostprocess mergestates merge_attn
            repack permute_cols splitkreduce splitk_reduce reducesplitk reduce_1block""",
            ("combine", r"combine(?!d)"),
            ("convert", r"convert_?d?q"),
            ("paged_attention_", r"paged_attention_\w*reduce"),
        ),
    ),
    (
        "the name says vector instructions",
        AnyCase(
            "opclasssimt _dl_ gcnasmconv winograd_nonfused batchdecodewith singledecodewith",
            ("ffma", r"(?<![a-z])ffma(?![a-z])"),
            ("simt", r"(?<![a-z])simt(?![a-z])"),
            ("gtcn", r"gtcn\d"),
            ("fmha_cutlass", r"fmha_cutlass[fb]_(?:f32_\w*_sm[567]|\w*_sm5)\d"),
            ("paged_attention_v", r"paged_attention_v\d_kernel"),
        ),
    ),
    (
        # Volta to Ampere spell the shape (s884, h16816, tensor16x8x8, s64x128x16gemm) or the class (tensorop,
        # wmma); Hopper and Blackwell the unit; AMD the MFMA or WMMA instruction, Tensile's after MI.
        "the name carries the instruction",
        AnyCase(
            "opclasstensorop mmatensorop tmagmma tmaumma tcgen05 warpgroupsize xdl mfma",
            *((shape, rf"(?<![a-z0-9])[shdicb]{shape}(?!\d)") for shape in _SHAPES),
            ("tensor", r"tensor\d+x\d+x\d+|(?<![a-z])tensorop(?![a-z])"),
            *(
                (product, rf"(?<![a-z0-9])[shdi]\d+x\d+x\d+{product}")
                for product in ("gemm", "fprop", "dgrad", "wgrad")
            ),
            (
                "mma",
                r"(?<![a-z])(?:[hidqb]mma|wgmma|[hiq]?gmma|umma|utc[a-z]*mma|mma_sync|wmma)(?![a-z])|sm\d+_mma_",
            ),
            ("igemm_", r"igemm_\w*gtcx"),
            ("cijk_", r"cijk_\w*_mi(?!0)\d+x\d+"),
            ("sm", r"sm\d+_\d+x\d+x\d+_f"),
        ),
    ),
)

_PRODUCT_RULES = (
    (
        "a library that has only such kernels",
        AnyCase(
            "nvjet marlin custom_cijk kernel_moe_gemm kernel_moe_mxgemm",
            ("deep_gemm::", r"deep_gemm::\w*gemm"),
            ("mm", r"^(?:bmm|gemm)_(?:bfloat16|fp16|e[2345]m\d|mxe\d)"),
        ),
    ),
    (
        "the main kernel of a fused attention",
        AnyCase(
            """flash_fwd flash_bwd flashattnfwd flashattnbwd fmha_cutlass fmha_fwd fmha_bwd fmhafwd fmhabwd
            batchmlapagedattention cudnn_generated_fort_native_sdpa""",
            ("fmha_v", r"fmha_v\d"),
            ("fmhasm", r"fmhasm\d"),
            ("prefillwith", r"prefillwith\w*kvcache"),
        ),
    ),
    (
        "the name says vector instructions",
        AnyCase(
            "convolve_sgemm dgrad2d gemv gemmsn gemmk1 dot_kernel winograd fft1d_ fft2d_",
            ("gemm", r"(?:^|_)g?[sdczh]gemm(?!\w*_mi\d)"),
            ("scudnn", r"(?:^|_)scudnn"),
            ("grad", r"[dw]grad\w*_(?:engine|alg)"),
        ),
    ),
    (
        "before or after the product, not the product",
        AnyCase(
            """flip_filter im2col im2dcol im22col im2d2col pointwise_mult_and_sum reduce_wgrad scalepackedtensor
            epilogue::impl transform_bias_rescale""",
            ("offsets", r"compute\w*offsets"),
        ),
    ),
    ("a compiled kernel whose name doesn't show it", AnyCase("triton")),
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
    return next((why for why, rule in rules if rule.search(text)), None)


def are_eligible(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: which of these events are operators that could use Tensor Cores, by name."""
    names = trace.events.name.take(rows)
    by_name = name_mask(trace.strings, ELIGIBLE_OPERATORS.__contains__, names)
    eligible: Bool = (event_kinds(trace).take(rows) == Kind.CPU_OP) & by_name.take(names)
    return eligible
