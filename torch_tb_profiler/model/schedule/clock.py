"""How far the device's clock runs behind the host's."""

from __future__ import annotations

from torch_tb_profiler.model.calls.links import launches
from torch_tb_profiler.model.trace import Trace, derived

_LEAST_LATENCY_NS = 1_000
"""No device starts work sooner after the begin of the call that launched it."""


@derived
def clock_shift_ns(trace: Trace) -> int:
    """What is added to device times in analyses so that nothing starts before its call: 0 where nothing does.

    delta = max(0, 1 us - min(item start - call start)) if an item starts before its call.
    """
    rows, calls = launches(trace)
    linked = calls >= 0
    if not linked.any():
        return 0
    least = int((trace.events.start[rows[linked]] - trace.events.start[calls[linked]]).min())
    return max(0, _LEAST_LATENCY_NS - least) if least < 0 else 0
