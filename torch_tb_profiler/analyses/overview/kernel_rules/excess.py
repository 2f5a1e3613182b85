"""What kernels take beyond the time that their device needs for the same work."""

from __future__ import annotations

import json

import numpy as np

from torch_tb_profiler.analyses.shared.shapes import shape_texts, shapes
from torch_tb_profiler.base.intervals import Intervals, merge
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import Float64, Int32, Trace
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.roofline import roofline_times


def roof_shares(trace: Trace, rows: Int32) -> Float64:
    """float64[k]: attainable over measured time of what owns device events, at most 1; NaN is unknown."""
    done = operator_work(trace)
    share = np.append(roofline_times(trace, "").roofline / np.maximum(done.busy, 1), np.nan)
    shares: Float64 = np.minimum(share[calls_of(trace, rows)], 1.0)
    return shares


def calls_of(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: position in the calls of `operator_work` of the owner of each device event, NO_CODE if none."""
    own = operator_work(trace).owners
    calls: Int32 = own.call[np.searchsorted(own.events, rows)]
    return calls


def after_share(trace: Trace, rows: Int32, share: Float64) -> Intervals:
    """When device events run, but for the first `share` (0..1) of the time of each."""
    start, end = trace.events.start[rows], event_ends(trace)[rows]
    return merge(start + np.ceil(share * (end - start)).astype(np.int64), end)


def elsewhere(trace: Trace, rows: Int32) -> Intervals:
    """When other device work runs."""
    others = np.setdiff1d(rows_of_kind(trace, *DEVICE_KINDS), rows)
    return merge(trace.events.start[others], event_ends(trace)[others])


def shape_text(trace: Trace, row: int) -> str:
    """Input shapes of an operator as the file spells them, "" if none are recorded."""
    code = int(shapes(trace)[row])
    return shape_texts(trace)[code] if code >= 0 else ""


def input_shapes(trace: Trace, row: int) -> list[tuple[int, ...]]:
    """Shapes of the tensors that an operator took, () of what is none; not of those in lists."""
    try:
        listed = json.loads(shape_text(trace, row) or "[]")
    except (ValueError, RecursionError):
        return []
    given = [shape if isinstance(shape, list) else [] for shape in listed] if isinstance(listed, list) else []
    return [tuple(shape) if all(type(size) is int for size in shape) else () for shape in given]
