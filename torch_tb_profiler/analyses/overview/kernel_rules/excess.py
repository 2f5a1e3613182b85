"""When kernels run beyond what their device needs for the work that advice leaves, and on what shapes."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import input_shape_codes, input_shape_texts
from torch_tb_profiler.base.intervals import Intervals, merge
from torch_tb_profiler.model.dtypes import bytes_per_element
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_intervals, event_spans, rows_of_kind
from torch_tb_profiler.model.trace import Float64, Int32, Int64, Trace
from torch_tb_profiler.model.work.operator_work import operator_work

MAX_PAUSE_NS = 100_000
"""What a host takes at most from one call to the next, if it does nothing else."""


def times_after_share(trace: Trace, rows: Int32, share: Float64) -> Intervals:
    """Return when device events run, without the first `share` (0..1) of each."""
    start, end = event_spans(trace, rows)
    return merge(start + np.ceil(share * (end - start)).astype(np.int64), end)


def other_device_work(trace: Trace, rows: Int32) -> Intervals:
    """Return when other device work runs."""
    work = rows_of_kind(trace, *DEVICE_KINDS)
    other = np.ones(len(trace), np.bool_)  # a table is many times faster than np.isin
    other[rows] = False
    return event_intervals(trace, work[other.take(work)])


def host_times(trace: Trace, calls: Int64, part: Int64) -> Intervals:
    """Return when the host runs calls of `operator_work`, and what is shortly between two calls of one part.

    part  int64[k], the part that each call belongs to. Calls of a capture ran before and have no time.
    """
    own = operator_work(trace).owners
    launching = own.captured[calls] < 0
    rows, part = own.calls[calls[launching]], part[launching]
    order = np.lexsort((trace.events.start[rows], part))
    rows, part = rows[order], part[order]
    start, end = event_spans(trace, rows)
    joins = (part[1:] == part[:-1]) & (start[1:] - end[:-1] <= MAX_PAUSE_NS)
    end[:-1][joins] = np.maximum(end[:-1], start[1:])[joins]
    return merge(start, end)


def recorded_shapes(trace: Trace, row: int) -> str:
    """Return the input shapes of a call as the file spells them, "" if none are recorded."""
    captured = operator_work(trace).owners.captured_call(row)
    if captured is not None:
        return captured.inputs[0] or "" if captured.inputs else ""
    code = int(input_shape_codes(trace)[row])
    return input_shape_texts(trace)[code] if code >= 0 else ""


def first_element_bytes(trace: Trace, row: int) -> int:
    """Return the bytes of an element of a call's first input, 0 if its type isn't recorded."""
    captured = operator_work(trace).owners.captured_call(row)
    if captured is not None:
        spelled = (captured.inputs[1] or "") if len(captured.inputs) > 1 else ""
    else:
        codes, texts = trace.arg_codes("Input type", np.array([row], np.int32))
        spelled = texts[codes[0]] if codes[0] >= 0 else ""
    try:
        types = msgspec.json.decode(spelled or "[]")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return 0
    first = types[0] if isinstance(types, list) and types else ""
    return bytes_per_element(first) or 0 if isinstance(first, str) else 0


def parse_input_shapes(trace: Trace, row: int) -> list[tuple[int, ...]]:
    """Return the shapes of an operator's input tensors, () for other inputs; tensors in lists are left out."""
    return parse_shapes(recorded_shapes(trace, row))


def parse_shapes(spelled: str) -> list[tuple[int, ...]]:
    """Return shapes that a file spells in this way, as `parse_input_shapes`."""
    try:
        listed = msgspec.json.decode(spelled or "[]")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return []
    shapes = [shape if isinstance(shape, list) else [] for shape in listed] if isinstance(listed, list) else []
    return [tuple(shape) if all(type(size) is int for size in shape) else () for shape in shapes]
