"""In which order a schedule can be computed: runs of points and of items, each after all that it waits for.

Recorded times give the order: every source lies before its target. A run is as long as it can be, so that a trace
without synchronization has few of them, and what is computed of a run is one scan over columns.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import msgspec
import numpy as np

from torch_tb_profiler.model.schedule.items import NEVER
from torch_tb_profiler.model.schedule.schedule import Schedule, schedule
from torch_tb_profiler.model.trace import Int64, Trace, derived, distinct


class Sources(msgspec.Struct, frozen=True):
    """What the nodes of a run wait for beside their chain: edges[low:high] of one table, by target.

    targets  int64[t]  distinct targets, counted from the run's first node
    starts   int64[t]  where the edges of each begin, counted from `low`
    """

    low: int
    high: int
    targets: Int64
    starts: Int64


class Run(msgspec.Struct, frozen=True):
    """Nodes low:high of a thread (`of_host`) or of a stream; `first`: nothing of it comes before."""

    of_host: bool
    low: int
    high: int
    first: bool
    sources: Sources | None


@derived
def run_order(trace: Trace) -> tuple[Run, ...]:
    """All points and items in an order in which they can be computed."""
    return tuple(_Planner(schedule(trace)).runs())


class _Planner:
    """How far each thread (`at`) and each stream (`done`) is; `now` is the recorded time of what is asked next."""

    def __init__(self, graph: Schedule) -> None:
        work, points = graph.items, graph.points
        self.graph = graph
        self.result: list[Run] = []
        self.at, self.done = points.bounds[:-1].tolist(), work.bounds[:-1].tolist()
        self.host_bounds, self.stream_bounds = points.bounds.tolist(), work.bounds.tolist()
        self.times = points.time.tolist()
        linked = graph.submission >= 0
        handed = np.full(len(work), NEVER)
        handed[linked] = points.time[graph.submission[linked]]
        slots = np.searchsorted(points.threads, work.thread)
        self.threads = []
        for low, high in pairwise(self.stream_bounds):
            # A stream starts in order: an item is there once all before it are.
            handed[low:high] = np.maximum.accumulate(handed[low:high])
            self.threads.append(distinct(slots[low:high][linked[low:high]]))
        self.handed = handed.tolist()
        waiting = np.unique(graph.waits.item)
        self.waiting = [
            [*waiting[work.queue[waiting] == queue].tolist(), self.stream_bounds[queue + 1]]
            for queue in range(work.queues)
        ]
        self.waited = [0] * work.queues

    def runs(self) -> list[Run]:
        graph = self.graph
        work, points, edges = graph.items, graph.points, graph.edges
        # (time, 0 for points and 1 for items, target, source, whether it is an item); points before items: an item
        # may start at the instant at which it is handed over.
        of_item = edges.item >= 0
        time = np.concatenate([points.time[edges.target], work.start[graph.waits.item]])
        family = np.repeat([0, 1], [len(edges.target), len(graph.waits.item)])
        target = np.concatenate([edges.target, graph.waits.item])
        source = np.concatenate([np.where(of_item, edges.item, edges.point), graph.waits.source])
        from_item = np.append(of_item, np.ones(len(graph.waits.item), np.bool_))
        order = np.lexsort((target, family, time))
        queue = work.queue.tolist()
        slot = np.searchsorted(points.threads, points.thread).tolist()
        columns = (column[order].tolist() for column in (time, family, target, source, from_item))
        for now, on_device, to, of, is_item in zip(*columns, strict=True):
            if is_item:
                if self.done[queue[of]] <= of:
                    self._flush(queue[of], now)
            elif self.at[slot[of]] <= of:
                self._host_to(slot[of], now)
            if on_device:
                waiting, waited = self.waiting[queue[to]], self.waited
                if waiting[waited[queue[to]]] == to:
                    waited[queue[to]] += 1
        for each in range(len(self.at)):
            self._host(each, self.host_bounds[each + 1])
        for each in range(work.queues):
            self._stream(each, self.stream_bounds[each + 1])
        return self.result

    def _flush(self, queue: int, now: int) -> None:
        """All of a stream that was handed over before `now`."""
        for slot in self.threads[queue]:
            self._host_to(slot, now)
        handed = bisect_left(self.handed, now, self.stream_bounds[queue], self.stream_bounds[queue + 1])
        self._stream(queue, min(handed, self.waiting[queue][self.waited[queue]]))

    def _host_to(self, slot: int, now: int) -> None:
        self._host(slot, bisect_left(self.times, now, self.host_bounds[slot], self.host_bounds[slot + 1]))

    def _host(self, slot: int, high: int) -> None:
        low = self.at[slot]
        if high > low:
            sources = _sources(self.graph.edges.target, low, high)
            self.result.append(Run(True, low, high, low == self.host_bounds[slot], sources))
            self.at[slot] = high

    def _stream(self, queue: int, high: int) -> None:
        low = self.done[queue]
        if high > low:
            sources = _sources(self.graph.waits.item, low, high)
            self.result.append(Run(False, low, high, low == self.stream_bounds[queue], sources))
            self.done[queue] = high


def _sources(targets: Int64, low: int, high: int) -> Sources | None:
    """The edges whose targets lie in low:high; `targets` ascend."""
    begin, end = np.searchsorted(targets, [low, high]).tolist()
    if begin == end:
        return None
    here = targets[begin:end] - low
    starts = np.flatnonzero(np.append(True, here[1:] != here[:-1]))
    return Sources(begin, end, here[starts], starts)
