"""How soon an item starts once nothing holds it up: after its launch, after the one before it in its stream."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.schedule.items import NEVER, Items
from torch_tb_profiler.model.trace import Int64

WAKE_NS = 4_000
"""At most this long after its source's end starts an item that waits for another stream."""

_LAUNCH_NS, _LONGEST_LAUNCH_NS = 4_000, 20_000
_GAP_NS, _LONGEST_GAP_NS = 2_000, 10_000
_LEAST_ITEMS = 10


class Latencies(msgspec.Struct, frozen=True):
    """launch_ns: 25th percentile of submission to start in an empty stream; gap_ns: median of queued items."""

    launch_ns: int
    gap_ns: int


def latencies(work: Items) -> Latencies:
    """What is typical of this trace; defaults where fewer than ten items tell."""
    linked = work.call >= 0
    alone = linked & (work.submitted >= work.previous_end)
    launch, gap = _LAUNCH_NS, _GAP_NS
    if alone.sum() >= _LEAST_ITEMS:
        delay = np.percentile((work.start - work.submitted)[alone], 25)
        launch = int(np.clip(delay, 0, _LONGEST_LAUNCH_NS))
    queued = linked & (work.submitted + launch < work.previous_end)
    if queued.sum() >= _LEAST_ITEMS:
        between = median((work.start - work.previous_end)[queued])
        gap = int(np.clip(between, 0, _LONGEST_GAP_NS))
    return Latencies(launch, gap)


def arrivals(work: Items, typical: Latencies) -> tuple[Int64, Int64]:
    """int64[n] twice: when each item can start by its submission, and by its stream; NEVER if there is none."""
    linked, follows = work.call >= 0, work.previous_end > NEVER
    launch = np.minimum(work.start - work.submitted, typical.launch_ns)
    by_launch = np.where(linked, work.submitted + launch, NEVER)
    by_stream = work.previous_end + np.minimum(work.start - work.previous_end, typical.gap_ns)
    return by_launch, np.where(follows, by_stream, NEVER)
