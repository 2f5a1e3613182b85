"""Matrix products: 2 M N K operations each; a bias is not counted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.tensors import Call, Tensor

_OUT_TYPES = {"5": 2, "6": 4, "15": 2}
"""Bytes of the output of a scaled product by its `ScalarType`: half, float, bfloat16."""


def mm(call: Call) -> Cost:
    """self @ mat2, with a batch dimension or without."""
    return _product(call, call.tensor(0), call.tensor(1))


def addmm(call: Call) -> Cost:
    """beta * input + mat1 @ mat2; the input is not read where beta is 0."""
    cost = _product(call, call.tensor(1), call.tensor(2))
    read = 0 if call.spelled and call.value(3) in ("0", "0.", "0.0") else call.tensor(0).bytes
    return cost._replace(bytes=(cost.bytes or 0) + read)


def mv(call: Call) -> Cost:
    """A matrix by a vector, or two vectors."""
    left, right = call.tensor(0), call.tensor(1)
    if len(right.shape) != 1 or not left.shape or left.shape[-1] != right.shape[0]:
        raise Unknown("its shapes are none of a product")
    return _cost(left, [left, right], 2 * left.count, left.count // max(right.count, 1) * left.width)


def addmv(call: Call) -> Cost:
    cost = mv(call._replace(inputs=call.inputs[1:]))
    return cost._replace(bytes=(cost.bytes or 0) + call.tensor(0).bytes)


def linear(call: Call) -> Cost:
    """input @ weight.T + bias: the weight is N x K."""
    left, weight, bias = call.tensor(0), call.tensor(1), call.given(2)
    if len(weight.shape) not in (1, 2) or not left.shape or left.shape[-1] != weight.shape[-1]:
        raise Unknown("its shapes are none of a product")
    out = math.prod(left.shape[:-1]) * (weight.shape[0] if len(weight.shape) == 2 else 1)
    read = [left, weight] if bias is None else [left, weight, bias]
    return _cost(left, read, 2 * out * left.shape[-1], out * left.width)


def scaled_mm(call: Call) -> Cost:
    """A product of 8- or 4-bit floats with scales; a packed pair of 4-bit floats counts as one element of K.

    self, mat2, then in any order of the versions two scales and a bias; `out_dtype` decides the output's type.
    """
    left, right = call.tensor(0), call.tensor(1)
    widths = [_OUT_TYPES[value] for value in call.values if value in _OUT_TYPES] if call.spelled else []
    cost = _product(call, left, right, widths[-1] if widths else 2)
    more = sum(each.bytes for each in call.inputs[2:] if isinstance(each, Tensor))
    packed = 2 if "float4" in left.type.lower() else 1
    return cost._replace(flops=packed * (cost.flops or 0), bytes=(cost.bytes or 0) + more)


def _product(call: Call, left: Tensor, right: Tensor, out_width: int | None = None) -> Cost:
    if len(left.shape) < 2 or len(right.shape) < 2:
        if call.name != "aten::matmul":
            raise Unknown("its shapes are none of a product")
        return (
            mv(call)
            if len(right.shape) == 1
            else _cost(left, [left, right], 2 * right.count, right.shape[-1] * left.width)
        )
    batch = _broadcast(left.shape[:-2], right.shape[:-2])
    if left.shape[-1] != right.shape[-2]:
        raise Unknown("its shapes are none of a product")
    out = math.prod(batch) * left.shape[-2] * right.shape[-1]
    width = (4 if left.width == 1 else left.width) if out_width is None else out_width
    return _cost(left, [left, right], 2 * out * left.shape[-1], out * width)


def _broadcast(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    longest = max(len(left), len(right))
    pairs = zip(
        (1,) * (longest - len(left)) + tuple(left), (1,) * (longest - len(right)) + tuple(right), strict=True
    )
    return tuple(b if a == 1 else a for a, b in pairs)


def _cost(kind: Tensor, read: Sequence[Tensor], flops: int, written: int) -> Cost:
    return Cost(float(flops), float(sum(each.bytes for each in read) + written), "matrix", kind.type)


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
