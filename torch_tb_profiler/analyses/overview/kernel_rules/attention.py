"""Attention that writes its scores to memory: a product, softmax, another product.

forward     bmm(q, k) --|scale --|_softmax --|dropout --|bmm(p, v) --|
backward    bmm, bmm --|_softmax_backward_data --|bmm, bmm --|

A fused kernel does the same arithmetic and moves all but the scores: no faster than either takes at the peaks.
Where scores may be masked, it may leave out those above the diagonal; of float32 it may make products in TF32.

`scaled_dot_product_attention` without a fused kernel also casts, scales and masks, forward and backward. All of
that goes, and a fused kernel for 16-bit inputs may take its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    host_times,
    other_device_work,
    parse_input_shapes,
    times_after_share,
)
from torch_tb_profiler.analyses.shared.attainable import attainable_ns
from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.intervals import Intervals, union
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import enclosing_rows
from torch_tb_profiler.model.costs.models import built_in_cost_model
from torch_tb_profiler.model.kinds import Kind, event_intervals, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, name_mask, rows_mask
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.ownership import WorkOwners

FORWARD, BACKWARD = "aten::_softmax", "aten::_softmax_backward_data"
PRODUCTS = ("aten::bmm", "aten::baddbmm")
FALLBACK = "aten::_scaled_dot_product_attention_math"
"""What `scaled_dot_product_attention` runs where no fused kernel takes its inputs."""

WIDTHS = {"bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4}
"""Bytes of an element of the types that fused kernels take."""

UNMASKED = {FORWARD, *PRODUCTS, "aten::mul", "aten::mul_", "aten::div", "aten::div_", "aten::copy_"}
"""Operators of attention whose scores all count: of backward, none says so."""

CAUSAL_SHARE = 0.5
"""Of the pairs of tokens, those that a causal mask leaves."""

Shape = tuple[int, ...]


class _Product(NamedTuple):
    """The shapes of a product's factors and result."""

    left: Shape
    right: Shape
    out: Shape


class _Part(msgspec.Struct, frozen=True):
    """What a fused kernel replaces: time of the host, device work, and the share of that which remains."""

    host: Intervals
    events: Int32
    share: float


def find_unfused_attention(trace: Trace) -> Iterator[Finding]:
    """Find the time of attention beyond a fused kernel at peak, where the peaks are known."""
    if not _softmax_mask(operator_work(trace).owners).any():
        return
    fallbacks = _find_fallbacks(trace)
    parts = [part for each in fallbacks if (part := _build_fallback_part(trace, each)) is not None]
    if parts:
        yield _build_finding(trace, "fallback", parts)
    parts = list(_find_operator_parts(trace, {call for each in fallbacks for call in each.calls.tolist()}))
    if parts:
        yield _build_finding(trace, "operators", parts)


def _build_part(trace: Trace, calls: Int64, host: Intervals, fused_ns: float) -> _Part:
    work = operator_work(trace)
    share = min(1.0, fused_ns / max(1, int(work.device[calls].sum())))
    return _Part(host, work.owners.events[np.isin(work.owners.call, calls)], share)


def _find_operator_parts(trace: Trace, excluded: set[int]) -> Iterator[_Part]:
    """Yield attention that a program spells out, but for calls that belong to a fallback."""
    order, signature = _in_order(trace), operator_work(trace).signature
    seen: dict[tuple[int, ...], float | None] = {}
    for at, first, last in _find_candidates(trace, order):
        calls = order[first : last + 1]
        if not excluded.isdisjoint(calls.tolist()):
            continue
        key = tuple(signature[calls].tolist())
        if key not in seen:
            seen[key] = _estimate_fused_ns(trace, order, at, first, last)
        fused = seen[key]
        if fused is not None:
            yield _build_part(trace, calls, host_times(trace, calls, np.zeros(len(calls), np.int64)), fused)


class _Fallback(msgspec.Struct, frozen=True):
    """A `scaled_dot_product_attention` without a fused kernel.

    calls  of `operator_work`, forward and backward
    rows   of its operator, and of the tasks of its backward pass
    """

    calls: Int64
    rows: Int32


def _find_fallbacks(trace: Trace) -> list[_Fallback]:
    """Return every `scaled_dot_product_attention` that runs as single operators."""
    rows = rows_of_kind(trace, Kind.CPU_OP)
    rows = rows[name_mask(trace.strings, FALLBACK.__eq__)[trace.events.name[rows]]]
    if len(rows) == 0:
        return []
    tasks, calls = backward_tasks(trace), operator_work(trace).owners.calls
    around = np.append(enclosing_rows(trace, rows_mask(trace, rows)), NO_CODE)
    around[rows] = rows
    of_task = np.full(len(trace) + 1, NO_CODE, np.int64)
    of_task[tasks.rows] = around[tasks.forward]
    differentiates = of_task[enclosing_rows(trace, rows_mask(trace, tasks.rows))[calls]]
    of_call = np.where(around[calls] >= 0, around[calls], differentiates)
    return [
        _Fallback(
            np.flatnonzero(of_call == row), np.append(tasks.rows[of_task[tasks.rows] == row], row).astype(np.int32)
        )
        for row in rows.tolist()
    ]


