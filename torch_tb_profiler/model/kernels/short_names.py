"""Short names of kernels that tell them apart: what is computed, on which type, in which tile.

cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1     GEMM bf16 128x128 nn, CUTLASS sm75, align1
vectorized_elementwise_kernel<4, FillFunctor<float>, ...>     fill fp32, vec4
ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)                  NCCL AllReduce Sum f32 RING LL
triton_poi_fused_add_mul_3                                    Triton add, mul (3)
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np

from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.base.patterns import AnyCase, fold_case, lazy_regex
from torch_tb_profiler.model.kernels.families import family_of_name
from torch_tb_profiler.model.kernels.identifiers import KernelIdentifiers, parse_identifiers
from torch_tb_profiler.model.kinds import Kind, event_kinds, names_of_kind
from torch_tb_profiler.model.trace import Trace, TracePair, distinct_codes

MAX_SHORT_NAME_LENGTH = 48
"""Maximum length of a short name in characters."""

_NCCL = lazy_regex(r"^(?:nccl|rccl)(?:Dev)?Kernel_(\w+)", re.IGNORECASE)
_CUDNN_ATTENTION = lazy_regex(r"^cudnn_generated_fort_native_sdpa_(sm\d+)_flash_(fprop|bprop)_\w*?_(\d+x\d+x\d+)_")
_TRITON = lazy_regex(r"^triton_(?:poi|red|per|tem|for|mix)_fused_(\w*?)(?:_?(\d+))?$")
_FUSED = lazy_regex(
    r"_to_copy|_?unsafe_view|native_(?:layer|batch|group)_norm\w*?(?=_[a-z]|$)|_?scaled_dot_product_\w*?attention|"
    r"constant_pad_[a-z]d|log_softmax|_softmax|index_put|index_select|moe_forward|max_pool2d\w*?indices|[a-z0-9]+"
)
_SHAPING = frozenset(
    "_unsafe_view unsafe_view view transpose permute slice split unsqueeze squeeze expand".split()
)
_VECTOR = lazy_regex(r"vectorized_\w*elementwise_kernel")
_ROLE = lazy_regex(r"(fprop|fwd|forward)|(dgrad|bwd_?data|bwd(?!_weight))|(wgrad|wrw|bwd_weight)")
_CLUTTER = lazy_regex(r"_?(?:cuda_)?kernel(?=$|_)|Kernel(?=$|_|[A-Z0-9])|^cunn_")
_TOKENS = lazy_regex(r"[A-Za-z0-9]+")
_UNSIGNED = lazy_regex(r"\d+ul?")
_PRODUCT = AnyCase("gemm cudnn conv xmma prop dgrad_ wgrad_ nvjet matmul", ("bmm_", r"^bmm_"))
_GENERIC = frozenset(("Kernel", "kernel", "kentry", "trampoline_kernel", "device_kernel", "globalKernel"))
_MANGLED_WORD = lazy_regex(r"\d+([A-Z][A-Za-z0-9]{4,}?)I")

# What names say about number types, tiles, layouts, and functors, in lower case.
_FLOATS = lazy_regex(
    r"bfloat16|bf16|c10::half|__half|half_t|(?<![a-z])(?:fp?(?:16|32|64)(?!\d)|half(?![a-z]))|float8|fp8|e4m3|e5m2|"
    r"fp4|e2m1|tf32|tfloat32|complex<(?:float|double)>|(?<![a-z_])(?:float|double)(?![a-z_])"
)
_INTEGERS = lazy_regex(
    r"(?<![a-z_ ])(?:long|int64_t)(?![a-z_])|(?:un)?signed char|u?int8_t|(?<![a-z_])(?:bool|int)(?![a-z_])"
)
_TYPES = {
    spelling: kind
    for kind, spellings in (
        ("bf16", ("bfloat16", "bf16")),
        ("fp16", ("c10::half", "__half", "half_t", "half", "fp16", "f16")),
        ("fp8", ("float8", "fp8", "e4m3", "e5m2")),
        ("fp4", ("fp4", "e2m1")),
        ("tf32", ("tf32", "tfloat32")),
        ("complex64", ("complex<float>",)),
        ("complex128", ("complex<double>",)),
        ("fp64", ("double", "fp64", "f64")),
        ("fp32", ("float", "fp32", "f32")),
        ("int64", ("long", "int64_t")),
        ("int8", ("signed char", "int8_t")),
        ("uint8", ("unsigned char", "uint8_t")),
        ("bool", ("bool",)),
        ("int32", ("int",)),
    )
    for spelling in spellings
}
"""Each spelling of a number type -> the type."""
_FIRST_TENSOR = lazy_regex(r"cublasGem\w*Tensor\w*<([\w:]+)( const)?>")
_PARAMETERS = lazy_regex(r"(?<=\w)\([^()]*\)(?=::)")
_TENSILE = {"BB": "bf16", "HH": "fp16", "SB": "fp32", "SS": "fp32", "F8": "fp8", "I8": "int8", "DB": "fp64"}
_TILE = lazy_regex(r"(?:^|_|MT|bt|tilesize|[^a-zA-Z0-9x])(\d+x\d+(?:x\d+)?)")
_LAYOUT = lazy_regex(r"_([nt]{2,3})(?=[_ ,]|$)")
_ARCHITECTURE = lazy_regex(r"(?:cutlass_|sm_?)(\d{2,3})|(volta|turing|ampere|hopper|maxwell|pascal)")
_BLAS_TYPE = lazy_regex(r"_(?:s(?:gemm|cudnn)|(d)\d*gemm)")  # d884 is an instruction of Tensor Cores
_ALIGNMENT = lazy_regex(r"align\d+")

# Words begin at their boundary: else each letter of a mangled name of thousands would be tried as the first.
_FUNCTORS = lazy_regex(
    r"direct_(copy)_kernel|std::(plus|minus|multiplies|divides)\b|at::native::([A-Z][a-z]+)<|"
    r"\b(\w+?)CUDAKernelImpl|\b(\w+?)_(?:backward_)?(?:cuda_)?kernel(?:_cuda|_impl)?(?=[<(:])|"
    r"CUDAFunctor(?:OnSelf)?_(\w+)|launch_(\w+?)(?:_scalar)?\(|\b(\w+?)(?:Scalar)?Functor\b|\b(\w+)_functor\b|"
    r"\b(\w+)Ops\b|\b(\w+)_cuda_out|\b(\w+)_out\b"
)
_WRAPPERS = frozenset(
    """AUnary BUnary Binary Unary gpu gpu_index BinaryOpListAlpha BinaryOpScalar BinaryOpScalarList UnaryOp
    PointwiseOpScalar PointwiseOpList BinaryOpList PointwiseOpScalarList BinaryOp PointwiseOp UnaryOpFunctor
    ReduceOp OpaqueType Var""".split()
)
_WORDS = {
    "mul": "multiply",
    "multiplies": "multiply",
    "div": "divide",
    "divides": "divide",
    "sub": "subtract",
    "minus": "subtract",
    "plus": "add",
    "neg": "negate",
    "normtwo": "2-norm",
}
_OPAQUE = lazy_regex(r"OpaqueType<(\d+)")


@stored
def short_kernel_names(trace: Trace) -> Mapping[str, str]:
    """Return the short name of every kernel of a trace by its full name; all are distinct."""
    return short_names(names_of_kind(trace, Kind.KERNEL))


def short_kernel_names_of_pair(pair: TracePair) -> Mapping[str, str]:
    """Return the short name of every kernel of both sides by its full name; all are distinct."""
    traces = (*pair.base, *pair.candidate)
    return short_names(name for trace in traces for name in names_of_kind(trace, Kind.KERNEL))


def display_name(trace: Trace, row: int, name: str) -> str:
    """Return the name of an event as views show it: the short one of a kernel, else `name`."""
    return short_kernel_names(trace).get(name, name) if event_kinds(trace)[row] == Kind.KERNEL else name


@derived
def kernel_labels(trace: Trace) -> Mapping[int, str]:
    """Return the short kernel name by name code, for names that no other event has.

    A code alone doesn't tell a kernel from an operator with the same name.
    """
    kernel, name = event_kinds(trace) == Kind.KERNEL, trace.events.name
    used_elsewhere = np.zeros(len(trace.strings) + 1, np.bool_)
    used_elsewhere[name[~kernel]] = True
    short = short_kernel_names(trace)
    return {code: short[trace.strings[code]] for code in distinct_codes(name[kernel]) if not used_elsewhere[code]}


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct short name of at most MAX_SHORT_NAME_LENGTH characters for every name.

    Where several names would get the same, each gets a part that only its full name has, else a number.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        groups[short_name(name)].append(name)
    used = {short for short, members in groups.items() if len(members) == 1}
    shortened = {members[0]: short for short, members in groups.items() if len(members) == 1}
    for short, members in groups.items():
        if len(members) == 1:
            continue
        for name, detail in zip(members, _find_details(members), strict=True):
            candidate, number = _fit(short, f", {detail}" if detail else " #1"), 1
            while candidate in used:
                number += 1
                candidate = _fit(short, f" #{number}")
            used.add(candidate)
            shortened[name] = candidate
    return shortened


def _fit(short: str, suffix: str) -> str:
    available = MAX_SHORT_NAME_LENGTH - len(suffix)
    return (short if len(short) <= available else f"{short[: available - 1]}…") + suffix


def _find_details(names: list[str]) -> list[str]:
    """Return each name's first token with a digit (`32x3`, `stage5`) that no other name has, or ""."""
    tokens = [dict.fromkeys(_TOKENS.findall(name[:4096])) for name in names]
    counts: dict[str, int] = defaultdict(int)
    for tokens_of_name in tokens:
        for token in tokens_of_name:
            counts[token] += 1
    details = []
    for tokens_of_name in tokens:
        unique = (token for token in tokens_of_name if counts[token] == 1 and _is_detail(token))
        details.append(next(unique, ""))
    return details


