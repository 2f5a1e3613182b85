"""Matrix products: 2 M N K operations each; a bias is not counted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from torch_tb_profiler.model.costs.call import Cost, OperatorCall, Tensor, UnknownCostError

_OUT_WIDTHS = {"5": 2, "6": 4, "15": 2}
"""Bytes per element of the output of a scaled product, by its `ScalarType`: half, float, bfloat16."""

_NO_PRODUCT = "its shapes are not those of a product"


def mm(call: OperatorCall) -> Cost:
    """Compute the cost of self @ mat2, with a batch dimension or without."""
    return _product_cost(call, call.tensor(0), call.tensor(1))


def addmm(call: OperatorCall) -> Cost:
    """Compute the cost of beta * input + mat1 @ mat2; the input is not read if beta is 0."""
    cost = _product_cost(call, call.tensor(1), call.tensor(2))
    is_zero = call.has_values and call.value(3) in ("0", "0.", "0.0")
    return replace(cost, bytes=(cost.bytes or 0) + (0 if is_zero else call.tensor(0).bytes))


def mv(call: OperatorCall) -> Cost:
    """Compute the cost of a matrix times a vector, or of two vectors."""
    left, right = call.tensor(0), call.tensor(1)
    if len(right.shape) != 1 or not left.shape or left.shape[-1] != right.shape[0]:
        raise UnknownCostError(_NO_PRODUCT)
    return _matrix_cost(left, [left, right], 2 * left.count, left.count // max(right.count, 1) * left.width)


def addmv(call: OperatorCall) -> Cost:
    cost = mv(replace(call, inputs=call.inputs[1:]))
    return replace(cost, bytes=(cost.bytes or 0) + call.tensor(0).bytes)


def linear(call: OperatorCall) -> Cost:
    """Compute the cost of input @ weight.T + bias, with a weight of N x K."""
    left, weight, bias = call.tensor(0), call.tensor(1), call.optional_tensor(2)
    if len(weight.shape) not in (1, 2) or not left.shape or left.shape[-1] != weight.shape[-1]:
        raise UnknownCostError(_NO_PRODUCT)
    out = math.prod(left.shape[:-1]) * (weight.shape[0] if len(weight.shape) == 2 else 1)
    read = [left, weight] if bias is None else [left, weight, bias]
    return _matrix_cost(left, read, 2 * out * left.shape[-1], out * left.width)


def scaled_mm(call: OperatorCall) -> Cost:
    """Compute the cost of a product of 8- or 4-bit floats with scales.

    The inputs are self, mat2, then two scales and a bias in an order that depends on the version; `out_dtype` is
    the type of the output. A packed pair of 4-bit floats counts as one element of K.
    """
    left, right = call.tensor(0), call.tensor(1)
    widths = [_OUT_WIDTHS[value] for value in call.values if value in _OUT_WIDTHS] if call.has_values else []
    cost = _product_cost(call, left, right, widths[-1] if widths else 2)
    scales = sum(tensor.bytes for tensor in call.inputs[2:] if isinstance(tensor, Tensor))
    packed = 2 if "float4" in left.type.lower() else 1
    return replace(cost, flops=packed * (cost.flops or 0), bytes=(cost.bytes or 0) + scales)


def _product_cost(call: OperatorCall, left: Tensor, right: Tensor, out_width: int | None = None) -> Cost:
    if len(left.shape) < 2 or len(right.shape) < 2:
        if call.name != "aten::matmul":
            raise UnknownCostError(_NO_PRODUCT)
        if len(right.shape) == 1:
            return mv(call)
        return _matrix_cost(left, [left, right], 2 * right.count, right.shape[-1] * left.width)
    batch = _broadcast(left.shape[:-2], right.shape[:-2])
    if left.shape[-1] != right.shape[-2]:
        raise UnknownCostError(_NO_PRODUCT)
    out = math.prod(batch) * left.shape[-2] * right.shape[-1]
    width = (4 if left.width == 1 else left.width) if out_width is None else out_width
    return _matrix_cost(left, [left, right], 2 * out * left.shape[-1], out * width)


def _broadcast(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    longest = max(len(left), len(right))
    pairs = zip(
        (1,) * (longest - len(left)) + tuple(left), (1,) * (longest - len(right)) + tuple(right), strict=True
    )
    return tuple(b if a == 1 else a for a, b in pairs)


def _matrix_cost(typed: Tensor, read: Sequence[Tensor], flops: int, written: int) -> Cost:
    moved = sum(tensor.bytes for tensor in read) + written
    return Cost(float(flops), float(moved), "matrix", typed.type)


FORMULAS = {
    "aten::mm": mm,
    "aten::bmm": mm,
    "aten::matmul": mm,
    "aten::_int_mm": mm,
    "aten::addmm": addmm,
    "aten::addmm_": addmm,
    "aten::_addmm_activation": addmm,
    "aten::baddbmm": addmm,
    "aten::baddbmm_": addmm,
    "aten::mv": mv,
    "aten::dot": mv,
    "aten::vdot": mv,
    "aten::addmv": addmv,
    "aten::addmv_": addmv,
    "aten::linear": linear,
    "aten::_scaled_mm": scaled_mm,
    "aiter::gemm_a16w16": linear,
    "vllm::rocm_unquantized_gemm": linear,
}
