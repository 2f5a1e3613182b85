"""The least time that a device needs for work, as it is or changed: no advice and no what-if gains more.

`attainable_ns` is the only bound. A change is of the unit that computes (Tensor Cores), or of what is moved (a
fused kernel keeps its intermediate results); the arithmetic stays.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.arrays import cells_of_rows, distinct_numbers
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int32, Int64, Trace
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.roofline import roofline_times


def roofline_shares(trace: Trace, rows: Int32, matrix_type: str = "") -> Float64:
    """Return float64[k]: attainable / measured time of the operators that own events, at most 1, or NaN.

    matrix_type  attainable with the same bytes and FLOPs, but these in the matrix units with this number type
    """
    shares: Float64 = _shares_of_calls(trace, matrix_type).take(owning_calls(trace, rows))
    return shares


@derived
def _shares_of_calls(trace: Trace, matrix_type: str) -> Float64:
    """Return float64[k + 1]: as `roofline_shares` of each call; the last cell is that of NO_CODE."""
    work = operator_work(trace)
    attainable = attainable_ns(trace, np.arange(len(work.busy)), matrix_type=matrix_type)
    return np.append(np.minimum(attainable / np.maximum(work.busy, 1), 1.0), np.nan)


def are_memory_bound(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: whether memory, not the unit that computes, limits the operators that own events."""
    times = roofline_times(trace, "")
    bound: Bool = np.append(times.memory >= times.compute, False)[owning_calls(trace, rows)]
    return bound


def attainable_ns(
    trace: Trace,
    calls: Int64,
    *,
    matrix_type: str = "",
    moved_bytes: float | None = None,
    flops_share: float = 1.0,
) -> Float64:
    """Return the least ns that changed work takes, NaN where it is unknown.

    float64[k], of each of these calls of `operator_work`; with `moved_bytes` float64[1], of one kernel for all.

    matrix_type  their FLOPs run in the matrix units with this number type, where one is given
    moved_bytes  what that kernel reads and writes
    flops_share  of the arithmetic of the calls, which that kernel does
    """
    work, times = operator_work(trace), roofline_times(trace, "")
    if not matrix_type and moved_bytes is None:
        unchanged: Float64 = times.roofline[calls]
        return unchanged
    device, compute, memory = times.device[calls], times.compute[calls], times.memory[calls]
    for id_, rates in times.peaks.items():
        mine = device == id_
        if matrix_type:
            peak = rates.rate(True, matrix_type)
            compute[mine] = np.nan if peak is None else 1e9 * work.flops[calls[mine]] / peak
        if moved_bytes is not None:
            memory[mine] = np.nan if rates.memory is None else 1e9 * moved_bytes / rates.memory
    if moved_bytes is None:
        attainable: Float64 = np.maximum(compute, memory)
        return attainable
    if len(calls) == 0 or len(distinct_numbers(device)) > 1:
        return np.array([np.nan])
    merged: Float64 = np.maximum(flops_share * compute.sum(), memory[:1])
    return merged


def owning_calls(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k]: index in the calls of `operator_work` that own events, NO_CODE if none does."""
    own = operator_work(trace).owners
    return cells_of_rows(own.events, own.call, rows, NO_CODE)
