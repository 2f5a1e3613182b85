"""Attention that writes its scores to memory: a product, softmax, another product.

forward     bmm(q, k) --|scale --|_softmax --|dropout --|bmm(p, v) --|
backward    bmm, bmm --|_softmax_backward_data --|bmm, bmm --|

A fused kernel does the same arithmetic and moves all but the scores: no faster than either takes at the peaks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    other_device_work,
    parse_input_shapes,
    times_after_share,
)
from torch_tb_profiler.analyses.shared.attainable import attainable_ns
from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.costs.models import built_in_cost_model
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.ownership import WorkOwners

FORWARD, BACKWARD = "aten::_softmax", "aten::_softmax_backward_data"
PRODUCTS = ("aten::bmm", "aten::baddbmm")
FALLBACK = "aten::_scaled_dot_product_attention_math"
"""What `scaled_dot_product_attention` runs where no fused kernel takes its inputs."""

Shape = tuple[int, ...]


class _Product(NamedTuple):
    """The shapes of a product's factors and result."""

    left: Shape
    right: Shape
    out: Shape


def find_unfused_attention(trace: Trace) -> Iterator[Finding]:
    """Find the time of attention beyond a fused kernel at peak, where the peaks are known."""
    own = operator_work(trace).owners
    if not _softmax_mask(own).any():
        return
    order = _in_order(trace)
    place = np.empty(len(order) + 1, np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    owner = place[own.call]  # of each device event the place of its call in the order
    by_owner = np.argsort(owner, kind="stable")
    cases: dict[str, list[tuple[Int32, np.ndarray]]] = {"operators": [], "fallback": []}
    seen: dict[tuple[int, ...], float | None] = {}
    done = operator_work(trace)
    for at, first, last in _candidates(trace, order):
        calls = order[first : last + 1]
        key = tuple(done.signature[calls].tolist())
        if key not in seen:
            seen[key] = _fused_ns(trace, order, at, first, last)
        fused = seen[key]
        if fused is None:
            continue
        low, high = np.searchsorted(owner[by_owner], [first, last + 1])
        rows = own.events[by_owner[low:high]]
        share = min(1.0, fused / max(1, int(done.device[calls].sum())))
        case = "fallback" if _is_inside(trace, int(own.calls[order[at]]), FALLBACK) else "operators"
        cases[case].append((rows, np.full(len(rows), share)))
    for case, parts in cases.items():
        if parts:
            yield _finding(trace, case, parts)


def _finding(trace: Trace, case: str, parts: list[tuple[Int32, np.ndarray]]) -> Finding:
    rows, share = np.concatenate([each for each, _ in parts]), np.concatenate([each for _, each in parts])
    longest = max(parts, key=lambda part: int(trace.events.duration[part[0]].sum()))[0]
    start = trace.events.start[longest]
    return Finding(
        "unfused_attention",
        times_after_share(trace, rows, share),
        other_device_work(trace, rows),
        distinct(rows),
        on_device=True,
        case=case,
        value=len(parts),
        event=int(longest[np.argmin(start)]),
        window=(int(start.min()), int((start + trace.events.duration[longest]).max())),
    )


def _softmax_mask(owners: WorkOwners) -> Bool:
    """Return bool[k]: which of the calls are a softmax, or its gradient."""
    mask: Bool = name_mask(owners.names, (FORWARD, BACKWARD).__contains__)[owners.name]
    return mask


def _in_order(trace: Trace) -> Int64:
    """Return int64[k]: the calls of `operator_work` by thread and start."""
    calls = operator_work(trace).owners.calls
    return np.lexsort((trace.events.start[calls], trace.events.thread[calls]))


def _candidates(trace: Trace, order: Int64) -> Iterator[tuple[int, int, int]]:
    """Yield (softmax, first, last call) as positions in the order: what is between two products on a thread."""
    owners = operator_work(trace).owners
    name, thread = owners.name[order], trace.events.thread[owners.calls[order]]
    product = name_mask(owners.names, PRODUCTS.__contains__)[name]
    between = name_mask(owners.names, _may_be_between)[name]
    softmax = np.flatnonzero(_softmax_mask(owners)[order])
    place = np.arange(len(order))
    before = np.maximum.accumulate(np.where(between, -1, place)) if len(order) else place
    after = np.minimum.accumulate(np.where(between, len(order), place)[::-1])[::-1] if len(order) else place
    backward = name_mask(owners.names, BACKWARD.__eq__)[name]
    for at in softmax.tolist():
        first = int(before[at - 1]) if at else -1
        last = int(after[at + 1]) if at + 1 < len(order) else len(order)
        if first < 0 or last == len(order) or not (product[first] and product[last]):
            continue
        if backward[at]:  # each product of forward has two
            first -= int(first > 0 and product[first - 1])
            last += int(last + 1 < len(order) and product[last + 1])
        if (thread[first : last + 1] == thread[at]).all():
            yield at, first, last


def _may_be_between(name: str) -> bool:
    model = built_in_cost_model(name)
    return name not in (FORWARD, BACKWARD) and model is not None and model.family in ("elementwise", "movement")


def _fused_ns(trace: Trace, order: Int64, at: int, first: int, last: int) -> float | None:
    """Return the least time of a fused kernel; None if the products aren't on the scores, or a peak is unknown."""
    done = operator_work(trace)
    shapes = parse_input_shapes(trace, int(done.owners.calls[order[at]]))
    scores = shapes[0] if shapes else ()
    if len(scores) < 2:
        return None
    products = {
        place: _product(trace, done.owners, int(order[place]))
        for place in range(first, last + 1)
        if done.owners.names[done.owners.name[order[place]]] in PRODUCTS
    }
    before = [each for place, each in products.items() if place < at and each is not None]
    after = [each for place, each in products.items() if place > at and each is not None]
    if len(before) + len(after) < len(products):
        return None
    if not any(_same(each.out, scores) for each in before):
        return None
    if not all(_same(each.left, scores) or _same(each.right, scores) for each in after):
        return None
    calls = order[list(products)]
    outside = sum(
        math.prod(shape)
        for each in products.values()
        if each is not None
        for shape in each
        if not _same(shape, scores)
    )
    width = _width(trace, calls)
    if width is None:
        return None
    (fused,) = attainable_ns(trace, calls, moved_bytes=outside * width).tolist()
    return None if math.isnan(fused) else fused


def _product(trace: Trace, owners: WorkOwners, call: int) -> _Product | None:
    shapes = parse_input_shapes(trace, int(owners.calls[call]))
    at = 1 if owners.names[owners.name[call]] == "aten::baddbmm" else 0
    if len(shapes) < at + 2 or len(shapes[at]) != 3 or len(shapes[at + 1]) != 3:
        return None
    left, right = shapes[at], shapes[at + 1]
    return _Product(left, right, (*left[:2], right[2]))


def _same(shape: Shape, scores: Shape) -> bool:
    """Return whether two shapes have as many elements in matrices of the same sizes, transposed or not."""
    return math.prod(shape) == math.prod(scores) and sorted(shape[-2:]) == sorted(scores[-2:])


def _width(trace: Trace, calls: Int64) -> int | None:
    """Return the bytes per element of the products' inputs, None if they differ or are unknown."""
    done = operator_work(trace)
    types = {done.types[code] if code >= 0 else "" for code in done.type[calls].tolist()}
    return {"bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4}.get(types.pop()) if len(types) == 1 else None


def _is_inside(trace: Trace, row: int, name: str) -> bool:
    around = enclosing_operators(trace)
    while row >= 0:
        if trace.strings[trace.events.name[row]] == name:
            return True
        row = int(around[row])
    return False
