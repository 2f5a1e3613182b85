"""Element types by every name that traces use: their size, and the peak rate that their arithmetic counts as."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from torch_tb_profiler.base.patterns import Words

Unit = Literal["matrix", "vector"]
"""What does the arithmetic: Tensor (matrix) cores or the vector units."""

# In lower case, without "c10::", underscores and spaces. Collectives write `BFloat16`, operators `c10::BFloat16`.
_BYTES = {
    "bool": 1, "byte": 1, "char": 1, "unsignedchar": 1, "signedchar": 1, "int8": 1, "uint8": 1,
    "short": 2, "shortint": 2, "unsignedshort": 2, "int16": 2, "uint16": 2,
    "half": 2, "bfloat16": 2, "float16": 2,
    "int": 4, "unsignedint": 4, "int32": 4, "uint32": 4, "float": 4, "float32": 4,
    "long": 8, "longint": 8, "longlong": 8, "unsignedlong": 8, "unsignedlongint": 8, "int64": 8, "uint64": 8,
    "double": 8, "float64": 8,
    "complexhalf": 4, "complex<half>": 4, "complex32": 4,
    "complexfloat": 8, "complex<float>": 8, "complex64": 8,
    "complexdouble": 16, "complex<double>": 16, "complex128": 16,
    "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
    "bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "bits8": 1, "bits16": 2,
}  # fmt: skip
_KNOWN_NAMES = 100
"""Names of types whose size is remembered; a trace has thousands of tensors of a few types."""

_ONE_BYTE_FLOATS = ("float8e", "float4e")

_PEAKS = (
    ("bf16", Words("bfloat16")),
    ("fp16", Words("half float16")),
    ("fp8", Words("float8")),
    ("fp4", Words("float4")),
    ("fp64", Words("double float64")),
    ("fp32", Words("float")),
    ("int8", Words("char byte int8")),
)
"""Names of peak rates, and the types that they are of; the first that matches."""

_TF32_KERNEL = Words("tf32 s1688")
"""Names of kernels of float inputs that Tensor Cores (Ampere and later) rounded to 10 bits."""


@lru_cache(_KNOWN_NAMES)
def bytes_per_element(name: str) -> int | None:
    """Return the bytes of one element; None for an unknown type, and for lists of tensors."""
    plain = "".join(name.lower().replace("c10::", "").replace("at::", "").replace("torch.", "").split())
    plain = plain.replace("_", "")
    if plain.startswith(_ONE_BYTE_FLOATS):
        return 1  # float4 comes as pairs
    return _BYTES.get(plain)


@lru_cache(_KNOWN_NAMES)
def _peak_of_type(plain: str) -> str:
    return next((name for name, types in _PEAKS if types.search(plain)), "")


def peak_dtype(dtype: str, unit: Unit | None, kernel: str) -> str:
    """Return the name of the peak rate that arithmetic in `kernel` counts as; "" if there is none.

    Vector units compute shorter floats in single precision.
    """
    if unit is None:
        return ""
    name = _peak_of_type(dtype.lower())
    if unit == "vector":
        return "fp64" if name == "fp64" else "fp32"
    return "tf32" if name == "fp32" and _TF32_KERNEL.search(kernel.lower()) else name
