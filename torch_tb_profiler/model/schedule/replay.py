"""Replay of a schedule with other durations: the recurrences of the graph as scans over columns.

Between two waits, a thread or a stream is x[k] = max(x[k - 1] + d[k], a[k]). With D the running sum of d that is
x = D + running maximum of (a - D). All in integers: unchanged input gives the recorded times to the nanosecond.

The graph is cut into runs of nodes of one thread or stream, each computed after all that it waits for. Recorded
times give that order, as every source lies before its target. A run is as long as possible, so that a trace
without synchronization has few of them.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.schedule.compiled import schedule_functions
from torch_tb_profiler.model.schedule.items import NEVER
from torch_tb_profiler.model.schedule.schedule import Schedule, StartLimit, schedule
from torch_tb_profiler.model.trace import Bool, Int64, Trace, distinct_codes


class ReplayTimes(msgspec.Struct, frozen=True):
    """When each point is reached and each item ends in c cases; ns on the host's clock.

    points  int64[c, p]
    ends    int64[c, n]
    """

    points: Int64
    ends: Int64


def replay(trace: Trace, step: Int64, duration: Int64, removed: Bool | None = None) -> ReplayTimes:
    """Compute the schedule with other times, several cases at once.

    step      int64[c, p]  replaces `Schedule.step`
    duration  int64[c, n]  of the items
    removed   bool[c, a]   host edges that no longer hold
    """
    graph, functions = schedule(trace), schedule_functions()
    runs = compiled_order(trace) if functions is not None else None
    if functions is not None and runs is not None:
        return ReplayTimes(*functions.replay(graph, runs, step, duration, removed))
    return _Replay(graph, step, duration, removed).compute(computation_order(trace))


class RunSources(msgspec.Struct, frozen=True):
    """What the nodes of a run wait for beside their chain: edges[low:high] of one table, by target.

    targets  int64[t]  distinct targets, counted from the run's first node
    starts   int64[t]  where the edges of each begin, counted from `low`
    """

    low: int
    high: int
    targets: Int64
    starts: Int64


class NodeRun(msgspec.Struct, frozen=True):
    """The nodes low:high of a thread (`of_host`) or of a stream; `first` if none of it come before them."""

    of_host: bool
    low: int
    high: int
    first: bool
    sources: RunSources | None


class _Replay:
    def __init__(self, graph: Schedule, step: Int64, duration: Int64, removed: Bool | None) -> None:
        self.graph, self.duration, self.removed = graph, duration, removed
        self.step, self.step_sum = step, np.cumsum(step, axis=1)
        start_to_start = np.empty_like(duration)
        start_to_start[:, :1] = 0
        start_to_start[:, 1:] = duration[:, :-1] + graph.gap[1:]
        self.start_sum = np.cumsum(start_to_start, axis=1)
        self.points = np.full(step.shape, NEVER)
        self.ends = np.full(duration.shape, NEVER)

    def compute(self, runs: tuple[NodeRun, ...]) -> ReplayTimes:
        for run in runs:
            (self._compute_points if run.of_host else self._compute_ends)(run)
        return ReplayTimes(self.points, self.ends)

    def _compute_points(self, run: NodeRun) -> None:
        low, high, points = run.low, run.high, self.points
        if not run.first:
            head = points[:, low - 1] + self.step[:, low]
        elif self.graph.anchored[low]:
            head = np.full(len(points), self.graph.points.time[low])
        else:
            head = np.full(len(points), NEVER)
        step_sum = self.step_sum[:, low:high]
        if run.sources is None:
            points[:, low:high] = step_sum + (head - step_sum[:, 0])[:, None]
            return
        arrivals = np.full((len(points), high - low), NEVER)
        arrivals[:, 0] = head
        edges, which = self.graph.edges, slice(run.sources.low, run.sources.high)
        item, point = edges.item[which], edges.point[which]
        times = edges.weight[which] + np.where(
            item >= 0, self.ends[:, item] if self.ends.size else 0, points[:, point]
        )
        if self.removed is not None:
            times[self.removed[:, which]] = NEVER
        _raise_arrivals(arrivals, run.sources, times)
        points[:, low:high] = step_sum + np.maximum.accumulate(arrivals - step_sum, axis=1)

    def _compute_ends(self, run: NodeRun) -> None:
        low, high, graph = run.low, run.high, self.graph
        submission = graph.submission[low:high]
        linked = submission >= 0
        arrivals = np.full((len(self.ends), high - low), NEVER)
        arrivals[:, linked] = self.points[:, submission[linked]] + graph.launch[low:high][linked]
        if not run.first:
            arrivals[:, 0] = np.maximum(arrivals[:, 0], self.ends[:, low - 1] + graph.gap[low])
        elif graph.limit[low] == StartLimit.NOTHING:
            arrivals[:, 0] = graph.items.start[low]
        if run.sources is not None:
            which = slice(run.sources.low, run.sources.high)
            times = self.ends[:, graph.waits.source[which]] + graph.wait_weight[which]
            _raise_arrivals(arrivals, run.sources, times)
        start_sum = self.start_sum[:, low:high]
        starts = start_sum + np.maximum.accumulate(arrivals - start_sum, axis=1)
        self.ends[:, low:high] = starts + self.duration[:, low:high]


def _raise_arrivals(arrivals: Int64, sources: RunSources, times: Int64) -> None:
    """Raise `arrivals` of each target to the latest of the times of its edges."""
    latest = np.maximum.reduceat(times, sources.starts, axis=1)
    at = sources.targets
    arrivals[:, at] = np.maximum(arrivals[:, at], latest)


@derived
def compiled_order(trace: Trace) -> Int64 | None:
    """Return the runs for the functions in C, int64[r, 3], or None if these aren't in use or find no order."""
    functions = schedule_functions()
    return None if functions is None else functions.plan(schedule(trace))


