"""Iterations and the busy times of their streams, as benchmarks that time streams with events record them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import Int32, Int64, Trace, derived

ITERATION_LANE = "iterations"
"""The lane of the iterations themselves."""

RANGE_CATEGORY, MARKER_CATEGORY = "stream_range", "stream_marker"
"""Categories of work between two events of a stream, and of a moment of a stream."""


class Iterations(NamedTuple):
    """Columns of k iterations in order of time.

    row     int32[k]  the row of the iteration
    begins  int64[k]  ns; from here on everything belongs to it: a range may begin before the iteration
    starts  int64[k]  ns
    totals  int64[k]  ns, as recorded
    """

    row: Int32
    begins: Int64
    starts: Int64
    totals: Int64


@derived
def iterations(trace: Trace) -> Iterations:
    row = rows_of_kind(trace, Kind.ANNOTATION)
    starts, totals = trace.events.start[row], trace.events.duration[row]
    # What is laid end to end: everything up to an iteration's start that the one before it has not claimed.
    reach = np.maximum.accumulate(event_ends(trace))
    begins = np.append(np.minimum(starts[:1], 0), reach[row[1:] - 1]) if len(row) else starts
    return Iterations(row, begins, starts, totals)


@derived
def stream_ranges(trace: Trace) -> dict[str, Int32]:
    """Of each stream, by name, the rows of its ranges in file order."""
    codes = {text: code for code, text in enumerate(trace.strings)}
    rows = np.flatnonzero(trace.events.category == codes.get(RANGE_CATEGORY, len(codes))).astype(np.int32)
    lane = trace.events.thread[rows]
    return {str(trace.threads[code].tid): rows[lane == code] for code in np.unique(lane).tolist()}
