"""Traces as Holistic Trace Analysis (HTA) 0.5 sees them, for comparing its figures with ours.

HTA rounds to microseconds, the start up and the end down, and keeps the device work whose launch is recorded
before the last step ends, or begins. What remains is a trace like any other: our own functions answer for it.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64, Trace, name_mask


def round_times(trace: Trace) -> Trace:
    """Return the trace in whole microseconds of its file's clock."""
    start, end = _rounded_times(trace)
    known = trace.events.start != ABSENT
    start = np.where(known, start, ABSENT)
    duration = np.where(known & (trace.events.duration != ABSENT), np.maximum(end - start, 0), ABSENT)
    return replace(trace, events=replace(trace.events, start=start, duration=duration), _memo=type(trace._memo)())


def below_zero(trace: Trace) -> Int64:
    """Return int64[n]: ns by which rounding would make each event negative; `rounded` makes it 0 long."""
    start, end = _rounded_times(trace)
    below: Int64 = np.maximum(start - end, 0)
    return below


def _rounded_times(trace: Trace) -> tuple[Int64, Int64]:
    base = trace.trace_start_ns
    # HTA reads microseconds as float64, which near 1.7e15 (an epoch) is exact to a quarter of one only.
    begin = ((trace.events.start + base).astype(np.longdouble) / 1000).astype(np.float64)
    start = np.ceil(begin).astype(np.int64) * 1000 - base
    end = np.floor(begin + (event_ends(trace) - trace.events.start) / 1000).astype(np.int64) * 1000 - base
    return start, end


def filter_as_hta(trace: Trace, last_step: bool = True) -> Trace:
    """Return the rounded trace with the device work that HTA keeps; `last_step`: that of the last step too."""
    trace = round_times(trace)
    rows, launch = device_launches(trace)
    marks = rows_of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    marks = marks[name_mask(trace.strings, is_step)[trace.events.name[marks]]]
    if len(np.unique(trace.events.name[marks])) < 2:
        return trace
    begin = trace.events.start
    known = launch >= 0
    start: Int64 = np.where(known, begin[np.maximum(launch, 0)], ABSENT)
    inside: Bool = known & (start <= event_ends(trace)[marks].max() if last_step else start < begin[marks].max())
    phase = trace.events.phase.copy()
    phase[rows[~inside]] = 0
    return replace(trace, events=replace(trace.events, phase=phase), _memo=type(trace._memo)())
