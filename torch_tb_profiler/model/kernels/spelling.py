"""Parts of kernel names as people say them: number types, tiles and layouts, functors of elementwise kernels."""

from __future__ import annotations

import re

_TYPES = (
    ("bf16", r"bfloat16|bf16"),
    ("fp16", r"c10::half|__half|half_t|(?<![a-z])fp?16(?!\d)|(?<![a-z])half(?![a-z])"),
    ("fp8", r"float8|fp8|e4m3|e5m2"),
    ("fp4", r"fp4|e2m1"),
    ("tf32", r"tf32|tfloat32"),
    ("complex64", r"complex<float>"),
    ("complex128", r"complex<double>"),
    ("fp64", r"(?<![a-z_])double(?![a-z_])|(?<![a-z])fp?64(?!\d)"),
    ("fp32", r"(?<![a-z_])float(?![a-z_])|(?<![a-z])fp?32(?!\d)"),
    ("int64", r"(?<![a-z_ ])(?:long|int64_t)(?![a-z_])"),
    ("int8", r"signed char|int8_t"),
    ("uint8", r"unsigned char|uint8_t"),
    ("bool", r"(?<![a-z_])bool(?![a-z_])"),
    ("int32", r"(?<![a-z_])(?:int|int32_t)(?![a-z_])"),
)
_ANY_TYPE = re.compile("|".join(f"(?P<t{at}>{pattern})" for at, (_, pattern) in enumerate(_TYPES)), re.IGNORECASE)
_TENSILE = {"BB": "bf16", "HH": "fp16", "SB": "fp32", "SS": "fp32", "F8": "fp8", "I8": "int8", "DB": "fp64"}
_TILE = re.compile(r"(?:^|_|MT|bt|tilesize|[^a-zA-Z0-9x])(\d+x\d+(?:x\d+)?)")
_LAYOUT = re.compile(r"_([nt]{2,3})(?=[_ ,]|$)", re.IGNORECASE)
_ARCHITECTURE = re.compile(
    r"(?:cutlass_|sm_?)(\d{2,3})|(volta|turing|ampere|hopper|maxwell|pascal)", re.IGNORECASE
)
_ALIGNMENT = re.compile(r"align\d+")

_FUNCTORS = re.compile(
    r"direct_(copy)_kernel|std::(plus|minus|multiplies|divides)\b|at::native::([A-Z][a-z]+)<|(\w+?)CUDAKernelImpl|"
    r"(\w+?)_(?:backward_)?(?:cuda_)?kernel(?:_cuda|_impl)?(?=[<(:])|CUDAFunctor(?:OnSelf)?_(\w+)|"
    r"launch_(\w+?)(?:_scalar)?\(|(\w+?)(?:Scalar)?Functor\b|(\w+)_functor\b|(\w+)Ops\b|(\w+)_cuda_out|(\w+)_out\b"
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


_OPAQUE = re.compile(r"OpaqueType<(\d+)")


def number_type(text: str) -> str:
    """The first number type that is named, "" if none is; `2-byte` where only its size is."""
    if opaque := _OPAQUE.search(text):
        return f"{opaque[1]}-byte"
    match = _ANY_TYPE.search(text)
    if match is None and "s1688" in text:
        return "tf32"  # the instruction that takes FP32 operands on Tensor Cores
    return _TYPES[int(str(match.lastgroup)[1:])][0] if match else ""


def tensile_type(name: str) -> str:
    """Tensile's code of types: `BBS` is bf16, `SB` fp32."""
    operands = name.partition("_B")[2]  # after Cijk_Ailk
    code = operands[operands.find("_") + 1 :].replace("_", "")[:2]
    return _TENSILE.get(code, "bf16" if code.startswith("B") else "fp16" if code.startswith("H") else "fp32")


def tile_shape(text: str) -> str:
    """The tile of a matrix kernel, "" if it is not named."""
    match = _TILE.search(text)
    return match[1] if match else ""


def operand_layout(text: str) -> str:
    """`nn`, `tn`, ...: which operands are transposed."""
    match = _LAYOUT.search(text)
    return match[1].lower() if match else ""


def gpu_architecture(text: str) -> str:
    """`sm80` or `volta`: for which a kernel was compiled."""
    match = _ARCHITECTURE.search(text)
    return "" if not match else f"sm{match[1]}" if match[1] else match[2].lower()


def alignment(text: str) -> str:
    """`align1`: how many elements CUTLASS may load at once."""
    match = _ALIGNMENT.search(text)
    return match[0] if match else ""


def functor_name(arguments: str) -> str:
    """What an elementwise or reduction kernel computes, "" if its arguments do not say."""
    for match in _FUNCTORS.finditer(arguments):
        word = next(group for group in match.groups() if group)
        if word in _WRAPPERS:
            continue
        plain = word.strip("_").removeprefix("cuda_")
        return _WORDS.get(plain.lower(), _split(plain))
    return ""


def _split(word: str) -> str:
    """MeanOps' `Mean`, `MulScalar`: words in lower case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", word).lower().replace("_", " ")
