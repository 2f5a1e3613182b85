"""The critical path on the timeline: what to light, and in which order to walk along it."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.critical_path.slices import path_slices_between
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views.trace.params import Time, check_order

MOST = 4000


class PathParams(msgspec.Struct, frozen=True):
    """A window, ns since the trace's start."""

    begin: Time
    end: Time

    def __post_init__(self) -> None:
        check_order(self.begin, self.end)


class TracePath(msgspec.Struct, frozen=True):
    """What the critical path passes through in a window, in its order, as columns; latencies are left out.

    event     row of the innermost slice or the device's work; of pieces in a row on one track, where a window
              holds more than 4000, of the longest
    track     that it is drawn on
    begin_ns, end_ns  since the trace's start, a device's on its own clock
    more      how many further ones the window holds
    """

    event: list[int]
    track: list[int]
    begin_ns: list[int]
    end_ns: list[int]
    more: int


def build_path(trace: Trace, params: PathParams) -> TracePath:
    """Empty where the window holds nothing of a complete step."""
    passages = path_slices_between(trace, params.begin, params.end, MOST)
    return TracePath(
        event=passages.row[:MOST].tolist(),
        track=passages.track[:MOST].tolist(),
        begin_ns=passages.begin[:MOST].tolist(),
        end_ns=passages.end[:MOST].tolist(),
        more=max(len(passages.row) - MOST, 0),
    )


PARTS = (TraceView("trace/path", "Critical path on the timeline", PathParams, TracePath, build_path),)
