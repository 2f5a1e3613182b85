"""Elementwise operators: one operation for each element of the output (a fused multiply and add takes two).

The output is not recorded: its shape is that of the inputs broadcast, its type what PyTorch promotes them to. In
place, both are those of the first input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.tensors import Call, Tensor

_UNARY = """abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh deg2rad digamma elu erf erfc erfinv exp
exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh i0 isfinite isinf isnan leaky_relu lgamma log
log10 log1p log2 log_sigmoid_forward logical_not logit mish nan_to_num neg positive rad2deg reciprocal relu relu6
round rsqrt selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink sqrt square tan tanh triu tril
trunc celu"""
_BINARY = """add sub rsub mul div true_divide floor_divide fmod remainder pow atan2 bitwise_and bitwise_or
bitwise_xor clamp_min clamp_max copysign eq ne lt le gt ge equal fmax fmin heaviside hypot logaddexp logaddexp2
logical_and logical_or logical_xor maximum minimum masked_fill mse_loss threshold threshold_backward
sigmoid_backward tanh_backward silu_backward gelu_backward elu_backward leaky_relu_backward hardtanh_backward
hardswish_backward hardsigmoid_backward softplus_backward log_sigmoid_backward mish_backward glu_backward
xlogy dropout_backward native_dropout_backward masked_scale prelu"""
_TERNARY = "where clamp smooth_l1_loss huber_loss mse_loss_backward binary_cross_entropy"
_FUSED = "addcmul addcdiv lerp"
_COMPARISONS = """eq ne lt le gt ge isfinite isinf isnan logical_and logical_or logical_xor logical_not
signbit""".split()
_FLOATING = """acos acosh asin asinh atan atanh cos cosh digamma div erf erfc erfinv exp exp2 expm1 lgamma log
log10 log1p log2 logit reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh true_divide""".split()
"""Operators that answer in floating point whatever comes in."""


class _Form(NamedTuple):
    """arguments: how many of the first are operands (a result to write to may follow); operations: an element."""

    arguments: int
    operations: int = 1


def elementwise(call: Call) -> Cost:
    name = call.name.removeprefix("aten::")
    plain = name.removesuffix("_")
    form = _FORMS[plain]
    operands = [each for each in call.inputs[: form.arguments] if isinstance(each, Tensor)]
    if not operands:
        raise Unknown("the shapes of its inputs are not recorded")
    shape = _broadcast(operands)
    kind = operands[0] if name.endswith("_") else promoted(operands)
    width = 1 if plain in _COMPARISONS else kind.width
    if plain in _FLOATING and not _floating(kind) and not name.endswith("_"):
        width = 4
    count = math.prod(shape)
    moved = sum(each.bytes for each in operands) + count * width
    if name.endswith("_") and form.arguments == 1:
        moved = 2 * operands[0].bytes
    return Cost(float(form.operations * count), float(moved), "vector", kind.type)


def promoted(operands: list[Tensor]) -> Tensor:
    """The operand whose type the result has: a number never decides against a tensor of its kind."""
    return max(operands, key=lambda each: (_kind(each), bool(each.shape), each.width))


def _kind(tensor: Tensor) -> int:
    """Numbers without dimensions join only where theirs is a higher kind: int + 0.5 is float."""
    kind = tensor.type.lower()
    return 0 if "bool" in kind else 3 if "complex" in kind else 2 if _floating(tensor) else 1


def _floating(tensor: Tensor) -> bool:
    return any(word in tensor.type.lower() for word in ("float", "half", "double", "complex"))


def _broadcast(operands: list[Tensor]) -> list[int]:
    """NumPy's rule; Unknown where shapes do not go together."""
    out = [1] * max(len(each.shape) for each in operands)
    for each in operands:
        for back, n in enumerate(reversed(each.shape), 1):
            if n != 1 and out[-back] not in (1, n):
                raise Unknown("the shapes of its inputs do not go together")
            out[-back] = n if out[-back] == 1 else out[-back]
    return out


_FORMS = {
    **dict.fromkeys(_UNARY.split(), _Form(1)),
    **dict.fromkeys(_BINARY.split(), _Form(2)),
    **dict.fromkeys(_TERNARY.split(), _Form(3)),
    **dict.fromkeys(_FUSED.split(), _Form(3, 2)),
}

FORMULAS: dict[str, Callable[[Call], Cost]] = {
    f"aten::{name}{place}": elementwise for name in _FORMS for place in ("", "_")
}
