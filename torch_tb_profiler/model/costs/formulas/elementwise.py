"""Elementwise operators: on tensors, on lists of tensors (`_foreach_*`, optimizers), and in generated kernels.

One operation for each element of the output; a fused multiply and add takes two. The output is not recorded: its
shape is that of the inputs broadcast, its type is what PyTorch promotes them to. In place, both are those of the
first input.

The element type of a list is not recorded; the kernel's template arguments name it. What a kernel that
TorchInductor generated computes is not recorded either, but its inputs are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.costs.call import Cost, OperatorCall, Tensor, UnknownCostError

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
_COMPARISONS = frozenset(
    "eq ne lt le gt ge isfinite isinf isnan logical_and logical_or logical_xor logical_not signbit".split()
)
_FLOATING = frozenset(
    """acos acosh asin asinh atan atanh cos cosh digamma div erf erfc erfinv exp exp2 expm1 lgamma log
log10 log1p log2 logit reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh true_divide""".split()
)
"""Operators whose result is floating point for any input."""

_FUSED_OPTIMIZERS = {"adam": (12, 7), "adamw": (12, 7), "sgd": (4, 3), "adagrad": (6, 5)}
"""Operations per element, and elements read and written per parameter (Adam reads 4 and writes 3)."""

_OPTIMIZER = lazy_regex(r"^aten::_fused_(adamw?|sgd|adagrad)_$")
_KNOWN_TYPES = 100
"""Types of elements that are remembered; a trace has thousands of tensors of a few types."""

FOREACH = lazy_regex(r"^aten::_foreach_([a-z_]+?)_?$")

GENERATED = lazy_regex(r"^triton_(?:poi|red|per)_")
"""TorchInductor's names of elementwise kernels and of reductions."""


class _Operands(msgspec.Struct, frozen=True):
    """Arguments of an operator.

    arguments   number of the first arguments that are operands (a result to write to may follow)
    operations  per element
    """

    arguments: int
    operations: int = 1


_OPERANDS: dict[str, _Operands] = {
    **dict.fromkeys(_UNARY.split(), _Operands(1)),
    **dict.fromkeys(_BINARY.split(), _Operands(2)),
    **dict.fromkeys(_TERNARY.split(), _Operands(3)),
    **dict.fromkeys(_FUSED.split(), _Operands(3, 2)),
}


def elementwise(call: OperatorCall) -> Cost:
    name = call.name.removeprefix("aten::")
    plain = name.removesuffix("_")
    in_place = plain != name
    form = _OPERANDS[plain]
    operands = [tensor for tensor in call.inputs[: form.arguments] if isinstance(tensor, Tensor)]
    if not operands:
        raise UnknownCostError("the shapes of its inputs are not recorded")
    count = math.prod(_broadcast(operands))
    typed = operands[0] if in_place else _promoted_operand(operands)
    width = 1 if plain in _COMPARISONS else typed.width
    if plain in _FLOATING and not in_place and not _is_floating(typed.type):
        width = 4
    moved = sum([tensor.bytes for tensor in operands]) + count * width
    if in_place and form.arguments == 1:
        moved = 2 * operands[0].bytes
    return Cost(float(form.operations * count), float(moved), "vector", typed.type)


def _promoted_operand(operands: list[Tensor]) -> Tensor:
    """Return the operand whose type the result has: a number never decides against a tensor of its kind."""
    if len({tensor.type for tensor in operands}) == 1:
        return operands[0]
    return max(operands, key=lambda tensor: (_kind_rank(tensor.type), bool(tensor.shape), tensor.width))


@lru_cache(_KNOWN_TYPES)
def _kind_rank(type_: str) -> int:
    """Rank bool, integer, float, complex: a number changes a tensor's type only by a higher kind (int + 0.5)."""
    kind = type_.lower()
    return 0 if "bool" in kind else 3 if "complex" in kind else 2 if _is_floating(kind) else 1


@lru_cache(_KNOWN_TYPES)
def _is_floating(type_: str) -> bool:
    return any(word in type_.lower() for word in ("float", "half", "double", "complex"))


def _broadcast(operands: list[Tensor]) -> Sequence[int]:
    """Broadcast shapes by NumPy's rule; raise UnknownCostError where they don't fit."""
    shapes = {tensor.shape for tensor in operands if tensor.shape}  # a number has none
    if len(shapes) < 2:
        return shapes.pop() if shapes else ()
    out = [1] * max(map(len, shapes))
    for shape in shapes:
        for back, n in enumerate(reversed(shape), 1):
            if n != 1 and out[-back] not in (1, n):
                raise UnknownCostError("the shapes of its inputs can't be broadcast")
            out[-back] = n if out[-back] == 1 else out[-back]
    return out


def foreach(call: OperatorCall) -> Cost:
    """Compute the cost of `_foreach_*`: every list is read and one written.

    copy and zero compute nothing and do not read what they overwrite.
    """
    match = FOREACH.match(call.name)
    name = match[1] if match else ""
    lists = [tensors for tensors in call.inputs if isinstance(tensors, tuple) and not isinstance(tensors, Tensor)]
    first = call.tensor_list(0)
    read = lists[1:] if name == "copy" else [] if name == "zero" else lists
    moved = sum(tensor.bytes for tensors in read for tensor in tensors) + sum(
        tensor.count * tensor.width for tensor in first
    )
    operations = 0 if name in ("copy", "zero") else 2 if name in _FUSED.split() else 1
    flops = float(operations * sum(tensor.count for tensor in first))
    return Cost(flops, float(moved), "vector" if flops else None, first[0].type)


def optimizer(call: OperatorCall) -> Cost:
    match = _OPTIMIZER.match(call.name)
    operations, accesses = _FUSED_OPTIMIZERS[match[1] if match else "adam"]
    parameters = call.tensor_list(0)
    count = sum(tensor.count for tensor in parameters)
    moved = float(accesses * count * parameters[0].width)
    return Cost(float(operations * count), moved, "vector", parameters[0].type)


def generated_kernel(call: OperatorCall) -> Cost:
    """Estimate bytes as every tensor argument once.

    That is too little where a tensor is read and written, too much where only a part of it is used.
    """
    tensors = [tensor for tensor in call.inputs if isinstance(tensor, Tensor)]
    if not tensors:
        raise UnknownCostError("the shapes of its inputs are not recorded")
    moved = float(sum(tensor.bytes for tensor in tensors))
    reason = "what a compiled kernel computes is not recorded"
    return Cost(None, moved, "vector", tensors[0].type, estimated=True, reason=reason)


FORMULAS: dict[str, Callable[[OperatorCall], Cost]] = {
    f"aten::{name}{suffix}": elementwise for name in _OPERANDS for suffix in ("", "_")
}
OPTIMIZER_FORMULAS: dict[str, Callable[[OperatorCall], Cost]] = {
    f"aten::_fused_{name}_": optimizer for name in _FUSED_OPTIMIZERS
}
