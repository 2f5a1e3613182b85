"""Element types by the names that peaks are listed under: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8."""

from __future__ import annotations

import re

from torch_tb_profiler.model.work.cost import Unit

_TF32 = re.compile(r"tf32|s1688")
"""In the name of a kernel of float inputs: Ampere's and later Tensor Cores rounded them to 10 bits."""

_PATTERNS = (
    ("bf16", re.compile(r"bfloat16")),
    ("fp16", re.compile(r"half|float16")),
    ("fp8", re.compile(r"float8")),
    ("fp4", re.compile(r"float4")),
    ("fp64", re.compile(r"double|float64")),
    ("fp32", re.compile(r"float")),
    ("int8", re.compile(r"char|byte|u?int8")),
)


def peak_type(kind: str, unit: Unit | None, kernel: str) -> str:
    """The type that the arithmetic counts as; "" without arithmetic or for one without peaks.

    Vector units compute shorter floats in single precision.
    """
    if unit is None:
        return ""
    plain = kind.lower()
    name = next((name for name, pattern in _PATTERNS if pattern.search(plain)), "")
    if unit == "vector":
        return "fp64" if name == "fp64" else "fp32"
    return "tf32" if name == "fp32" and _TF32.search(kernel.lower()) else name
