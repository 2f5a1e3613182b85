"""Launches that wait for room in a stream's queue.

A call is held up if it takes over four times what a quick one takes (5th percentile), while the queue is at 90 %
of its fullest or above, and returns at most 10 us after an earlier item of the stream starts. Its source is the
item before that one, whose end made room. How far such calls run ahead of the stream (the median) is the queue's
capacity; launches with more than half of it before them get the edge too, with slack: a change may fill it there.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.kinds import ends
from torch_tb_profiler.model.schedule.items import Items
from torch_tb_profiler.model.trace import Bool, Int64, Trace

_LEAST_ITEMS = 64
_LEAST_QUEUE = 16
_LEAST_HELD = 3
_TIMES_QUICK = 4
_QUICK_NS = 1_000
_NEARLY_FULL = 0.9
_RETURNS_NS = 10_000


def full_queue_edges(trace: Trace, work: Items) -> tuple[Int64, Int64]:
    """(rows of calls, items that each waits for), of all streams."""
    calls, sources = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for queue in range(work.queues):
        of_call, source = _edges(trace, work, int(work.bounds[queue]), int(work.bounds[queue + 1]))
        calls.append(of_call)
        sources.append(source)
    return np.concatenate(calls), np.concatenate(sources)


def _edges(trace: Trace, work: Items, low: int, high: int) -> tuple[Int64, Int64]:
    none = np.empty(0, np.int64)
    at = low + np.flatnonzero(work.call[low:high] >= 0)
    if len(at) < _LEAST_ITEMS:
        return none, none
    at = at[np.argsort(work.called[at], kind="stable")]
    called, returned, starts = work.called[at], ends(trace)[work.call[at]], work.start[low:high]
    queued = np.arange(len(at)) - np.searchsorted(np.sort(work.start[at]), called, "right")
    if queued.max() < _LEAST_QUEUE:
        return none, none
    lasting = returned - called
    begun = np.searchsorted(starts, returned, "right") - 1
    held = lasting > _TIMES_QUICK * max(float(np.percentile(lasting, 5)), _QUICK_NS)
    held &= (queued >= _NEARLY_FULL * queued.max()) & (begun > 0)
    held &= (returned - starts[begun] <= _RETURNS_NS) & (starts[begun] > called)
    calls, sources = work.call[at[held]], low + begun[held] - 1
    if held.sum() >= _LEAST_HELD and len(at) == high - low:
        nearly, behind = _nearly(queued, begun, held)
        calls, sources = np.append(calls, work.call[at[nearly]]), np.append(sources, low + behind)
    return calls.astype(np.int64), sources.astype(np.int64)


def _nearly(queued: Int64, begun: Int64, held: Bool) -> tuple[Int64, Int64]:
    """(launches more than half a capacity ahead, the item whose end makes room for each), as positions."""
    place = np.arange(len(queued))
    capacity = int(median((place - begun)[held]))
    nearly = np.flatnonzero(~held & (queued >= capacity // 2) & (place >= capacity + 1))
    return nearly, nearly - capacity - 1
