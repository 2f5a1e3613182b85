"""Normalizations and softmax.

A normalization that computes its statistics takes 5 operations an element (two for the mean and the variance,
three to apply them), one that has them 2; and 6 for each pair of mean and variance. Backward takes 8, softmax 3,
its backward 4. They move their input and output, backward two inputs and an output.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.tensors import Call, Tensor


def batch_norm(call: Call) -> Cost:
    """(input, weight, bias, running_mean, running_var, training, ...)."""
    x = call.tensor(0)
    channels = x.shape[1] if len(x.shape) > 1 else 1
    return _forward(call, x, range(1, 5), 5 if call.flag(5) else 2, channels)


def layer_norm(call: Call) -> Cost:
    """(input, normalized_shape, weight, bias, eps): statistics of each row."""
    x = call.tensor(0)
    weight = call.given(2)
    row = weight.count if weight else math.prod(call.numbers(1))
    return _forward(call, x, range(2, 4), 5, x.count // max(row, 1))


def group_norm(call: Call) -> Cost:
    """native_group_norm(input, weight, bias, N, C, HxW, group, eps)."""
    x = call.tensor(0)
    counts = [call.numbers(at) for at in (3, 6)]
    if not all(counts):
        raise Unknown("the number of groups is not recorded")
    return _forward(call, x, range(1, 3), 5, counts[0][0] * counts[1][0])


def rms_norm(call: Call) -> Cost:
    """_fused_rms_norm(input, normalized_shape, weight, eps): no mean is subtracted."""
    return _forward(call, call.tensor(0), range(2, 3), 4, 0)


def norm_backward(call: Call) -> Cost:
    """The first two tensors are of the input's shape: the gradient and the input."""
    large = call.tensor(0)
    return Cost(8.0 * large.count, 3.0 * large.count * large.width, "vector", large.type)


def softmax(call: Call) -> Cost:
    """(self, dim, half_to_float)."""
    x = call.tensor(0)
    written = 4 if call.name.startswith("aten::_") and call.spelled and call.value(2) == "True" else x.width
    return Cost(3.0 * x.count, float(x.bytes + x.count * written), "vector", x.type)


def softmax_backward(call: Call) -> Cost:
    x = call.tensor(0)
    return Cost(4.0 * x.count, 3.0 * x.count * x.width, "vector", x.type)


def _forward(call: Call, x: Tensor, weights: range, each: int, statistics: int) -> Cost:
    given = [call.given(at) for at in weights]
    moved = x.bytes + x.count * x.width + sum(weight.bytes for weight in given if weight)
    return Cost(float(each * x.count + 6 * statistics), float(moved), "vector", x.type)


FORMULAS: dict[str, Callable[[Call], Cost]] = {
    **dict.fromkeys(
        ("aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::batch_norm"),
        batch_norm,
    ),
    "aten::_native_batch_norm_legit": batch_norm,
    "aten::native_layer_norm": layer_norm,
    "aten::layer_norm": layer_norm,
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
    "aten::_softmax_backward_data": softmax_backward,
    "aten::_log_softmax_backward_data": softmax_backward,
}
