"""Iterations and the busy times of their streams, recorded by benchmarks that time streams with events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import Int32, Int64, Trace

ITERATION_LANE = "iterations"
"""Name of the lane with the iterations."""

RANGE_CATEGORY, MARKER_CATEGORY = "stream_range", "stream_marker"
"""Categories of the work between two events of a stream, and of a point in time on a stream."""

SEGMENT_CATEGORY, SEGMENT_LANE = "active_streams", "active streams"
"""Category and lane of the times in which the same streams are active, as the recorder writes them."""

READING_CATEGORY, READING_LANE = "rocm_smi", "rocm-smi"
"""Category and lane of the readings of `rocm-smi`, which are counters."""


class Iterations(NamedTuple):
    """Columns of k iterations in order of time.

    row     int32[k]  row of the iteration
    begins  int64[k]  ns; the first time that belongs to it, as a range may begin before the iteration
    starts  int64[k]  ns
    totals  int64[k]  recorded duration in ns
    """

    row: Int32
    begins: Int64
    starts: Int64
    totals: Int64


@derived
def iterations(trace: Trace) -> Iterations:
    row = rows_of_kind(trace, Kind.ANNOTATION)
    starts, totals = trace.events.start[row], trace.events.duration[row]
    # Iterations lie end to end: everything after the previous iteration's work belongs to this one.
    reach = np.maximum.accumulate(event_ends(trace))
    begins = np.append(np.minimum(starts[:1], 0), reach[row[1:] - 1]) if len(row) else starts
    return Iterations(row, begins, starts, totals)


@derived
def stream_ranges(trace: Trace) -> dict[str, Int32]:
    """Return the rows of each stream's ranges, in file order, by name of the stream."""
    codes = {text: code for code, text in enumerate(trace.strings)}
    rows = np.flatnonzero(trace.events.category == codes.get(RANGE_CATEGORY, len(codes))).astype(np.int32)
    lane = trace.events.thread[rows]
    return {str(trace.threads[code].tid): rows[lane == code] for code in distinct(lane).tolist()}
