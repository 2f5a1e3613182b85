"""The Trace tab."""

from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.availability import timeline_reason
from torch_tb_profiler.views.trace import blame, event, path, search, selection, tile
from torch_tb_profiler.views.trace.build import build
from torch_tb_profiler.views.trace.payload import TraceParams, TracePayload

TAB = Tab(
    "Where the time goes",
    TraceView(
        "trace",
        "Trace",
        TraceParams,
        TracePayload,
        build,
        cached="on_request",
        filters=(TraceParams(python=True),),
        rows="tracks",
        answers="The tracks, steps, and counters of the timeline.",
    ),
    timeline_reason,
    tuple(view for module in (selection, tile, blame, event, path, search) for view in module.PARTS),
    clocks=("epoch", "boot", "iteration", "local"),
)

__all__ = ["TAB"]
