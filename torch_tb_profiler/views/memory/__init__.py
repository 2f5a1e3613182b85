"""The Memory tab."""

from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views._shared.availability import memory_reason
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.curve import CURVE
from torch_tb_profiler.views.memory.payload import MemoryPayload
from torch_tb_profiler.views.memory.snapshot.address_map import ADDRESS_MAP
from torch_tb_profiler.views.memory.snapshot.build import SNAPSHOT
from torch_tb_profiler.views.memory.snapshot.compare import COMPARE, FIT
from torch_tb_profiler.views.memory.snapshot.instant import INSTANT
from torch_tb_profiler.views.memory.snapshot.ranks import RANKS
from torch_tb_profiler.views.memory.tables import EVENTS, LIVE, OPERATORS
from torch_tb_profiler.views.memory.timeline import TIMELINE

TAB = Tab(
    "Resources",
    TraceView("memory", "Memory", NoParams, MemoryPayload, build, cached="on_request", previews=True),
    memory_reason,
    (CURVE, LIVE, EVENTS, OPERATORS, SNAPSHOT, INSTANT, ADDRESS_MAP, COMPARE, FIT, RANKS, TIMELINE),
)

__all__ = ["TAB"]
