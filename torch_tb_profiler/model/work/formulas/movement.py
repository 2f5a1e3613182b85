"""Operators that only move: no floating-point operation; they read and write."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.tensors import Call, Tensor


def copy(call: Call) -> Cost:
    """copy_(self, src): a cast reads another type than it writes."""
    to, source = call.tensor(0), call.tensor(1)
    return _moved(source.bytes + to.bytes, to)


def clone(call: Call) -> Cost:
    x = call.tensor(0)
    return _moved(x.bytes + x.count * x.width, x)


def fill(call: Call) -> Cost:
    """It reads nothing."""
    x = call.tensor(0)
    return _moved(x.bytes, x)


def cat(call: Call) -> Cost:
    tensors = call.tensors(0)
    return _moved(sum(each.bytes + each.count * each.width for each in tensors), tensors[0])


def index_select(call: Call) -> Cost:
    """(self, dim, index): as many slices as there are indices."""
    x, index = call.tensor(0), call.tensor(2)
    dim = (*call.numbers(1), 0)[0]
    if not -len(x.shape) <= dim < len(x.shape):
        raise Unknown("it selects along a dimension that its input does not have")
    others = x.count // max(x.shape[dim], 1)
    return _moved(2 * index.count * others * x.width + index.bytes, x)


def gather(call: Call) -> Cost:
    """(self, dim, index): an element for each index."""
    x, index = call.tensor(0), call.tensor(2)
    return _moved(2 * index.count * x.width + index.bytes, x)


def scatter(call: Call) -> Cost:
    """(self, dim, index, src), in place: reads the sources and writes as many elements."""
    x, index = call.tensor(0), call.tensor(2)
    return _moved(2 * index.count * x.width + index.bytes, x)


def embedding(call: Call) -> Cost:
    """(weight, indices): a row for each index."""
    weight, index = call.tensor(0), call.tensor(1)
    return _moved(2 * index.count * math.prod(weight.shape[1:]) * weight.width + index.bytes, weight)


def embedding_backward(call: Call) -> Cost:
    """embedding_dense_backward(grad, indices, num_weights, ...): adds each row; writes the whole gradient."""
    grad, index = call.tensor(0), call.tensor(1)
    rows = call.numbers(2)
    if not rows:
        raise Unknown("the size of the table is not recorded")
    written = rows[0] * (grad.shape[-1] if grad.shape else 1) * grad.width
    return Cost(float(grad.count), float(grad.bytes + index.bytes + written), "vector", grad.type)


def _moved(count: int, tensor: Tensor) -> Cost:
    return Cost(0.0, float(count), None, tensor.type)


FORMULAS: dict[str, Callable[[Call], Cost]] = {
    "aten::copy_": copy,
    **dict.fromkeys(("aten::clone", "aten::contiguous", "aten::roll", "aten::flip"), clone),
    **dict.fromkeys(("aten::fill_", "aten::zero_"), fill),
    **dict.fromkeys(("aten::cat", "aten::_cat", "aten::stack"), cat),
    "aten::index_select": index_select,
    "aten::gather": gather,
    **dict.fromkeys(("aten::scatter_", "aten::scatter_add_"), scatter),
    "aten::embedding": embedding,
    "aten::embedding_dense_backward": embedding_backward,
}
