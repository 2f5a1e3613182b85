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
from torch_tb_profiler.base.patterns import AnyCase, lazy_regex
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_kinds, rows_of_kind
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

_WRAPPERS = AnyCase(
    r"(?:^|::)(?:kernel\d*|device_kernel|kentry\w*|trampoline_kernel|launch_kernel\w*|enable_\w+|globalkernel|"
    r"\w*elementwise_kernel\w*|reduce_kernel|multi_tensor_apply_kernel\w*|devicescan\w*)$"
)
# These arguments of an elementwise kernel describe memory access, not the computation.
_ADDRESSING = lazy_regex(
    r"(?:at::detail::Array|std::array|(?:Trivial)?OffsetCalculator)<.*|gpu_kernel_impl\w*", re.DOTALL
)

# Where each alternative begins with a letter, the search skips to the places where one can begin. Hence what must
# stand before a word is looked for behind it.
_RULES = tuple(
    (family, AnyCase(pattern))
    for family, pattern in (
        ("memory", r"fillbuffer|copybuffer|^dma_request"),
        ("communication", r"nccl|rccl|cross_device_reduce|custom_all_?reduce|nvshmem|quick_?reduce|lamport"),
        ("optimizer", r"multi_tensor_apply|adam_?(?:functor|kernel)|lamb_?functor|sgd_?(?:functor|momentum)"),
        (
            "index and embedding",
            r"embedding(?<!rotary_embedding)|bounds_check_indices|linearize_index|permute_(?:2d|pooled|indices)|recat_|index_elementwise|"
            r"reshape_and_cache|kv_indices|store_kv|compute_grad_weight|partial\w*_segment",
        ),
        ("random", r"dropout|distribution_|philox|curand|bernoulli|random"),
        (
            "norm",
            r"layer_?norm|batch_?norm|group_?norm|instance_?norm|rms_?norm|qk_?norm|vector_?norm|matrix_?norm|"
            r"bn_(?:bw|fw)|norm_(?:fwd|bwd)|gammabeta|rowwisemoments|welford",
        ),
        (
            "attention",
            r"fmha|flash|attention|attn|sdpa|sage(?<![^_]sage)_?(?:fwd|bwd|attn)|paged_|prefillwith\w*kvcache|decodewith\w*kvcache|"
            r"bwd_kernel_(?:dk_dv|dq|fuse)|transform_bias_rescale_qkv|mla_(?<![^_]mla_)|compute_dot_do_o|convert_dq_to",
        ),
        ("softmax", r"softmax"),
        ("reduction", r"pool"),
        (
            "convolution",
            r"conv(?!ert)|fprop(?<=[_\d]fprop)|dgrad(?:(?<=[_\d]dgrad)|\w*_(?:engine|alg)|2d)|wgrad(?:(?<=[_\d]wgrad)|\w*_(?:engine|alg))|"
            r"winograd|igemm_|scudnn|cudnn(?:_\d|(?<=\dcudnn))|"
            r"compute\w*offsets|flip_filter|fft[12]d_|im2d?2?col|pointwise_mult_and_sum|reduce_wgrad|scalepackedtensor|init_device_workspace",
        ),
        (
            "matrix product",
            r"(?<!fb)gemm|gemv|matmul|^(?:batched_)?(?:fc|linear)(?:_|$)|^(?:add|b|badd?b?)?mm$|cijk_|nvjet|marlin|^bmm_|splitk|dot_kernel|reduce_1block|cublas|(?:^|_)mm_|epilogue::impl",
        ),
        (
            "copy and cast",
            r"copy|nchw|nhwc|transpose|concat|catarray|(?<!no)cast|to_dense|contiguous|quant|permute",
        ),
        (
            "index and embedding",
            r"index(?<!with_index)|gather|scatter|sort|search|topk|tril_|triu_|nonzero|partition|unique|lookup|compact|offsets_range|"
            r"reducebykey|routing|token_ids|position_kernel|masked_select",
        ),
        ("reduction", r"reduc|nll|loss|scan|cumsum|argm(?:ax|in)|sum_|mean_|histogram|merge_state|finalize"),
        (
            "elementwise",
            r"elementwise|subtensorop|rotary|rope|_and_mul|activation|gelu|silu|relu|sigmoid|swiglu|pointwise|functor|"
            r"upsample|transform_|^(?:add|mul|sub|div|exp|log|tanh|r?sqrt|pow|neg|abs|clamp|where|fill)(?:_|$)",
        ),
    )
)

# Kernels of MTIA are called as their operators.
_OPERATORS = tuple(
    (family, AnyCase(pattern))
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
    if fused := _TRITON.match(name):
        return _classify_inductor_kernel(fused[1], fused[2])
    parts = parse_identifiers(name)
    text = parts.path
    if _WRAPPERS.search(parts.path):
        text += " " + _ADDRESSING.sub("", parts.arguments)
    found = next((family for family, pattern in _RULES if pattern.search(text)), None)
    operator = text.removesuffix("_")
    return found or next((family for family, pattern in _OPERATORS if pattern.fullmatch(operator)), "other")


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
    kind = event_kinds(trace)
    kernel = kind == Kind.KERNEL
    by_name = np.full(len(trace.strings) + 1, FAMILIES.index("other"), np.int8)
    rows = np.flatnonzero(kernel)
    names = trace.events.name.take(rows)
    for code in distinct_codes(names):
        by_name[code] = FAMILIES.index(family_of_name(trace.strings[code]))
    family = np.full(len(trace), NO_FAMILY, np.int8)
    family[rows] = by_name.take(names)
    family[is_communication_kernel(trace)] = FAMILIES.index("communication")
    copies_and_memsets = [device_kind for device_kind in DEVICE_KINDS if device_kind != Kind.KERNEL]
    family[np.isin(kind, copies_and_memsets)] = FAMILIES.index("memory")
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
