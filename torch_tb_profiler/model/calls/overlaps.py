"""Host events that do not nest in their thread, and why that is usually no fault of the file."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.base.markers import is_profiler_frame
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.nesting import place_on_one_axis
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import Trace, name_mask


def count_unexplained_overlaps(trace: Trace) -> int:
    """How many host events did not nest in their thread although the recording itself is not why.

    With stacks, PyTorch records its own functions that begin and end an annotation: the annotation begins within
    the one and outlasts it, and ends within the other.

        |- _record_function_enter_new -|
               |- ProfilerStep#2 ---------------------------------|
    """
    side = np.flatnonzero(call_tree(trace).lane > 0)
    if len(side) == 0:
        return 0
    own = name_mask(trace.strings, is_profiler_frame)[trace.events.name]
    side = side[~own[side]]
    frames = np.flatnonzero(own)
    rows = np.concatenate((frames, side))
    begin, end = place_on_one_axis(trace.events.start[rows], event_ends(trace)[rows], trace.events.thread[rows])
    own_frames = merge(begin[: len(frames)], end[: len(frames)])
    starts = begin[len(frames) :]
    return int((covered_time(own_frames, starts, starts + 1) == 0).sum())
