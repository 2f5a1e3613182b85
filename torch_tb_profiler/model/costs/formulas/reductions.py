"""Reductions, normalizations and softmax.

A reduction takes one operation for each element of the input; it reads the input and writes the result.

A normalization that computes its statistics takes 5 operations per element (two for the mean and the variance,
three to apply them), one that has them takes 2; and 6 for each pair of mean and variance. Backward takes 8,
softmax 3, its backward 4. They move their input and output; backward moves two inputs and an output.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from torch_tb_profiler.model.costs.call import Cost, OperatorCall, Tensor, UnknownCostError
from torch_tb_profiler.model.costs.formulas.elementwise import FORMULAS as ELEMENTWISE


class _Reduction(msgspec.Struct, frozen=True):
    """Form of a reduction.

    dim    position of the argument with the reduced dimensions, None if all are reduced
    width  bytes of an element of the result, 0 for that of the input
    """

    dim: int | None
    width: int = 0


_REDUCTIONS = {
    **dict.fromkeys(
        ("sum", "mean", "prod", "amax", "amin", "nansum", "logsumexp", "var", "std", "median"), _Reduction(1)
    ),
    **dict.fromkeys(("argmax", "argmin"), _Reduction(1, 8)),
    **dict.fromkeys(("all", "any"), _Reduction(1, 1)),
    **dict.fromkeys(("norm", "linalg_vector_norm"), _Reduction(2)),
    **dict.fromkeys(("max", "min"), _Reduction(1)),
    "var_mean": _Reduction(1),
}


def reduction(call: OperatorCall) -> Cost:
    name = call.name.removeprefix("aten::")
    second = call.optional_tensor(1)
    if name in ("max", "min") and second is not None and second != call.optional_tensor(2):
        if not call.has_values or not call.value(1):  # of two tensors, element by element
            return ELEMENTWISE["aten::maximum"](msgspec.structs.replace(call, name="aten::maximum"))
    form, x = _REDUCTIONS[name], call.tensor(0)
    count, is_known = _count_results(call, form, x)
    written = count * (form.width or x.width)
    if name in ("max", "min", "median") and count > 1:
        written += 8 * count  # the indices
    return Cost(float(x.count), float(x.bytes + written), "vector", x.type, estimated=not is_known)


def scan(call: OperatorCall) -> Cost:
    """Compute the cost of cumsum and similar operators, whose result has the shape of the input."""
    x = call.tensor(0)
    return Cost(float(x.count), float(x.bytes + x.count * x.width), "vector", x.type)


def _count_results(call: OperatorCall, form: _Reduction, x: Tensor) -> tuple[int, bool]:
    """Return (elements of the result, whether that is known); old traces do not contain the dimensions."""
    if form.dim is None or len(call.inputs) <= form.dim:
        return 1, True
    if not call.has_values:
        return 1, False
    text = call.value(form.dim)
    if text in ("True", "False") or not text.startswith(("[", "-")) and not text.isdecimal():
        return 1, True  # var(self, unbiased), sum(self, dtype)
    dims = call.integers(form.dim)
    if text.isdecimal() and call.name == "aten::sum" and len(call.inputs) == 2:
        return 1, True  # sum(self, dtype): the number of a type
    if any(not -len(x.shape) <= dim < len(x.shape) for dim in dims):
        if x.shape:
            raise UnknownCostError("it reduces a dimension that its input does not have")
        return 1, True
    remaining = set(range(len(x.shape))) - {dim % len(x.shape) for dim in dims} if dims else set()
    return math.prod(x.shape[dim] for dim in remaining), True


def batch_norm(call: OperatorCall) -> Cost:
    """Compute the cost of (input, weight, bias, running_mean, running_var, training, ...)."""
    x = call.tensor(0)
    channels = x.shape[1] if len(x.shape) > 1 else 1
    return _normalization_cost(call, x, range(1, 5), 5 if call.flag(5) else 2, channels)


def layer_norm(call: OperatorCall) -> Cost:
    """Compute the cost of (input, normalized_shape, weight, bias, eps), with statistics of each row."""
    x = call.tensor(0)
    weight = call.optional_tensor(2)
    row = weight.count if weight else math.prod(call.integers(1))
    return _normalization_cost(call, x, range(2, 4), 5, x.count // max(row, 1))


def group_norm(call: OperatorCall) -> Cost:
    """Compute the cost of native_group_norm(input, weight, bias, N, C, HxW, group, eps)."""
    x = call.tensor(0)
    counts = [call.integers(position) for position in (3, 6)]
    if not all(counts):
        raise UnknownCostError("the number of groups is not recorded")
    return _normalization_cost(call, x, range(1, 3), 5, counts[0][0] * counts[1][0])


def rms_norm(call: OperatorCall) -> Cost:
    """Compute the cost of _fused_rms_norm(input, normalized_shape, weight, eps), which subtracts no mean."""
    return _normalization_cost(call, call.tensor(0), range(2, 3), 4, 0)


def norm_backward(call: OperatorCall) -> Cost:
    """Compute the cost for the gradient and the input, the first two tensors, which have the same shape."""
    gradient = call.tensor(0)
    return Cost(8.0 * gradient.count, 3.0 * gradient.count * gradient.width, "vector", gradient.type)


def softmax(call: OperatorCall) -> Cost:
    """Compute the cost of (self, dim, half_to_float)."""
    x = call.tensor(0)
    to_float = call.name.startswith("aten::_") and call.has_values and call.value(2) == "True"
    return Cost(3.0 * x.count, float(x.bytes + x.count * (4 if to_float else x.width)), "vector", x.type)


def softmax_backward(call: OperatorCall) -> Cost:
    x = call.tensor(0)
    return Cost(4.0 * x.count, 3.0 * x.count * x.width, "vector", x.type)


def _normalization_cost(call: OperatorCall, x: Tensor, weights: range, operations: int, statistics: int) -> Cost:
    """Return the cost of a forward normalization.

    weights     positions of the arguments that are read beside `x`
    operations  per element
    statistics  number of pairs of mean and variance
    """
    tensors = [call.optional_tensor(position) for position in weights]
    moved = x.bytes + x.count * x.width + sum(tensor.bytes for tensor in tensors if tensor)
    return Cost(float(operations * x.count + 6 * statistics), float(moved), "vector", x.type)


FORMULAS: dict[str, Callable[[OperatorCall], Cost]] = {
    **{f"aten::{name}": reduction for name in _REDUCTIONS},
    **dict.fromkeys(("aten::cumsum", "aten::cumsum_", "aten::cumprod", "aten::logcumsumexp"), scan),
}
NORM_FORMULAS: dict[str, Callable[[OperatorCall], Cost]] = {
    **dict.fromkeys(
        (
            "aten::native_batch_norm",
            "aten::_native_batch_norm_legit",
            "aten::cudnn_batch_norm",
            "aten::miopen_batch_norm",
            "aten::batch_norm",
        ),
        batch_norm,
    ),
    **dict.fromkeys(("aten::native_layer_norm", "aten::layer_norm"), layer_norm),
    "aten::native_group_norm": group_norm,
    "aten::_fused_rms_norm": rms_norm,
    **dict.fromkeys(
        (
            "aten::native_batch_norm_backward",
            "aten::cudnn_batch_norm_backward",
            "aten::miopen_batch_norm_backward",
            "aten::native_layer_norm_backward",
            "aten::native_group_norm_backward",
        ),
        norm_backward,
    ),
    **dict.fromkeys(("aten::_softmax", "aten::_log_softmax", "aten::softmax", "aten::log_softmax"), softmax),
    **dict.fromkeys(("aten::_softmax_backward_data", "aten::_log_softmax_backward_data"), softmax_backward),
}
