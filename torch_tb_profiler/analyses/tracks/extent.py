"""The time range of a trace, and the range that its timeline opens with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.analyses.tracks.events import all_slices
from torch_tb_profiler.analyses.tracks.tracks import tracks, tracks_of
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, Int32, Trace


class Extent(NamedTuple):
    """A time range [begin, end) in ns since the trace's start, and how many slices lie outside of it."""

    begin: int
    end: int
    outside: int


@derived
def extent(trace: Trace) -> Extent:
    """Return the range from the trace's start to the end of its last event with a plausible time.

    Absurd times (see the trace's health) must not stretch the axis.
    """
    start, end = trace.events.start, event_ends(trace)
    timed = (start != ABSENT) & (trace.events.phase != ord("M"))
    sane = timed & (start >= -MAX_RECORDING_NS) & (start < MAX_RECORDING_NS) & (end < 2 * MAX_RECORDING_NS)
    slices = all_slices(trace)
    outside = int((slices & timed & ~sane).sum())
    begin = min(0, int(np.min(start, where=slices & sane, initial=0)))
    last = int(np.max(end, where=sane & (start >= 0), initial=0))
    return Extent(begin, max(last, begin + 1), outside)


@derived
def opening_extent(trace: Trace) -> Extent:
    """Return the range of the slices of processes and devices, which the timeline opens with.

    Instants, counters and the profiler's own spans may lie seconds away and would squeeze these slices into a
    corner. Without such slices, return the range of the entire recording.
    """
    total = extent(trace)
    start, end, groups = trace.events.start, event_ends(trace), tracks(trace).groups
    inside = all_slices(trace) & (start >= total.begin) & (end <= total.end)
    table = tracks(trace).tracks
    is_program = np.array([groups[track.group].kind != "profiler" for track in table], np.bool_)
    # Only threads with something of the profiler's own are looked at event by event.
    mixed = np.zeros(len(trace.threads) + 1, np.bool_)
    for track in table:
        mixed[track.code] |= groups[track.group].kind == "profiler"
    doubtful: Int32 = np.flatnonzero(mixed[trace.events.thread] & inside).astype(np.int32)
    if len(doubtful):
        inside[doubtful] = is_program[tracks_of(trace, doubtful)]
    if not inside.any():
        return total
    begin, last = int(start[inside].min()), int(end[inside].max())
    return Extent(begin, max(last, begin + 1), total.outside)
