"""The window that shows all of a trace. Absurd times (see the trace's health) must not stretch the axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.analyses.tracks.events import all_slices
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, Trace


class Extent(NamedTuple):
    """[begin, end) in ns since the trace's start; `outside` slices lie beyond."""

    begin: int
    end: int
    outside: int


@derived
def extent(trace: Trace) -> Extent:
    """From the trace's start to the end of its last event whose time can be true."""
    start, end = trace.events.start, event_ends(trace)
    timed = (start != ABSENT) & (trace.events.phase != ord("M"))
    sane = timed & (start >= -MAX_RECORDING_NS) & (start < MAX_RECORDING_NS) & (end < 2 * MAX_RECORDING_NS)
    slices = all_slices(trace)
    outside = int((slices & timed & ~sane).sum())
    begin = min(0, int(np.min(start, where=slices & sane, initial=0)))
    last = int(np.max(end, where=sane & (start >= 0), initial=0))
    return Extent(begin, max(last, begin + 1), outside)