def _build_fallback_part(trace: Trace, fallback: _Fallback) -> _Part | None:
    """Return a fallback as a part; None without products whose inputs and peaks are known."""
    work, calls = operator_work(trace), fallback.calls
    products = calls[name_mask(work.owners.names, PRODUCTS.__contains__)[work.owners.name[calls]]]
    shapes = [_build_product(trace, work.owners, int(call)) for call in products]
    largest = max((math.prod(shape) for each in shapes if each is not None for shape in each), default=0)
    outside = sum(
        math.prod(shape)
        for each in shapes
        if each is not None
        for shape in each
        if math.prod(shape) < largest  # not scores
    )
    for type_ in ("bf16", "fp16"):
        (fused,) = attainable_ns(
            trace, products, matrix_type=type_, moved_bytes=2.0 * outside, flops_share=CAUSAL_SHARE
        ).tolist()
        if not math.isnan(fused) and None not in shapes:
            return _build_part(trace, calls, event_intervals(trace, fallback.rows), float(fused))
    return None


def _build_finding(trace: Trace, case: str, parts: list[_Part]) -> Finding:
    rows = np.concatenate([part.events for part in parts])
    share = np.concatenate([np.full(len(part.events), part.share) for part in parts])
    longest = max(parts, key=lambda part: int(trace.events.duration[part.events].sum())).events
    start = trace.events.start[longest]
    return Finding(
        "unfused_attention",
        times_after_share(trace, rows, share),
        other_device_work(trace, rows),
        distinct(rows),
        on_device=True,
        host=union(*(part.host for part in parts)),
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


def _find_candidates(trace: Trace, order: Int64) -> Iterator[tuple[int, int, int]]:
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


def _estimate_fused_ns(trace: Trace, order: Int64, at: int, first: int, last: int) -> float | None:
    """Return the least time of a fused kernel; None if the products aren't on the scores, or a peak is unknown."""
    work = operator_work(trace)
    shapes = parse_input_shapes(trace, int(work.owners.calls[order[at]]))
    scores = shapes[0] if shapes else ()
    if len(scores) < 2:
        return None
    products = {
        place: _build_product(trace, work.owners, int(order[place]))
        for place in range(first, last + 1)
        if work.owners.names[work.owners.name[order[place]]] in PRODUCTS
    }
    before = [each for place, each in products.items() if place < at and each is not None]
    after = [each for place, each in products.items() if place > at and each is not None]
    if len(before) + len(after) < len(products):
        return None
    if not any(_have_same_sizes(each.out, scores) for each in before):
        return None
    if not all(_have_same_sizes(each.left, scores) or _have_same_sizes(each.right, scores) for each in after):
        return None
    calls = order[list(products)]
    outside = sum(
        math.prod(shape)
        for each in products.values()
        if each is not None
        for shape in each
        if not _have_same_sizes(shape, scores)
    )
    type_ = _input_type(trace, calls)
    if type_ not in WIDTHS:
        return None
    moved = float(outside * WIDTHS[type_])
    names = {work.owners.names[work.owners.name[call]] for call in order[first : last + 1].tolist()}
    share = 1.0 if names <= UNMASKED else CAUSAL_SHARE
    for faster in ("tf32", type_) if type_ == "fp32" else (type_,):
        (fused,) = attainable_ns(trace, calls, matrix_type=faster, moved_bytes=moved, flops_share=share).tolist()
        if not math.isnan(fused):
            return float(fused)
    return None


def _build_product(trace: Trace, owners: WorkOwners, call: int) -> _Product | None:
    shapes = parse_input_shapes(trace, int(owners.calls[call]))
    at = 1 if owners.names[owners.name[call]] == "aten::baddbmm" else 0
    if len(shapes) < at + 2 or len(shapes[at]) != 3 or len(shapes[at + 1]) != 3:
        return None
    left, right = shapes[at], shapes[at + 1]
    return _Product(left, right, (*left[:2], right[2]))


def _have_same_sizes(shape: Shape, scores: Shape) -> bool:
    """Return whether two shapes have as many elements in matrices of the same sizes, transposed or not."""
    return math.prod(shape) == math.prod(scores) and sorted(shape[-2:]) == sorted(scores[-2:])


def _input_type(trace: Trace, calls: Int64) -> str:
    """Return the type of the products' inputs, "" if they differ or are unknown."""
    work = operator_work(trace)
    types = {work.types[code] if code >= 0 else "" for code in work.type[calls].tolist()}
    return types.pop() if len(types) == 1 else ""
