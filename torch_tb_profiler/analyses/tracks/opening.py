"""The window that a timeline opens with."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.tracks.events import all_slices
from torch_tb_profiler.analyses.tracks.extent import Extent, extent
from torch_tb_profiler.analyses.tracks.tracks import tracks, tracks_of
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import Int32, Trace


@derived
def opening(trace: Trace) -> Extent:
    """From the first to the end of the last slice of a process or a device.

    Marks, counters and what the profiler says of itself may lie seconds behind them and would leave them a corner
    of the page. All of the recording where it has no such slice.
    """
    whole = extent(trace)
    rows: Int32 = np.flatnonzero(all_slices(trace)).astype(np.int32)
    start, end = trace.events.start[rows], event_ends(trace)[rows]
    groups = tracks(trace).groups
    own = np.array([groups[track.group].kind != "profiler" for track in tracks(trace).tracks], np.bool_)
    rows = rows[(start >= whole.begin) & (end <= whole.end)]
    rows = rows[own[tracks_of(trace, rows)]] if len(own) else rows[:0]
    if len(rows) == 0:
        return whole
    begin, last = int(trace.events.start[rows].min()), int(event_ends(trace)[rows].max())
    return Extent(begin, max(last, begin + 1), whole.outside)
