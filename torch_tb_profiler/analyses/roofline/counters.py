"""Hardware counters by kernel and operator, beside the work that the input shapes imply."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.costs.models import enclosing_modeled_operators
from torch_tb_profiler.model.counters.measures import counter_work
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.trace import NO_CODE, Float64, Int32, Int64, Trace
from torch_tb_profiler.model.work.operator_work import call_cost

SHARED_CALL = "the operator call launched other kernels too, and its shapes can't be split between them"


class CounterTotals(msgspec.Struct, frozen=True):
    """Columns of g groups of ranges with one kernel name, operator and outermost operator; NaN is unknown.

    event     int64[g]  row of the first range
    operator  int64[g]  row of the innermost operator around its launch, NO_CODE if there is none or it is unknown
    outermost int64[g]  row of the outermost operator
    calls     int64[g]
    names, values  of the counters, float64[c, g]: sums, NaN where a range lacks one
    flops, bytes  float64[g]  of the counters, NaN if one range lacks them
    modeled_flops, modeled_bytes  of the shapes, as long as each call launched no other kernel
    reason    why the counters don't give FLOPs or bytes
    model_reason  why the shapes don't give them
    join_reason   why the ranges couldn't be joined to launches; None if they were
    """

    event: Int64
    operator: Int64
    outermost: Int64
    calls: Int64
    names: tuple[str, ...]
    values: Float64
    flops: Float64
    bytes: Float64
    modeled_flops: Float64
    modeled_bytes: Float64
    reason: list[str | None]
    model_reason: list[str | None]
    join_reason: str | None


def counter_totals(trace: Trace) -> CounterTotals:
    """Return the counters of `trace` in order of the first range of each group."""
    profiled, figures = counter_ranges(trace), counter_work(trace)
    outermost = _find_outermost(trace, profiled.operator)
    groups = group(trace.events.name[profiled.rows], _names(trace, profiled.operator), _names(trace, outermost))

    def sums(values: Float64) -> Float64:
        return np.bincount(groups.which, values, minlength=len(groups)).astype(np.float64)

    flops, moved, why = _model_work(trace, groups)
    first = groups.first
    return CounterTotals(
        event=profiled.rows[first].astype(np.int64),
        operator=profiled.operator[first].astype(np.int64),
        outermost=outermost[first].astype(np.int64),
        calls=groups.counts,
        names=figures.names,
        values=np.vstack([sums(values) for values in figures.values])
        if len(figures.names)
        else np.empty((0, len(groups))),
        flops=sums(figures.flops),
        bytes=sums(figures.bytes),
        modeled_flops=sums(flops),
        modeled_bytes=sums(moved),
        reason=_first_known(groups, figures.reason),
        model_reason=_first_known(groups, why),
        join_reason=profiled.reason,
    )


def _names(trace: Trace, rows: Int32) -> Int32:
    """Return the name codes of rows, int32[k]; NO_CODE where there is no row."""
    return np.where(rows >= 0, trace.events.name[rows], NO_CODE).astype(np.int32)


def _find_outermost(trace: Trace, rows: Int32) -> Int32:
    """Return the outermost operator around each row, int32[k]; the row itself if there is none."""
    around = enclosing_operators(trace)
    outer: Int32 = rows.copy()
    while (inside := (outer >= 0) & (around[outer] >= 0)).any():
        outer[inside] = around[outer[inside]]
    return outer


def _model_work(trace: Trace, groups: Groups) -> tuple[Float64, Float64, tuple[str | None, ...]]:
    """Return (FLOPs, bytes, why they are unknown) of each range from the shapes of its call."""
    profiled = counter_ranges(trace)
    owner = enclosing_modeled_operators(
        trace, np.where(profiled.operator >= 0, profiled.operator, NO_CODE).astype(np.int32)
    )
    owner = np.where(owner >= 0, owner, profiled.operator)
    alone = np.bincount(owner[owner >= 0], minlength=len(trace))[owner] == 1
    flops, moved = np.full(len(owner), np.nan), np.full(len(owner), np.nan)
    reasons: list[str | None] = []
    for at, (row, range_, single) in enumerate(
        zip(owner.tolist(), profiled.rows.tolist(), alone.tolist(), strict=True)
    ):
        if row < 0 or not single:
            reasons.append(SHARED_CALL if row >= 0 else None)
            continue
        cost = call_cost(trace, row, range_)
        flops[at] = np.nan if cost.flops is None else cost.flops
        moved[at] = np.nan if cost.bytes is None else cost.bytes
        reasons.append(cost.reason)
    return flops, moved, tuple(reasons)


def _first_known(groups: Groups, texts: tuple[str | None, ...]) -> list[str | None]:
    """Return the first reason in each group, or None."""
    first: list[str | None] = [None] * len(groups)
    for number, text in zip(groups.which.tolist(), texts, strict=True):
        first[number] = first[number] or text
    return first
