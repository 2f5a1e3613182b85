"""Which call launched device work, and inside which operator.

Answered for one event at a time, by looking up ids in sparse columns, so that selecting a slice costs
milliseconds whatever the size of the trace.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.analyses.tracks.positions import ancestors, position_of
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import external_ids
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, slice_mask
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace


@derived
def correlations(trace: Trace) -> tuple[Int32, Int64]:
    """(int32[k] rows, int64[k] numbers): the events that carry a `correlation`, in file order."""
    column = trace.args.get("correlation")
    rows = np.empty(0, np.int32) if column is None else column.rows
    return rows, trace.arg_int("correlation", rows)


def launch_of(trace: Trace, row: int) -> int:
    """The runtime or driver call that launched a device event; NO_CODE if none is recorded."""
    rows, numbers = correlations(trace)
    number = numbers[rows == row]
    if len(number) == 0 or number[0] == ABSENT or event_kinds(trace)[row] not in DEVICE_KINDS:
        return NO_CODE
    calls = rows[numbers == number[0]]
    calls = calls[_is_call(trace, calls)]
    return int(calls[0]) if len(calls) else NO_CODE


def launched_in(trace: Trace, row: int) -> list[tuple[int, int]]:
    """(call, device event) of each launch inside a host slice (or by itself), device events in file order."""
    events, (rows, numbers) = trace.events, correlations(trace)
    is_call = _is_call(trace, rows)
    inside = (events.thread[rows] == events.thread[row]) & (events.start[rows] >= events.start[row])
    inside &= (event_ends(trace)[rows] <= event_ends(trace)[row]) & is_call & (numbers != ABSENT)
    if not inside.any():
        return []
    related = np.isin(numbers, numbers[inside])
    linked, keys = rows[related], numbers[related]
    work = np.isin(event_kinds(trace)[linked], DEVICE_KINDS) & slice_mask(trace)[linked]
    call = is_call[related]
    distinct, first = np.unique(keys[call], return_index=True)
    sources = linked[call][first[np.searchsorted(distinct, keys[work])]]
    within = np.isin(sources, rows[inside])  # a number may belong to an earlier call of another thread
    return list(zip(sources[within].tolist(), linked[work][within].tolist(), strict=True))


def _is_call(trace: Trace, rows: Int32) -> Bool:
    mask: Bool = np.isin(event_kinds(trace)[rows], (Kind.RUNTIME, Kind.DRIVER)) & slice_mask(trace)[rows]
    return mask


def operator_of(trace: Trace, row: int) -> int:
    """The innermost operator around a host slice, or around the launch of a device event; NO_CODE if none.

    As in `model.calls.links`, an `External id` decides only where nesting finds nothing.
    """
    kind, layout = event_kinds(trace), lanes(trace, False)
    start = launch_of(trace, row) if kind[row] in DEVICE_KINDS else row
    position = position_of(trace, layout, start) if start != NO_CODE else None
    around = ancestors(layout, position) if position is not None else []
    operators = [slice_row for slice_row in around if kind[slice_row] == Kind.CPU_OP]
    if operators:
        return operators[-1]
    return _operator_by_id(trace, row) if kind[row] in DEVICE_KINDS else NO_CODE


def _operator_by_id(trace: Trace, row: int) -> int:
    rows, numbers = correlations(trace)
    ids = external_ids(trace)
    if ids[row] in (ABSENT, 0, *numbers[rows == row].tolist()):
        return NO_CODE
    same = np.flatnonzero((ids == ids[row]) & (event_kinds(trace) == Kind.CPU_OP) & slice_mask(trace))
    return int(same[0]) if len(same) else NO_CODE
