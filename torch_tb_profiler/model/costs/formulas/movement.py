"""Operators that only move data: they read and write, without floating-point operations."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch_tb_profiler.model.costs.call import Cost, OperatorCall, Tensor, UnknownCostError


def copy(call: OperatorCall) -> Cost:
    """Compute the cost of copy_(self, src); a cast reads another type than it writes."""
    target, source = call.tensor(0), call.tensor(1)
    return _move_cost(source.bytes + target.bytes, target)


def clone(call: OperatorCall) -> Cost:
    x = call.tensor(0)
    return _move_cost(x.bytes + x.count * x.width, x)


def fill(call: OperatorCall) -> Cost:
    """Compute the cost of an operator that only writes."""
    x = call.tensor(0)
    return _move_cost(x.bytes, x)


def cat(call: OperatorCall) -> Cost:
    tensors = call.tensor_list(0)
    return _move_cost(sum(tensor.bytes + tensor.count * tensor.width for tensor in tensors), tensors[0])


def index_select(call: OperatorCall) -> Cost:
    """Compute the cost of (self, dim, index): one slice per index."""
    x, index = call.tensor(0), call.tensor(2)
    dim = (*call.integers(1), 0)[0]
    if not -len(x.shape) <= dim < len(x.shape):
        raise UnknownCostError("it selects along a dimension that its input does not have")
    slice_count = x.count // max(x.shape[dim], 1)
    return _move_cost(2 * index.count * slice_count * x.width + index.bytes, x)


def gather_or_scatter(call: OperatorCall) -> Cost:
    """Compute the cost of gather (self, dim, index) or of scatter (self, dim, index, src) in place.

    Both read and write one element per index.
    """
    x, index = call.tensor(0), call.tensor(2)
    return _move_cost(2 * index.count * x.width + index.bytes, x)


def embedding(call: OperatorCall) -> Cost:
    """Compute the cost of (weight, indices): one row per index."""
    weight, index = call.tensor(0), call.tensor(1)
    row = math.prod(weight.shape[1:])
    return _move_cost(2 * index.count * row * weight.width + index.bytes, weight)


def embedding_backward(call: OperatorCall) -> Cost:
    """Compute the cost of embedding_dense_backward(grad, indices, num_weights, ...).

    It adds each row, and writes the gradient of the entire table.
    """
    grad, index = call.tensor(0), call.tensor(1)
    rows = call.integers(2)
    if not rows:
        raise UnknownCostError("the size of the table is not recorded")
    written = rows[0] * (grad.shape[-1] if grad.shape else 1) * grad.width
    return Cost(float(grad.count), float(grad.bytes + index.bytes + written), "vector", grad.type)


def _move_cost(moved: int, tensor: Tensor) -> Cost:
    return Cost(0.0, float(moved), None, tensor.type)


FORMULAS: dict[str, Callable[[OperatorCall], Cost]] = {
    "aten::copy_": copy,
    **dict.fromkeys(("aten::clone", "aten::contiguous", "aten::roll", "aten::flip"), clone),
    **dict.fromkeys(("aten::fill_", "aten::zero_"), fill),
    **dict.fromkeys(("aten::cat", "aten::_cat", "aten::stack"), cat),
    "aten::index_select": index_select,
    **dict.fromkeys(("aten::gather", "aten::scatter_", "aten::scatter_add_"), gather_or_scatter),
    "aten::embedding": embedding,
    "aten::embedding_dense_backward": embedding_backward,
}
