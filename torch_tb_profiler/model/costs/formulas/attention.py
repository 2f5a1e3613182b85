"""Fused attention: two products over the P pairs of a query and a key.

Forward takes 2 B Hq P (dqk + dv) operations. Backward computes the scores again and four more products,
2 B Hq P (3 dqk + 2 dv), of which the mathematics needs twice the forward (Dao et al., FlashAttention).
P = Nq Nkv; if causal, the triangle from the top left: m^2 / 2 + (Nq - m) Nkv with m = min(Nq, Nkv).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from torch_tb_profiler.model.costs.call import Cost, OperatorCall, UnknownCostError


class _AttentionArguments(msgspec.Struct, frozen=True):
    """Positions of the arguments of an operator.

    query        of q; k and v follow
    causal       of the flag
    lengths      of the sums of sequence lengths, None if it has none
    heads_first  q is (B, H, N, D), else (B, N, H, D)
    """

    query: int
    causal: int
    lengths: int | None = None
    heads_first: bool = True


_FORWARD = {
    "aten::scaled_dot_product_attention": _AttentionArguments(0, 5),
    "aten::_scaled_dot_product_flash_attention": _AttentionArguments(0, 4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _AttentionArguments(0, 4),
    "aten::_scaled_dot_product_efficient_attention": _AttentionArguments(0, 6),
    "aten::_scaled_dot_product_cudnn_attention": _AttentionArguments(0, 6),
    "aten::_scaled_dot_product_fused_attention_overrideable": _AttentionArguments(0, 5),
    "aten::_cudnn_attention_forward": _AttentionArguments(0, 10, 4),
    "aten::_flash_attention_forward": _AttentionArguments(0, 8, 3, heads_first=False),
    "aten::_efficient_attention_forward": _AttentionArguments(0, 9, 4, heads_first=False),
    "flash_attn::_flash_attn_forward": _AttentionArguments(0, 5, heads_first=False),
}
_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": _AttentionArguments(1, 11, 6),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _AttentionArguments(1, 7),
    "aten::_scaled_dot_product_efficient_attention_backward": _AttentionArguments(1, 11),
    "aten::_scaled_dot_product_cudnn_attention_backward": _AttentionArguments(1, 14, 9),
    "aten::_flash_attention_backward": _AttentionArguments(1, 11, 6, heads_first=False),
    "aten::_efficient_attention_backward": _AttentionArguments(1, 14, 6, heads_first=False),
    "flash_attn::_flash_attn_backward": _AttentionArguments(1, 11, heads_first=False),
}


class _AttentionShape(msgspec.Struct, frozen=True):
    """Sizes of attention.

    heads       batch size times query heads
    pairs       of a query and a key that are computed
    key, value  elements of each
    """

    heads: int
    pairs: float
    key: int
    value: int


def forward(call: OperatorCall) -> Cost:
    arguments = _FORWARD[call.name]
    size = _read_attention_shape(call, arguments)
    q, k, v = (call.tensor(arguments.query + i) for i in range(3))
    moved = q.bytes + k.bytes + v.bytes + q.count // max(size.key, 1) * size.value * q.width
    return Cost(2.0 * size.heads * size.pairs * (size.key + size.value), float(moved), "matrix", q.type)


def backward(call: OperatorCall) -> Cost:
    arguments = _BACKWARD[call.name]
    size = _read_attention_shape(call, arguments)
    q, k, v = (call.tensor(arguments.query + i) for i in range(3))
    out = q.count // max(size.key, 1) * size.value * q.width
    pairs = 2.0 * size.heads * size.pairs
    return Cost(
        pairs * (3 * size.key + 2 * size.value),
        float(2 * (q.bytes + k.bytes + v.bytes + out)),
        "matrix",
        q.type,
        model=2 * pairs * (size.key + size.value),
    )


def _read_attention_shape(call: OperatorCall, arguments: _AttentionArguments) -> _AttentionShape:
    q, k, v = (call.tensor(arguments.query + i) for i in range(3))
    lengths = call.optional_tensor(arguments.lengths) if arguments.lengths is not None else None
    if lengths is not None and lengths.count:
        raise UnknownCostError("the lengths of its packed sequences are not recorded")
    if not len(q.shape) == len(k.shape) == len(v.shape) == 4:
        raise UnknownCostError("its shapes are not those of attention")
    token, head = (2, 1) if arguments.heads_first else (1, 2)
    queries, keys = q.shape[token], k.shape[token]
    return _AttentionShape(
        q.shape[0] * q.shape[head],
        _count_pairs(queries, keys, _is_causal(call, arguments.causal)),
        q.shape[3],
        v.shape[3],
    )


def _is_causal(call: OperatorCall, position: int) -> bool:
    """Return whether the argument is a true flag, or the number of a triangular mask (1 or 2)."""
    return call.value(position) in ("True", "1", "2")


def _count_pairs(queries: int, keys: int, causal: bool) -> float:
    if not causal:
        return float(queries * keys)
    side = min(queries, keys)
    return side * side / 2 + (queries - side) * keys


FORMULAS: dict[str, Callable[[OperatorCall], Cost]] = {
    **dict.fromkeys(_FORWARD, forward),
    **dict.fromkeys(_BACKWARD, backward),
}
