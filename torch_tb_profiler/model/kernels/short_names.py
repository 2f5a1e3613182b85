"""Short names of kernels that tell them apart: what is computed, on what type, in what tile.

cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1     GEMM bf16 128x128 nn, CUTLASS sm75, align1
vectorized_elementwise_kernel<4, FillFunctor<float>, ...>     fill fp32, vec4
ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)                  NCCL AllReduce Sum f32 RING LL
triton_poi_fused_add_mul_3                                    Triton add, mul (3)
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from torch_tb_profiler.model.kernels.families import family_of_name
from torch_tb_profiler.model.kernels.identifiers import KernelIdentifiers, parse_identifiers
from torch_tb_profiler.model.kernels.spelling import (
    alignment,
    functor_name,
    gpu_architecture,
    number_type,
    operand_layout,
    tensile_type,
    tile_shape,
)

MAX_SHORT_NAME_LENGTH = 48
"""Characters of a short name."""

_NCCL = re.compile(r"^(?:nccl|rccl)(?:Dev)?Kernel_(\w+)", re.IGNORECASE)
_TRITON = re.compile(r"^triton_(?:poi|red|per|tem|for|mix)_fused_(\w*?)(?:_?(\d+))?$")
_FUSED = re.compile(
    r"_to_copy|_?unsafe_view|native_(?:layer|batch|group)_norm\w*?(?=_[a-z]|$)|_?scaled_dot_product_\w*?attention|"
    r"constant_pad_[a-z]d|log_softmax|_softmax|index_put|index_select|moe_forward|max_pool2d\w*?indices|[a-z0-9]+"
)
_SHAPING = frozenset(
    "_unsafe_view unsafe_view view transpose permute slice split unsqueeze squeeze expand".split()
)
_VECTOR = re.compile(r"vectorized_\w*elementwise_kernel")
_ROLE = re.compile(r"(fprop|fwd|forward)|(dgrad|bwd_?data|bwd(?!_weight))|(wgrad|wrw|bwd_weight)", re.IGNORECASE)
_CLUTTER = re.compile(r"_?(?:cuda_)?kernel(?=$|_)|Kernel(?=$|_|[A-Z0-9])|^cunn_")
_TOKENS = re.compile(r"[A-Za-z0-9]+")
_TELLING = re.compile(r"(?!c10$|\d+ul?$)(?=.*[a-z])(?=.*\d).{2,12}", re.IGNORECASE)
_PRODUCT = re.compile(r"gemm|cudnn|conv|igemm|xmma|prop|[dw]grad_|nvjet|^bmm_|matmul", re.IGNORECASE)
_FRAME = re.compile(r"[Kk]ernel\d*|kentry|trampoline_kernel|device_kernel|globalKernel")
_MANGLED_WORD = re.compile(r"\d+([A-Z][A-Za-z0-9]{4,}?)I")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Of every name a short one, of at most LONGEST characters and not given to another.

    Where several names would be called alike, each gets what only it spells, else a number in order of the names.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        groups[short_name(name)].append(name)
    taken = {short for short, members in groups.items() if len(members) == 1}
    shortened = {members[0]: short for short, members in groups.items() if len(members) == 1}
    for short, members in groups.items():
        if len(members) == 1:
            continue
        for name, detail in zip(members, _details(members), strict=True):
            candidate, number = _fit(short, f", {detail}" if detail else " #1"), 1
            while candidate in taken:
                number += 1
                candidate = _fit(short, f" #{number}")
            taken.add(candidate)
            shortened[name] = candidate
    return shortened


def _fit(short: str, suffix: str) -> str:
    room = MAX_SHORT_NAME_LENGTH - len(suffix)
    return (short if len(short) <= room else f"{short[: room - 1]}…") + suffix


def _details(names: list[str]) -> list[str]:
    """Of each name the first token with a digit (`32x3`, `stage5`) that no other one has, "" if there is none."""
    tokens = [dict.fromkeys(_TOKENS.findall(name[:4096])) for name in names]
    counts: dict[str, int] = defaultdict(int)
    for each in tokens:
        for token in each:
            counts[token] += 1
    details = []
    for each in tokens:
        own = [token for token in each if counts[token] == 1 and _TELLING.fullmatch(token)]
        details.append(own[0] if own else "")
    return details


def short_name(name: str) -> str:
    """The short name of one kernel, whatever others are called."""
    return _fit(_short(name), "")


@lru_cache(maxsize=65536)
def _short(name: str) -> str:
    if match := _NCCL.match(name):
        return f"NCCL {match[1].replace('_', ' ')}"
    if match := _TRITON.match(name):
        return _triton(match[1], match[2])
    parts, family = parse_identifiers(name), family_of_name(name)
    if family in ("matrix product", "convolution") and (product := _product(name, parts, family)):
        return product
    if family in ("elementwise", "copy and cast", "index and embedding", "reduction", "optimizer", "random"):
        if computed := _computed(parts):
            return computed
    return _plain(parts) if parts.path != name.strip() else parts.path


def _triton(fused: str, number: str | None) -> str:
    operators = list(dict.fromkeys(_FUSED.findall(fused)))
    work = [each for each in operators if each not in _SHAPING] or operators
    listed = ", ".join(each.strip("_").removeprefix("native_") for each in work)
    return _fit(f"Triton {listed or 'kernel'}", f" ({number})" if number else "")


def _product(name: str, parts: KernelIdentifiers, family: str) -> str:
    """`GEMM bf16 128x128 nn, CUTLASS sm75, align1`; "" for what is no named product of a library."""
    text = f"{parts.path} {parts.arguments}"
    if "Cijk_" in name:
        a, b = ("t" if "Alik" in name else "n"), ("n" if "Bljk" in name else "t")
        return f"GEMM {tensile_type(name)} {tile_shape(name)} {a}{b}, Tensile"
    size = tile_shape(text)
    if not size or not _PRODUCT.search(text):
        return ""
    library = next((label for key, label in _LIBRARIES if key in text), "")
    role = _ROLE.search(text)
    direction = ("forward", "dgrad", "wgrad")[int(role.lastindex or 1) - 1] if role else ""
    what = f"conv {direction}".strip() if family == "convolution" else "GEMM"
    kind = number_type(text) or ("fp32" if re.search(r"_s(?:gemm|cudnn)", text) else "")
    head = " ".join(part for part in (what, kind, size, operand_layout(text)) if part)
    made = " ".join(part for part in (library, gpu_architecture(text)) if part)
    return ", ".join(part for part in (head, made, alignment(text)) if part)


_LIBRARIES = (
    ("cutlass", "CUTLASS"),
    ("nvjet", "nvjet"),
    ("igemm_", "MIOpen"),
    ("ck::", "CK"),
    ("xmma", "xmma"),
)


def _computed(parts: KernelIdentifiers) -> str:
    """`multiply bf16, vec4`: what the functor of a kernel computes; "" if it names none."""
    what = functor_name(parts.arguments)
    if not what:
        return ""
    short = f"{what} {number_type(parts.arguments)}".strip()
    first = parts.arguments.split(",", 1)[0]
    if _VECTOR.search(parts.function) and first.isdigit():
        return f"{short}, vec{first}"
    if parts.function.startswith("multi_tensor_apply"):
        return f"foreach {short}"
    return short if "elementwise" in parts.function or "reduce_kernel" in parts.function else ""


def _plain(parts: KernelIdentifiers) -> str:
    """The function in words, with the first type of its arguments."""
    function = parts.function
    if _FRAME.fullmatch(function):  # the namespace or the first argument says more
        word = _MANGLED_WORD.search(parts.arguments)
        inner = parse_identifiers(parts.arguments).function if "::" in parts.arguments else ""
        function = word[1] if word else inner or parts.path.rpartition("::")[0].rpartition("::")[2] or function
    function = function.replace("CatArrayBatchedCopy", "cat")
    function = _CLUTTER.sub("", function).strip("_") or function
    kind = number_type(parts.arguments)
    return f"{function} {kind}" if kind and kind not in function else function
