"""The critical path on the timeline: the slices to highlight, in the order of the path."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.critical_path.slices import path_slices_between
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views.trace.payload import WindowParams

MAX_PATH_SLICES = 4000
"""Most slices in one answer; beyond that, consecutive path segments on one track become one."""


class TracePath(msgspec.Struct, frozen=True):
    """The slices of the critical path in a window, in path order, as columns; latencies are left out.

    event     row of the innermost slice or the device's work; in a window with more than 4000, of the longest of
              consecutive path segments on one track
    track     track that it is drawn on
    begin_ns, end_ns  since the trace's start, a device's on its own clock
    more      how many more the window holds
    """

    event: list[int]
    track: list[int]
    begin_ns: list[int]
    end_ns: list[int]
    more: int


def build_path(trace: Trace, params: WindowParams) -> TracePath:
    """Build the path in a window; empty if the window holds nothing of a complete step."""
    slices = path_slices_between(trace, params.begin, params.end, MAX_PATH_SLICES)
    return TracePath(
        event=slices.row[:MAX_PATH_SLICES].tolist(),
        track=slices.track[:MAX_PATH_SLICES].tolist(),
        begin_ns=slices.begin[:MAX_PATH_SLICES].tolist(),
        end_ns=slices.end[:MAX_PATH_SLICES].tolist(),
        more=max(len(slices.row) - MAX_PATH_SLICES, 0),
    )


PARTS = (TraceView("trace/path", "Critical path on the timeline", WindowParams, TracePath, build_path),)
