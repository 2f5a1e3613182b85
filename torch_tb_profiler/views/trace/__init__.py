"""The Trace tab."""

from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views.trace import (
    blame,
    colors,
    counters,
    event,
    flows,
    headline,
    path,
    search,
    selection,
    tile,
)
from torch_tb_profiler.views.trace.build import build, unavailable
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
        rows="tracks",
        answers="What there is to draw: tracks, steps, counters.",
    ),
    unavailable,
    tuple(
        view
        for part in (headline, tile, blame, colors, counters, event, flows, path, search, selection)
        for view in part.PARTS
    ),
    clocks=("epoch", "boot", "iteration", "local"),
)

__all__ = ["TAB"]
