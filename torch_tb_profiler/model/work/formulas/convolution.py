"""Convolutions: 2 operations for each weight of a channel and each element of the output.

A weight of shape (out, in / groups, *kernel) is applied to every output element: 2 prod(w[1:]) |out|. A transposed
one, (in, out / groups, *kernel), to every input element: 2 prod(w[1:]) |x|. Backward does as much again for the
gradient of the input and for that of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.tensors import Call, Tensor


class _Form(NamedTuple):
    """Positions of the arguments of an operator; None where it has none. transposed: bool, or where it is said."""

    bias: int | None
    stride: int
    padding: int
    dilation: int | None
    transposed: bool | int = False
    output_padding: int | None = None
    groups: int | None = None


_FORMS = {
    "aten::convolution": _Form(2, 3, 4, 5, 6, 7, 8),
    "aten::_convolution": _Form(2, 3, 4, 5, 6, 7, 8),
    "aten::convolution_overrideable": _Form(2, 3, 4, 5, 6, 7, 8),
    "aten::conv1d": _Form(2, 3, 4, 5),
    "aten::conv2d": _Form(2, 3, 4, 5),
    "aten::conv3d": _Form(2, 3, 4, 5),
    "aten::conv_transpose1d": _Form(2, 3, 4, 7, True, 5, 6),
    "aten::conv_transpose2d": _Form(2, 3, 4, 7, True, 5, 6),
    "aten::conv_transpose3d": _Form(2, 3, 4, 7, True, 5, 6),
    "aten::cudnn_convolution": _Form(None, 3, 2, 4),
    "aten::cudnn_convolution_relu": _Form(2, 3, 4, 5),
    "aten::cudnn_convolution_transpose": _Form(None, 4, 2, 5, True, 3, 6),
    "aten::miopen_convolution": _Form(2, 4, 3, 5),
    "aten::miopen_convolution_relu": _Form(2, 3, 4, 5),
    "aten::miopen_depthwise_convolution": _Form(2, 4, 3, 5),
    "aten::miopen_convolution_transpose": _Form(2, 5, 3, 6, True, 4, 7),
    "aten::mkldnn_convolution": _Form(2, 4, 3, 5),
    "aten::thnn_conv2d": _Form(3, 4, 5, None),
    "aten::_slow_conv2d_forward": _Form(3, 4, 5, None),
    "aten::slow_conv3d_forward": _Form(3, 4, 5, None),
    "aten::_conv_depthwise2d": _Form(3, 4, 5, 6),
    "aten::conv_depthwise3d": _Form(3, 4, 5, 6),
}
"""cuDNN's and MIOpen's operators put the padding before the stride."""


def forward(call: Call) -> Cost:
    form = _FORMS[call.name]
    x, w = call.tensor(0), call.tensor(1)
    transposed = call.flag(form.transposed) if type(form.transposed) is int else bool(form.transposed)
    out = _out_shape(call, form, x, w, transposed)
    bias = call.given(form.bias) if form.bias is not None else None
    moved = x.bytes + w.bytes + (bias.bytes if bias else 0) + math.prod(out) * x.width
    return Cost(_flops(w, x.count if transposed else math.prod(out)), float(moved), "matrix", x.type)


def backward(call: Call) -> Cost:
    """convolution_backward(grad_output, input, weight, ..., transposed 7, ..., output_mask 10)."""
    go, x, w = call.tensor(0), call.tensor(1), call.tensor(2)
    mask = [each.strip() == "True" for each in call.value(10).strip("[]").split(",")]
    if len(mask) != 3:
        raise Unknown("which gradients are wanted is not recorded")
    once = _flops(w, x.count if call.flag(7) else go.count)
    moved = 0
    if mask[0]:
        moved += go.bytes + w.bytes + x.count * x.width
    if mask[1]:
        moved += go.bytes + x.bytes + w.count * w.width
    if mask[2]:
        moved += go.bytes + go.shape[1] * go.width
    products = int(mask[0]) + int(mask[1])
    return Cost(products * once, float(moved), "matrix" if products else "vector", go.type)


def backward_input(call: Call) -> Cost:
    """cudnn_convolution_backward_input(input sizes, grad_output, weight): old traces do not spell the sizes."""
    go, w = call.tensor(1), call.tensor(2)
    sizes = call.numbers(0) if call.spelled else ()
    moved = float(go.bytes + w.bytes + math.prod(sizes) * go.width) if sizes else None
    reason = None if sizes else "the shape of its result is not recorded"
    return Cost(_flops(w, go.count), moved, "matrix", go.type, reason=reason)


def _flops(w: Tensor, places: int) -> float:
    return float(2 * math.prod(w.shape[1:]) * places)


def _out_shape(call: Call, form: _Form, x: Tensor, w: Tensor, transposed: bool) -> tuple[int, ...]:
    """(batch, channels, *spatial) by the arithmetic of torch.nn.Conv2d and ConvTranspose2d."""
    dims = len(w.shape) - 2
    if dims < 1 or len(x.shape) not in (dims + 1, dims + 2):
        raise Unknown("its shapes are none of a convolution")
    size, kernel = x.shape[-dims:], w.shape[2:]
    stride, dilation = (_each(call, at, dims, 1) for at in (form.stride, form.dilation))
    padding = _padding(call, form.padding, kernel, dilation)
    batch = x.shape[: -dims - 1]
    if transposed:
        extra = _each(call, form.output_padding, dims, 0)
        groups = call.numbers(form.groups)[0] if form.groups is not None else 1
        spatial = [
            (n - 1) * s - p + d * (k - 1) + e + 1
            for n, s, p, d, k, e in zip(size, stride, padding, dilation, kernel, extra, strict=True)
        ]
        channels = w.shape[1] * groups
    else:
        spatial = [
            (n + p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip(size, padding, dilation, kernel, stride, strict=True)
        ]
        channels = w.shape[0]
    if min(spatial) < 0:
        raise Unknown("its shapes are none of a convolution")
    return (*batch, channels, *spatial)


def _each(call: Call, at: int | None, dims: int, default: int) -> tuple[int, ...]:
    """A value for each dimension; one stands for all."""
    values = call.numbers(at) if at is not None else ()
    if len(values) not in (0, 1, dims) or (default == 1 and 0 in values):
        raise Unknown("a value of its arguments cannot be read")
    return values if len(values) == dims else (values or (default,)) * dims


def _padding(call: Call, at: int, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> list[int]:
    """Of both sides together; "same" and "valid" are words."""
    word = call.value(at).strip("\"'")
    if word == "same":
        return [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if word == "valid":
        return [0] * len(kernel)
    return [2 * each for each in _each(call, at, len(kernel), 0)]


FORMULAS: dict[str, Callable[[Call], Cost]] = {
    **dict.fromkeys(_FORMS, forward),
    "aten::convolution_backward": backward,
    "aten::convolution_backward_overrideable": backward,
    "aten::cudnn_convolution_backward_input": backward_input,
    "aten::miopen_convolution_backward_input": backward_input,
}