def _is_detail(token: str) -> bool:
    """Return whether a token has letters and digits (`32x3`) but isn't a number, nor in every name."""
    if not 2 <= len(token) <= 12 or token.isalpha() or token.isdigit():
        return False
    folded = token.lower()
    return folded != "c10" and _UNSIGNED.fullmatch(folded) is None


def short_name(name: str) -> str:
    """Return the short name of one kernel, regardless of others."""
    return _fit(_short(name), "")


@lru_cache(maxsize=65536)
def _short(name: str) -> str:
    if match := _NCCL.match(name):
        return f"NCCL {match[1].replace('_', ' ')}"
    if name.startswith("triton_") and (match := _TRITON.match(name)):
        return _triton_name(match[1], match[2])
    if name.startswith("cudnn_generated") and (match := _CUDNN_ATTENTION.match(name)):
        direction = "forward" if match[2] == "fprop" else "backward"
        return f"flash attention {direction} {match[3]}, cuDNN {match[1]}"
    parts, family = parse_identifiers(name), family_of_name(name)
    if family in ("matrix product", "convolution") and (product := _product_name(name, parts, family)):
        return product
    if family in ("elementwise", "copy and cast", "index and embedding", "reduction", "optimizer", "random"):
        if computed := _functor_based_name(parts):
            return computed
    return _function_based_name(parts) if parts.path != name.strip() else parts.path


