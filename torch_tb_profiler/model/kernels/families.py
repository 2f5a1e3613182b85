"""Families: what sort of work a kernel does, by its name.

Rules are tried in order; the first whose pattern is in the name decides. The function is asked, and where it is
only a frame around what its template arguments name (`Kernel<cutlass_80_...>`, `elementwise_kernel<...>`) they
are with it. What no rule knows is "other".
"""

from __future__ import annotations

import re
from functools import lru_cache

from torch_tb_profiler.model.kernels.identifiers import parse_identifiers

FAMILIES = (
    "matrix product",
    "convolution",
    "attention",
    "norm",
    "softmax",
    "reduction",
    "elementwise",
    "copy and cast",
    "index and embedding",
    "random",
    "optimizer",
    "communication",
    "memory",
    "other",
)

_FRAMES = re.compile(
    r"(?:^|::)(?:kernel\d*|device_kernel|kentry\w*|trampoline_kernel|launch_kernel\w*|enable_\w+|globalKernel|"
    r"\w*elementwise_kernel\w*|reduce_kernel|multi_tensor_apply_kernel\w*|DeviceScan\w*)$",
    re.IGNORECASE,
)
# What follows in the arguments of an elementwise kernel tells of memory, not of what is computed.
_ADDRESSING = re.compile(
    r"(?:at::detail::Array|std::array|(?:Trivial)?OffsetCalculator)<.*|gpu_kernel_impl\w*", re.DOTALL
)

_RULES = tuple(
    (family, re.compile(pattern, re.IGNORECASE))
    for family, pattern in (
        ("memory", r"fillbuffer|copybuffer|^dma_request"),
        ("communication", r"nccl|rccl|cross_device_reduce|custom_all_?reduce|nvshmem|quick_?reduce|lamport"),
        ("optimizer", r"multi_tensor_apply|adam_?(?:functor|kernel)|lamb_?functor|sgd_?(?:functor|momentum)"),
        (
            "index and embedding",
            r"(?<!rotary_)embedding|bounds_check_indices|linearize_index|permute_(?:2d|pooled|indices)|recat_|index_elementwise|"
            r"reshape_and_cache|kv_indices|store_kv",
        ),
        ("random", r"dropout|distribution_|philox|curand|bernoulli|random"),
        (
            "norm",
            r"(?:layer|batch|group|instance|rms|qk)_?norm|bn_(?:bw|fw)|norm_(?:fwd|bwd)|gammabeta|rowwisemoments|welford",
        ),
        (
            "attention",
            r"fmha|flash|attention|attn|sdpa|paged_|(?:prefill|decode)with\w*kvcache|bwd_kernel_(?:dk_dv|dq|fuse)|"
            r"transform_bias_rescale_qkv|(?:^|_)mla_",
        ),
        ("softmax", r"softmax"),
        ("reduction", r"pool"),
        (
            "convolution",
            r"conv(?!ert)|(?:_|\d)(?:fprop|dgrad|wgrad)|[dw]grad\w*_(?:engine|alg)|dgrad2d|winograd|igemm_|scudnn|cudnn_\d|\dcudnn|"
            r"compute\w*offsets|flip_filter|fft[12]d_|im2d?2?col|pointwise_mult_and_sum|reduce_wgrad|scalepackedtensor",
        ),
        (
            "matrix product",
            r"(?<!fb)gemm|gemv|matmul|cijk_|nvjet|marlin|^bmm_|splitk|dot_kernel|reduce_1block|cublas|(?:^|_)mm_|epilogue::impl",
        ),
        (
            "copy and cast",
            r"copy|nchw|nhwc|transpose|concat|catarray|(?<!no)cast|to_dense|contiguous|quant|permute",
        ),
        (
            "index and embedding",
            r"(?<!with_)index|gather|scatter|sort|search|topk|tril_|triu_|nonzero|partition|unique|lookup|compact|offsets_range|"
            r"reducebykey|routing|token_ids|position_kernel|masked_select",
        ),
        ("reduction", r"reduc|nll|loss|scan|cumsum|argm(?:ax|in)|sum_|mean_|histogram|merge_state|finalize"),
        (
            "elementwise",
            r"elementwise|subtensorop|rotary|rope|_and_mul|activation|gelu|silu|relu|sigmoid|swiglu|pointwise|functor|"
            r"upsample|transform_",
        ),
    )
)

_TRITON = re.compile(r"^triton_(poi|red|per|tem|for|mix)_fused_(\w*?)(?:_?\d+)?$")
_MOVES = re.compile(
    r"_to_copy|clone|copy|cat|view|transpose|permute|slice|split|unsqueeze|squeeze|expand|select|unsafe|t|_|\d"
)


@lru_cache(maxsize=65536)
def family_of_name(name: str) -> str:
    """The family of a kernel by its name alone."""
    if fused := _TRITON.match(name):
        return _compiled(fused[1], fused[2])
    spelled = parse_identifiers(name)
    text = spelled.path
    if _FRAMES.search(spelled.path):
        text += " " + _ADDRESSING.sub("", spelled.arguments)
    return next((family for family, pattern in _RULES if pattern.search(text)), "other")


def _compiled(kind: str, operators: str) -> str:
    """Inductor names its kernels after their structure (pointwise, reduction, template) and what they fuse."""
    if kind == "tem":
        return (
            "attention" if "attention" in operators else "convolution" if "conv" in operators else "matrix product"
        )
    if kind == "poi":
        return "elementwise" if _MOVES.sub("", operators) else "copy and cast"
    return "norm" if "norm" in operators else "softmax" if "softmax" in operators else "reduction"
