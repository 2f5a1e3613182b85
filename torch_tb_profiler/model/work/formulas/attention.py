"""Fused attention: two products over the pairs of a query and a key that are computed.

Forward 2 B Hq P (dqk + dv); backward computes the scores again and four more products, 2 B Hq P (3 dqk + 2 dv),
of which the mathematics needs twice the forward (Dao et al., FlashAttention). P = Nq Nkv; causal, the triangle
from the top left: m^2 / 2 + (Nq - m) Nkv with m = min(Nq, Nkv).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.tensors import Call


class _Form(NamedTuple):
    """query: position of q, k and v follow; causal: of the flag; lengths: of the sums of sequence lengths.

    heads_first: q is (B, H, N, D), else (B, N, H, D)
    """

    query: int
    causal: int
    lengths: int | None = None
    heads_first: bool = True


_FORWARD = {
    "aten::scaled_dot_product_attention": _Form(0, 5),
    "aten::_scaled_dot_product_flash_attention": _Form(0, 4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _Form(0, 4),
    "aten::_scaled_dot_product_efficient_attention": _Form(0, 6),
    "aten::_scaled_dot_product_cudnn_attention": _Form(0, 6),
    "aten::_scaled_dot_product_fused_attention_overrideable": _Form(0, 5),
    "aten::_cudnn_attention_forward": _Form(0, 10, 4),
    "aten::_flash_attention_forward": _Form(0, 8, 3, heads_first=False),
    "aten::_efficient_attention_forward": _Form(0, 9, 4, heads_first=False),
    "flash_attn::_flash_attn_forward": _Form(0, 5, heads_first=False),
}
_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": _Form(1, 11, 6),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _Form(1, 7),
    "aten::_scaled_dot_product_efficient_attention_backward": _Form(1, 11),
    "aten::_scaled_dot_product_cudnn_attention_backward": _Form(1, 14, 9),
    "aten::_flash_attention_backward": _Form(1, 11, 6, heads_first=False),
    "aten::_efficient_attention_backward": _Form(1, 14, 6, heads_first=False),
    "flash_attn::_flash_attn_backward": _Form(1, 11, heads_first=False),
}


class _Shape(NamedTuple):
    """Batch times query heads, pairs of a query and a key, sizes of a key and a value."""

    heads: int
    pairs: float
    key: int
    value: int


def forward(call: Call) -> Cost:
    form = _FORWARD[call.name]
    at = _shape(call, form)
    q, k, v = (call.tensor(form.query + i) for i in range(3))
    moved = q.bytes + k.bytes + v.bytes + q.count // max(at.key, 1) * at.value * q.width
    return Cost(2.0 * at.heads * at.pairs * (at.key + at.value), float(moved), "matrix", q.type)


def backward(call: Call) -> Cost:
    form = _BACKWARD[call.name]
    at = _shape(call, form)
    q, k, v = (call.tensor(form.query + i) for i in range(3))
    out = q.count // max(at.key, 1) * at.value * q.width
    pairs = 2.0 * at.heads * at.pairs
    return Cost(
        pairs * (3 * at.key + 2 * at.value),
        float(2 * (q.bytes + k.bytes + v.bytes + out)),
        "matrix",
        q.type,
        model=2 * pairs * (at.key + at.value),
    )


def _shape(call: Call, form: _Form) -> _Shape:
    q, k, v = (call.tensor(form.query + i) for i in range(3))
    lengths = call.given(form.lengths) if form.lengths is not None else None
    if lengths is not None and lengths.count:
        raise Unknown("the lengths of the sequences that it packs are not recorded")
    if not len(q.shape) == len(k.shape) == len(v.shape) == 4:
        raise Unknown("its shapes are none of attention")
    token, head = (2, 1) if form.heads_first else (1, 2)
    queries, keys = q.shape[token], k.shape[token]
    return _Shape(
        q.shape[0] * q.shape[head], _pairs(queries, keys, _causal(call, form.causal)), q.shape[3], v.shape[3]
    )


def _causal(call: Call, at: int) -> bool:
    """A flag, or the number of a mask (1 and 2 are triangles)."""
    return call.value(at) in ("True", "1", "2")


def _pairs(queries: int, keys: int, causal: bool) -> float:
    if not causal:
        return float(queries * keys)
    side = min(queries, keys)
    return side * side / 2 + (queries - side) * keys


FORMULAS: dict[str, Callable[[Call], Cost]] = {
    **dict.fromkeys(_FORWARD, forward),
    **dict.fromkeys(_BACKWARD, backward),
}
