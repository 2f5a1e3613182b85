"""Convolutions: 2 operations for each weight of a channel and each element of the output.

A weight of shape (out, in / groups, *kernel) is applied to every output element: 2 prod(w[1:]) |out| operations. A
transposed one, (in, out / groups, *kernel), is applied to every input element: 2 prod(w[1:]) |x|. Backward takes
as many for the gradient of the input, and again for that of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from torch_tb_profiler.model.costs.call import Cost, OperatorCall, Tensor, UnknownCostError


class _ConvolutionArguments(msgspec.Struct, frozen=True):
    """Positions of the arguments of an operator, None where it has none; `transposed` may be the value itself."""

    bias: int | None
    stride: int
    padding: int
    dilation: int | None
    transposed: bool | int = False
    output_padding: int | None = None
    groups: int | None = None


_ARGUMENTS = {
    "aten::convolution": _ConvolutionArguments(2, 3, 4, 5, 6, 7, 8),
    "aten::_convolution": _ConvolutionArguments(2, 3, 4, 5, 6, 7, 8),
    "aten::convolution_overrideable": _ConvolutionArguments(2, 3, 4, 5, 6, 7, 8),
    "aten::conv1d": _ConvolutionArguments(2, 3, 4, 5),
    "aten::conv2d": _ConvolutionArguments(2, 3, 4, 5),
    "aten::conv3d": _ConvolutionArguments(2, 3, 4, 5),
    "aten::conv_transpose1d": _ConvolutionArguments(2, 3, 4, 7, True, 5, 6),
    "aten::conv_transpose2d": _ConvolutionArguments(2, 3, 4, 7, True, 5, 6),
    "aten::conv_transpose3d": _ConvolutionArguments(2, 3, 4, 7, True, 5, 6),
    "aten::cudnn_convolution": _ConvolutionArguments(None, 3, 2, 4),
    "aten::cudnn_convolution_relu": _ConvolutionArguments(2, 3, 4, 5),
    "aten::cudnn_convolution_transpose": _ConvolutionArguments(None, 4, 2, 5, True, 3, 6),
    "aten::miopen_convolution": _ConvolutionArguments(2, 4, 3, 5),
    "aten::miopen_convolution_relu": _ConvolutionArguments(2, 3, 4, 5),
    "aten::miopen_depthwise_convolution": _ConvolutionArguments(2, 4, 3, 5),
    "aten::miopen_convolution_transpose": _ConvolutionArguments(2, 5, 3, 6, True, 4, 7),
    "aten::mkldnn_convolution": _ConvolutionArguments(2, 4, 3, 5),
    "aten::thnn_conv2d": _ConvolutionArguments(3, 4, 5, None),
    "aten::_slow_conv2d_forward": _ConvolutionArguments(3, 4, 5, None),
    "aten::slow_conv3d_forward": _ConvolutionArguments(3, 4, 5, None),
    "aten::_conv_depthwise2d": _ConvolutionArguments(3, 4, 5, 6),
    "aten::conv_depthwise3d": _ConvolutionArguments(3, 4, 5, 6),
}
"""By operator; cuDNN and MIOpen put the padding before the stride."""


def forward(call: OperatorCall) -> Cost:
    arguments = _ARGUMENTS[call.name]
    x, w = call.tensor(0), call.tensor(1)
    transposed = (
        call.flag(arguments.transposed) if type(arguments.transposed) is int else bool(arguments.transposed)
    )
    out = _compute_out_shape(call, arguments, x, w, transposed)
    bias = call.optional_tensor(arguments.bias) if arguments.bias is not None else None
    moved = x.bytes + w.bytes + (bias.bytes if bias else 0) + math.prod(out) * x.width
    return Cost(_product_flops(w, x.count if transposed else math.prod(out)), float(moved), "matrix", x.type)


def backward(call: OperatorCall) -> Cost:
    """Compute the cost of convolution_backward(grad_output, input, weight, ...).

    Argument 7 is `transposed`, 10 is `output_mask`.
    """
    go, x, w = call.tensor(0), call.tensor(1), call.tensor(2)
    mask = [flag.strip() == "True" for flag in call.value(10).strip("[]").split(",")]
    if len(mask) != 3:
        raise UnknownCostError("its output mask is not recorded")
    flops = _product_flops(w, x.count if call.flag(7) else go.count)
    moved = 0
    if mask[0]:
        moved += go.bytes + w.bytes + x.count * x.width
    if mask[1]:
        moved += go.bytes + x.bytes + w.count * w.width
    if mask[2]:
        moved += go.bytes + go.shape[1] * go.width
    products = int(mask[0]) + int(mask[1])
    return Cost(products * flops, float(moved), "matrix" if products else "vector", go.type)


def backward_input(call: OperatorCall) -> Cost:
    """Compute the cost of cudnn_convolution_backward_input(input sizes, grad_output, weight).

    Old traces do not contain the sizes.
    """
    go, w = call.tensor(1), call.tensor(2)
    sizes = call.integers(0) if call.has_values else ()
    moved = float(go.bytes + w.bytes + math.prod(sizes) * go.width) if sizes else None
    reason = None if sizes else "the shape of its result is not recorded"
    return Cost(_product_flops(w, go.count), moved, "matrix", go.type, reason=reason)


def _product_flops(w: Tensor, applications: int) -> float:
    return float(2 * math.prod(w.shape[1:]) * applications)


def _compute_out_shape(
    call: OperatorCall, arguments: _ConvolutionArguments, x: Tensor, w: Tensor, transposed: bool
) -> tuple[int, ...]:
    """Return (batch, channels, *spatial) by the arithmetic of torch.nn.Conv2d and ConvTranspose2d."""
    dims = len(w.shape) - 2
    if dims < 1 or len(x.shape) not in (dims + 1, dims + 2):
        raise UnknownCostError("its shapes are not those of a convolution")
    size, kernel = x.shape[-dims:], w.shape[2:]
    stride, dilation = (
        _repeat_per_dimension(call, position, dims, 1) for position in (arguments.stride, arguments.dilation)
    )
    padding = _read_padding(call, arguments.padding, kernel, dilation)
    batch = x.shape[: -dims - 1]
    if transposed:
        extra = _repeat_per_dimension(call, arguments.output_padding, dims, 0)
        groups = call.integers(arguments.groups)[0] if arguments.groups is not None else 1
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
        raise UnknownCostError("its shapes are not those of a convolution")
    return (*batch, channels, *spatial)


def _repeat_per_dimension(call: OperatorCall, position: int | None, dims: int, default: int) -> tuple[int, ...]:
    """Return a value for each dimension from a list, or from one value for all."""
    values = call.integers(position) if position is not None else ()
    if len(values) not in (0, 1, dims) or (default == 1 and 0 in values):
        raise UnknownCostError("a value of its arguments can't be read")
    return values if len(values) == dims else (values or (default,)) * dims


def _read_padding(
    call: OperatorCall, position: int, kernel: tuple[int, ...], dilation: tuple[int, ...]
) -> list[int]:
    """Return the padding of both sides together, from numbers or the words "same" and "valid"."""
    word = call.value(position).strip("\"'")
    if word == "same":
        return [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if word == "valid":
        return [0] * len(kernel)
    return [2 * value for value in _repeat_per_dimension(call, position, len(kernel), 0)]


FORMULAS: dict[str, Callable[[OperatorCall], Cost]] = {
    **dict.fromkeys(_ARGUMENTS, forward),
    "aten::convolution_backward": backward,
    "aten::convolution_backward_overrideable": backward,
    "aten::cudnn_convolution_backward_input": backward_input,
    "aten::miopen_convolution_backward_input": backward_input,
}