@derived
def computation_order(trace: Trace) -> tuple[NodeRun, ...]:
    """Return runs of all points and items, in an order in which they can be computed."""
    return tuple(_Planner(schedule(trace)).plan())


class _Planner:
    """Cuts the graph into runs, going through the edges by recorded time.

    next_point, next_item  by thread and by stream: the first node that is in no run yet
    """

    def __init__(self, graph: Schedule) -> None:
        items, points = graph.items, graph.points
        self.graph = graph
        self.runs: list[NodeRun] = []
        self.next_point, self.next_item = points.bounds[:-1].tolist(), items.bounds[:-1].tolist()
        self.host_bounds, self.stream_bounds = points.bounds.tolist(), items.bounds.tolist()
        self.times = points.time.tolist()
        linked = graph.submission >= 0
        submitted = np.full(len(items), NEVER)
        submitted[linked] = points.time[graph.submission[linked]]
        indices = np.searchsorted(points.threads, items.thread)
        self.threads = []
        for low, high in pairwise(self.stream_bounds):
            # A stream starts in order: an item can start only after all before it have been submitted.
            submitted[low:high] = np.maximum.accumulate(submitted[low:high])
            self.threads.append(distinct_codes(indices[low:high][linked[low:high]]))
        self.submitted = submitted.tolist()
        waiting = distinct(graph.waits.item)
        # By stream: its items that wait for another stream, and how many of them have had their source computed.
        self.waiting = [
            [*waiting[items.queue[waiting] == queue].tolist(), self.stream_bounds[queue + 1]]
            for queue in range(items.queues)
        ]
        self.waits_met = [0] * items.queues

    def plan(self) -> list[NodeRun]:
        graph = self.graph
        items, points, edges = graph.items, graph.points, graph.edges
        # One row per edge: (time, 0 for points and 1 for items, target, source, whether the source is an item).
        # Points come before items, as an item may start at the instant at which it is submitted.
        from_item = edges.item >= 0
        time = np.concatenate([points.time[edges.target], items.start[graph.waits.item]])
        family = np.repeat([0, 1], [len(edges.target), len(graph.waits.item)])
        target = np.concatenate([edges.target, graph.waits.item])
        source = np.concatenate([np.where(from_item, edges.item, edges.point), graph.waits.source])
        from_item = np.append(from_item, np.ones(len(graph.waits.item), np.bool_))
        order = np.lexsort((target, family, time))
        queue = items.queue.tolist()
        thread = np.searchsorted(points.threads, points.thread).tolist()
        columns = (column[order].tolist() for column in (time, family, target, source, from_item))
        for now, to_item, to, start, is_item in zip(*columns, strict=True):
            if is_item:
                if self.next_item[queue[start]] <= start:
                    self._add_submitted(queue[start], now)
            elif self.next_point[thread[start]] <= start:
                self._add_points_before(thread[start], now)
            if to_item:
                waiting, waits_met = self.waiting[queue[to]], self.waits_met
                if waiting[waits_met[queue[to]]] == to:
                    waits_met[queue[to]] += 1
        for index in range(len(self.next_point)):
            self._add_points(index, self.host_bounds[index + 1])
        for index in range(items.queues):
            self._add_items(index, self.stream_bounds[index + 1])
        return self.runs

    def _add_submitted(self, queue: int, now: int) -> None:
        """Add all items of a stream that were submitted before `now`."""
        for index in self.threads[queue]:
            self._add_points_before(index, now)
        high = bisect_left(self.submitted, now, self.stream_bounds[queue], self.stream_bounds[queue + 1])
        self._add_items(queue, min(high, self.waiting[queue][self.waits_met[queue]]))

    def _add_points_before(self, index: int, now: int) -> None:
        self._add_points(index, bisect_left(self.times, now, self.host_bounds[index], self.host_bounds[index + 1]))

    def _add_points(self, index: int, high: int) -> None:
        low = self.next_point[index]
        if high > low:
            sources = _run_sources(self.graph.edges.target, low, high)
            self.runs.append(NodeRun(True, low, high, low == self.host_bounds[index], sources))
            self.next_point[index] = high

    def _add_items(self, queue: int, high: int) -> None:
        low = self.next_item[queue]
        if high > low:
            sources = _run_sources(self.graph.waits.item, low, high)
            self.runs.append(NodeRun(False, low, high, low == self.stream_bounds[queue], sources))
            self.next_item[queue] = high


def _run_sources(targets: Int64, low: int, high: int) -> RunSources | None:
    """Return the edges whose targets lie in low:high, or None if there are none; `targets` ascend."""
    begin, end = np.searchsorted(targets, [low, high]).tolist()
    if begin == end:
        return None
    here = targets[begin:end] - low
    starts = np.flatnonzero(np.append(True, here[1:] != here[:-1]))
    return RunSources(begin, end, here[starts], starts)
