"""The Memory tab."""

from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views.memory.blocks import EVENTS
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.curve import CURVE
from torch_tb_profiler.views.memory.live import LIVE
from torch_tb_profiler.views.memory.operators import OPERATORS
from torch_tb_profiler.views.memory.payload import MemoryPayload
from torch_tb_profiler.views.memory.reasons import unavailable
from torch_tb_profiler.views.memory.snapshot import SNAPSHOT
from torch_tb_profiler.views.memory.timeline import TIMELINE

TAB = Tab(
    "Resources",
    TraceView("memory", "Memory", NoParams, MemoryPayload, build, cached="on_request"),
    unavailable,
    (CURVE, LIVE, EVENTS, OPERATORS, SNAPSHOT, TIMELINE),
)

__all__ = ["TAB"]