def _triton_name(fused: str, number: str | None) -> str:
    operators = list(dict.fromkeys(_FUSED.findall(fused)))
    work = [operator for operator in operators if operator not in _SHAPING] or operators
    listed = ", ".join(operator.strip("_").removeprefix("native_") for operator in work)
    return _fit(f"Triton {listed or 'kernel'}", f" ({number})" if number else "")


def _product_name(name: str, parts: KernelIdentifiers, family: str) -> str:
    """Return a name such as `GEMM bf16 128x128 nn, CUTLASS sm75, align1`, or "" for an unknown library."""
    text = f"{parts.path} {parts.arguments}"
    if "Cijk_" in name:
        a, b = ("t" if "Alik" in name else "n"), ("n" if "Bljk" in name else "t")
        return f"GEMM {tensile_type(name)} {tile_shape(name)} {a}{b}, Tensile"
    size = tile_shape(text)
    if not size or not _PRODUCT.search(text):
        return ""
    library = next((label for key, label in _LIBRARIES if key in text), "")
    role = _ROLE.search(fold_case(text))
    direction = ("forward", "dgrad", "wgrad")[int(role.lastindex or 1) - 1] if role else ""
    operation = f"conv {direction}".strip() if family == "convolution" else "GEMM"
    kind = product_type(text)
    head = " ".join(part for part in (operation, kind, size, operand_layout(text)) if part)
    built_by = " ".join(part for part in (library, gpu_architecture(text)) if part)
    return ", ".join(part for part in (head, built_by, alignment(text)) if part)


def _blas_type(text: str) -> str:
    """Return the number type in a product's name as BLAS writes it (`sgemm`, `d884gemm`), or "" without it."""
    match = _BLAS_TYPE.search(text)
    return "" if match is None else "fp64" if match[1] else "fp32"


_LIBRARIES = (
    ("cutlass", "CUTLASS"),
    ("nvjet", "nvjet"),
    ("igemm_", "MIOpen"),
    ("ck::", "CK"),
    ("xmma", "xmma"),
)


