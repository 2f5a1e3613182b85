"""How much longer kernels take than their device needs for the work that advice leaves: no rule gains more.

`attainable_ns` is the only bound. The advice changes the unit that computes (Tensor Cores), or what is moved (a
fused kernel keeps its intermediate results); the arithmetic stays.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import input_shape_codes, input_shape_texts
from torch_tb_profiler.base.intervals import Intervals, merge
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, event_intervals, rows_of_kind
from torch_tb_profiler.model.trace import Float64, Int32, Int64, Trace
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.roofline import roofline_times


def roofline_shares(trace: Trace, rows: Int32, matrix_type: str = "") -> Float64:
    """Return float64[k]: attainable / measured time of the operators that own events, at most 1, or NaN.

    matrix_type  attainable with the same bytes and FLOPs, but these in the matrix units with this number type
    """
    done = operator_work(trace)
    attainable = attainable_ns(trace, np.arange(len(done.busy)), matrix_type=matrix_type)
    share = np.append(attainable / np.maximum(done.busy, 1), np.nan)
    shares: Float64 = np.minimum(share[owning_calls(trace, rows)], 1.0)
    return shares


def attainable_ns(
    trace: Trace, calls: Int64, *, matrix_type: str = "", moved_bytes: float | None = None
) -> Float64:
    """Return the least ns that changed work takes, NaN where it is unknown.

    float64[k], of each of these calls of `operator_work`; with `moved_bytes` float64[1], of one kernel for all.

    matrix_type  their FLOPs run in the matrix units with this number type, where one is given
    moved_bytes  what that kernel reads and writes
    """
    done, times = operator_work(trace), roofline_times(trace, "")
    if not matrix_type and moved_bytes is None:
        unchanged: Float64 = times.roofline[calls]
        return unchanged
    device, compute, memory = times.device[calls], times.compute[calls], times.memory[calls]
    for id_, rates in times.peaks.items():
        mine = device == id_
        if matrix_type:
            peak = rates.rate(True, matrix_type)
            compute[mine] = np.nan if peak is None else 1e9 * done.flops[calls[mine]] / peak
        if moved_bytes is not None:
            memory[mine] = np.nan if rates.memory is None else 1e9 * moved_bytes / rates.memory
    if moved_bytes is None:
        attainable: Float64 = np.maximum(compute, memory)
        return attainable
    if len(calls) == 0 or len(np.unique(device)) > 1:
        return np.array([np.nan])
    merged: Float64 = np.maximum(compute.sum(), memory[:1])
    return merged


def owning_calls(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k]: index in the calls of `operator_work` that own events, NO_CODE if none does."""
    own = operator_work(trace).owners
    calls: Int32 = own.call[np.searchsorted(own.events, rows)]
    return calls


def times_after_share(trace: Trace, rows: Int32, share: Float64) -> Intervals:
    """Return when device events run, without the first `share` (0..1) of each."""
    start, end = trace.events.start[rows], event_ends(trace)[rows]
    return merge(start + np.ceil(share * (end - start)).astype(np.int64), end)


def other_device_work(trace: Trace, rows: Int32) -> Intervals:
    """Return when other device work runs."""
    work = rows_of_kind(trace, *DEVICE_KINDS)
    return event_intervals(trace, work[~np.isin(work, rows)])


def recorded_shapes(trace: Trace, row: int) -> str:
    """Return the input shapes of a call as the file spells them, "" if none are recorded."""
    captured = operator_work(trace).owners.captured_call(row)
    if captured is not None:
        return captured.inputs[0] or "" if captured.inputs else ""
    code = int(input_shape_codes(trace)[row])
    return input_shape_texts(trace)[code] if code >= 0 else ""


def parse_input_shapes(trace: Trace, row: int) -> list[tuple[int, ...]]:
    """Return the shapes of an operator's input tensors, () for other inputs; tensors in lists are left out."""
    try:
        listed = msgspec.json.decode(recorded_shapes(trace, row) or "[]")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return []
    given = [shape if isinstance(shape, list) else [] for shape in listed] if isinstance(listed, list) else []
    return [tuple(shape) if all(type(size) is int for size in shape) else () for shape in given]
