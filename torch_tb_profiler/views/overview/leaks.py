"""What the overview says of memory that grows."""

from __future__ import annotations

from torch_tb_profiler.analyses.memory.growth import memory_growth
from torch_tb_profiler.analyses.shared.memory_curve import default_device, levels
from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text


def leak(trace: Trace) -> Text:
    """That memory of the first device may leak, and when that fills the device; empty where no leak shows.

    Steps until it is full: (capacity - allocated at the end of the last step) / growth per step. What the
    allocator keeps and what other processes hold makes them fewer, so they are said as the most.
    """
    default = default_device(trace)
    for level in levels(trace):
        device = level.device
        change = memory_growth(trace, level) if device.name == default else None
        if change is None or not change.growing or not change.per_step:
            continue
        left = None if device.capacity is None else (device.capacity - int(change.live[-1])) // change.per_step
        return text(
            "Memory may leak by {size} per step{full}.",
            size=Phrase(format_bytes(change.per_step), link("memory", device=device.name, table="growth")),
            full="" if left is None or left < 1 else f", which fills {device.name} in at most {left:,} more",
        )
    return ()