def _functor_based_name(parts: KernelIdentifiers) -> str:
    """Return a name such as `multiply bf16, vec4`, after the kernel's functor, or "" if it has none."""
    operation = functor_name(parts.arguments)
    if not operation:
        return ""
    short = f"{operation} {number_type(parts.arguments)}".strip()
    first = parts.arguments.split(",", 1)[0]
    if _VECTOR.search(parts.function) and first.isdigit():
        return f"{short}, vec{first}"
    if parts.function.startswith("multi_tensor_apply"):
        return f"foreach {short}"
    return short if "elementwise" in parts.function or "reduce_kernel" in parts.function else ""


def _function_based_name(parts: KernelIdentifiers) -> str:
    """Return the function's name, with the first type of its arguments."""
    function = parts.function
    if function in _GENERIC or function.rstrip("0123456789") in (
        "Kernel",
        "kernel",
    ):  # the first argument or the namespace is more specific
        word = _MANGLED_WORD.search(parts.arguments)
        inner = parse_identifiers(parts.arguments).function if "::" in parts.arguments else ""
        function = word[1] if word else inner or parts.path.rpartition("::")[0].rpartition("::")[2] or function
    function = function.replace("CatArrayBatchedCopy", "cat")
    function = _CLUTTER.sub("", function).strip("_") or function
    kind = number_type(parts.arguments)
    return f"{function} {kind}" if kind and kind not in function else function


def product_type(text: str) -> str:
    """Return the number type that a matrix product computes with, "" if its name doesn't say."""
    return number_type(text) or _blas_type(text)


def number_type(text: str) -> str:
    """Return the number type that a kernel computes with (`2-byte` if only its size is given), or "" if unknown.

    That is the first in `text`, but integers only where it has no other: as in `gemv2T_val<int, float>`, they
    mostly count or index. Parameters of a function around a lambda are settings, such as a momentum in double. Of
    products of cuBLAS it is that of the operands: `gemmSN_NN_kernel<float, ...>` adds up halves in float.
    """
    if "cublasGem" in text and (operand := _FIRST_TENSOR.search(text)) and operand[2]:
        text = operand[1]
    if ")::" in text:
        text = _PARAMETERS.sub("", text)
    if "OpaqueType<" in text and (opaque := _OPAQUE.search(text)):
        return f"{opaque[1]}-byte"
    folded = fold_case(text)
    computed = _FLOATS.search(folded)
    kind = _TYPES[computed[0]] if computed else ""
    if kind in ("", "fp32") and ("tf32" in text if kind else "s1688" in text):
        return "tf32"  # s1688 is the instruction that takes FP32 operands on Tensor Cores
    counts = None if computed else _INTEGERS.search(folded)
    return _TYPES[counts[0]] if counts else kind


def tensile_type(name: str) -> str:
    """Return the number type in Tensile's code: `BBS` is bf16, `SB` fp32."""
    operands = name.partition("_B")[2]  # after Cijk_Ailk
    code = operands[operands.find("_") + 1 :].replace("_", "")[:2]
    return _TENSILE.get(code, "bf16" if code.startswith("B") else "fp16" if code.startswith("H") else "fp32")


def tile_shape(text: str) -> str:
    """Return the tile of a matrix kernel, or "" if its name has none."""
    match = _TILE.search(text)
    return match[1] if match else ""


def operand_layout(text: str) -> str:
    """Return which operands are transposed (`nn`, `tn`, ...), or ""."""
    match = _LAYOUT.search(fold_case(text))
    return match[1] if match else ""


def gpu_architecture(text: str) -> str:
    """Return the architecture that a kernel was compiled for (`sm80`, `volta`), or ""."""
    match = _ARCHITECTURE.search(fold_case(text))
    return "" if not match else f"sm{match[1]}" if match[1] else match[2]


def alignment(text: str) -> str:
    """Return how many elements CUTLASS may load at once (`align1`), or ""."""
    match = _ALIGNMENT.search(text)
    return match[0] if match else ""


def functor_name(arguments: str) -> str:
    """Return what an elementwise or reduction kernel computes, by its template arguments, or ""."""
    for match in _FUNCTORS.finditer(arguments):
        word = next(group for group in match.groups() if group)
        if word in _WRAPPERS:
            continue
        plain = word.strip("_").removeprefix("cuda_")
        return _WORDS.get(plain.lower(), _to_words(plain))
    return ""


def _to_words(word: str) -> str:
    """Return `MulScalar` as lower-case words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", word).lower().replace("_", " ")
