"""Families of device work: what sort of work a kernel, copy, or memset does.

A kernel's family follows from its name. Rules are tried in order; the first whose pattern is found decides. They
search the function's path and, if that is only a wrapper around its template arguments (`Kernel<cutlass_80_...>`,
`elementwise_kernel<...>`), these as well. Kernels without a matching rule are "other".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.base.patterns import AnyCase, fold_case, lazy_regex
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, events_of_kind, rows_of_kind
from torch_tb_profiler.model.trace import Bool, Int32, Trace, TracePair, distinct_codes

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

NO_FAMILY = -1
"""The family of events that are no device work."""

# Functions that say nothing about the computation: these, and those that begin or end so.
_WRAPPERS = frozenset(("device_kernel", "trampoline_kernel", "globalkernel", "reduce_kernel"))
_WRAPPER_BEGINNINGS = ("kentry", "launch_kernel", "enable_", "multi_tensor_apply_kernel", "devicescan")
# These arguments of an elementwise kernel describe memory access, not the computation.
_ADDRESSING = lazy_regex(
    r"(?:at::detail::Array|std::array|(?:Trivial)?OffsetCalculator)<.*|gpu_kernel_impl\w*", re.DOTALL
)

_RULES = (
    ("memory", AnyCase("fillbuffer copybuffer", ("dma_request", r"^dma_request"))),
    (
        "communication",
        AnyCase(
            """nccl rccl cross_device_reduce custom_allreduce custom_all_reduce nvshmem quickreduce quick_reduce
            lamport"""
        ),
    ),
    (
        "optimizer",
        AnyCase(
            """multi_tensor_apply adamfunctor adam_functor adamkernel adam_kernel lambfunctor lamb_functor
            sgdfunctor sgd_functor sgdmomentum sgd_momentum"""
        ),
    ),
    (
        "index and embedding",
        AnyCase(
            """bounds_check_indices linearize_index permute_2d permute_pooled permute_indices recat_
            index_elementwise reshape_and_cache kv_indices store_kv compute_grad_weight""",
            ("embedding", r"(?<!rotary_)embedding"),
            ("partial", r"partial\w*_segment"),
        ),
    ),
    ("random", AnyCase("dropout distribution_ philox curand bernoulli random")),
    (
        "norm",
        AnyCase(
            """layernorm layer_norm batchnorm batch_norm groupnorm group_norm instancenorm instance_norm rmsnorm
            rms_norm qknorm qk_norm vectornorm vector_norm matrixnorm matrix_norm bn_bw bn_fw norm_fwd norm_bwd
            gammabeta rowwisemoments welford"""
        ),
    ),
    (
        "attention",
        AnyCase(
            """fmha flash attention attn sdpa paged_ bwd_kernel_dk_dv bwd_kernel_dq bwd_kernel_fuse
            transform_bias_rescale_qkv compute_dot_do_o convert_dq_to""",
            ("sage", r"(?<![^_])sage_?(?:fwd|bwd|attn)"),
            ("prefillwith", r"prefillwith\w*kvcache"),
            ("decodewith", r"decodewith\w*kvcache"),
            ("mla_", r"(?<![^_])mla_"),
        ),
    ),
    ("softmax", AnyCase("softmax")),
    ("reduction", AnyCase("pool")),
    (
        "convolution",
        AnyCase(
            """winograd igemm_ scudnn flip_filter fft1d_ fft2d_ im2col im2dcol im22col im2d2col
            pointwise_mult_and_sum reduce_wgrad scalepackedtensor init_device_workspace""",
            ("conv", r"conv(?!ert)"),
            ("fprop", r"[_\d]fprop"),
            ("dgrad", r"[_\d]dgrad|dgrad\w*_(?:engine|alg)|dgrad2d"),
            ("wgrad", r"[_\d]wgrad|wgrad\w*_(?:engine|alg)"),
            ("cudnn", r"cudnn_\d|\dcudnn"),
            ("offsets", r"compute\w*offsets"),
        ),
    ),
    (
        "matrix product",
        AnyCase(
            "gemv matmul cijk_ nvjet marlin splitk dot_kernel reduce_1block cublas epilogue::impl",
            ("gemm", r"(?<!fb)gemm"),
            ("mm", r"^(?:add|b|badd?b?)?mm$|(?:^|_)mm_|^bmm_"),
            ("fc", r"^(?:batched_)?fc(?:_|$)"),
            ("linear", r"^(?:batched_)?linear(?:_|$)"),
        ),
    ),
    (
        "copy and cast",
        AnyCase(
            "copy nchw nhwc transpose concat catarray to_dense contiguous quant permute", ("cast", r"(?<!no)cast")
        ),
    ),
    (
        "index and embedding",
        AnyCase(
            """gather scatter sort search topk tril_ triu_ nonzero partition unique lookup compact offsets_range
            reducebykey routing token_ids position_kernel masked_select""",
            ("index", r"(?<!with_)index"),
        ),
    ),
    (
        "reduction",
        AnyCase("reduc nll loss scan cumsum argmax argmin sum_ mean_ histogram merge_state finalize"),
    ),
    (
        "elementwise",
        AnyCase(
            """elementwise subtensorop rotary rope _and_mul activation gelu silu relu sigmoid swiglu pointwise
            functor upsample transform_""",
            ("", r"^(?:add|mul|sub|div|exp|log|tanh|r?sqrt|pow|neg|abs|clamp|where|fill)(?:_|$)"),
        ),
    ),
)

# Kernels of MTIA are called as their operators.
_OPERATORS = tuple(
    (family, lazy_regex(pattern))
    for family, pattern in (
        ("matrix product", r"einsum|outer|fc_?"),
        ("norm", r"(?:l[12]_)?norm"),
        (
            "copy and cast",
            r"cat|stack|split|chunk|slice|reshape|clone|to|(?:constant_)?pad\w*|flip|roll|repeat|expand",
        ),
        ("index and embedding", r"triu|tril|jagged_to_\w+|\w+_to_jagged|take|one_hot|roi_align"),
        ("reduction", r"sum|mean|prod|amax|amin|max|min|any|all|std|var|var_mean|segment_sum|cumprod"),
        (
            "elementwise",
            r"maximum|minimum|eq|[gln]e|[gl]t|masked_fill|zero|zeros|ones|hardtanh|swish|addcmul|addcdiv|lerp|"
            r"(?:bitwise|logical)_\w+|floor|ceil|round|sin|cos|erf|reciprocal|square|sign|nan_to_num|isnan",
        ),
        ("optimizer", r"sgd|adam\w?|(?:rowwise_)?adagrad|lamb"),
    )
)

_TRITON = lazy_regex(r"^triton_(poi|red|per|tem|for|mix)_fused_(\w*?)(?:_?\d+)?$")
_MOVES = lazy_regex(
    r"_to_copy|clone|copy|cat|view|transpose|permute|slice|split|unsqueeze|squeeze|expand|select|unsafe|t|_|\d"
)


@lru_cache(maxsize=65536)
def family_of_name(name: str) -> str:
    """Return the family of a kernel, by its name alone: by a part of it, or as of the operator that it equals."""
    if name.startswith("triton_") and (fused := _TRITON.match(name)):
        return _classify_inductor_kernel(fused[1], fused[2])
    parts = parse_identifiers(name)
    text = parts.path
    if _is_wrapper(fold_case(parts.function)):
        text += " " + _ADDRESSING.sub("", parts.arguments)
    found = next((family for family, rule in _RULES if rule.search(text)), None)
    operator = fold_case(text).removesuffix("_")
    return found or next((family for family, pattern in _OPERATORS if pattern.fullmatch(operator)), "other")


def _is_wrapper(function: str) -> bool:
    """Return whether a function, in lower case, only runs what its template arguments say."""
    if function in _WRAPPERS or function.rstrip("0123456789") == "kernel":
        return True
    begins_so = function.startswith(_WRAPPER_BEGINNINGS) or "elementwise_kernel" in function
    return begins_so and function.replace("_", "a").isalnum()


def _classify_inductor_kernel(kind: str, operators: str) -> str:
    """Return the family of Inductor's kernel, named after its structure and the operators that it fuses.

    kind  poi (pointwise), tem (template), or one of the reductions
    """
    if kind == "tem":
        return (
            "attention" if "attention" in operators else "convolution" if "conv" in operators else "matrix product"
        )
    if kind == "poi":
        return "elementwise" if _MOVES.sub("", operators) else "copy and cast"
    return "norm" if "norm" in operators else "softmax" if "softmax" in operators else "reduction"


@stored
def family_codes(trace: Trace) -> npt.NDArray[np.int8]:
    """Return the family of all device work, int8[n], as an index into FAMILIES; NO_FAMILY for other events.

    Copies and memsets are memory, kernels with the metadata of a collective are communication; names decide the
    rest.
    """
    by_name = np.full(len(trace.strings) + 1, FAMILIES.index("other"), np.int8)
    rows = events_of_kind(trace, Kind.KERNEL)
    names = trace.events.name.take(rows)
    for code in distinct_codes(names):
        by_name[code] = FAMILIES.index(family_of_name(trace.strings[code]))
    family = np.full(len(trace), NO_FAMILY, np.int8)
    family[rows] = by_name.take(names)
    family[is_communication_kernel(trace)] = FAMILIES.index("communication")
    copies_and_memsets = [device_kind for device_kind in DEVICE_KINDS if device_kind != Kind.KERNEL]
    family[events_of_kind(trace, *copies_and_memsets)] = FAMILIES.index("memory")
    return family


def family_mask(trace: Trace, rows: Int32, family: str) -> Bool:
    """Return which of the rows are device work of `family`, bool[k]; raise UsageError for an unknown family."""
    if family not in FAMILIES:
        raise UsageError(f"there is no kernel family {family!r}", hint=", ".join(FAMILIES))
    mask: Bool = family_codes(trace)[rows] == FAMILIES.index(family)
    return mask


def kernel_families_of_pair(pair: TracePair) -> Mapping[str, str]:
    """Return the family of every kernel of both sides by the kernel's name; its first launch decides."""
    by_name: dict[str, str] = {}
    for trace in (*pair.base, *pair.candidate):
        rows = rows_of_kind(trace, Kind.KERNEL)
        codes, first = np.unique(trace.events.name[rows], return_index=True)
        numbers = family_codes(trace)[rows[first]]
        for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
            by_name.setdefault(trace.strings[code] if code >= 0 else "", FAMILIES[number])
    return by_name
