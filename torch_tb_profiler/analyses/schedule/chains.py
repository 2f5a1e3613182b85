"""Chains of dependencies: what delayed each collective on its rank, back to the collective or step begin before.

    host     |step|-- data --|launch|                 chain of all_reduce: back, the gap, forward, the latency
    stream 7                    . [ forward ][ back ]  of its launch, the launch and data, the start of the step
    stream 20                                       . [ all_reduce ]

At a collective a rank waits for the rank that arrives last. Joined there, the chains are the path of the job.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import Cause, thread_states
from torch_tb_profiler.analyses.schedule.path import LATENCY_CATEGORIES, PATH_CATEGORIES, PathSegmentKind
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans, step_items
from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.schedule.schedule import StartLimit, schedule
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

UNKNOWN_SOURCE = -2
"""The source of an operation that is not device work of the complete steps."""


class DependencyChains(msgspec.Struct, frozen=True):
    """The chain that leads to each node, as columns of length k + s + 1; ns on the host's clock.

    Nodes: the k operations of `collectives`, the begins of the s complete steps, the end of the last step.

    begin, end  int64  begin: the end of the node's source; end: the time of the node; equal for host operations
    source      int64  the node that it depends on; NO_CODE: the start of the first step; UNKNOWN_SOURCE
    times       int64[k + s + 1, len(PATH_CATEGORIES)]  the chain by category; sums to end - begin
    """

    begin: Int64
    end: Int64
    source: Int64
    times: Int64


def dependency_chains(trace: Trace) -> DependencyChains:
    """Return the chains of all nodes; without a complete step or a host every source is unknown."""
    spans = recorded_spans(trace)
    rows, count = collectives(trace).event, spans.begin.shape[1]
    nodes = len(rows) + count + 1
    source, begin, end = np.full(nodes, UNKNOWN_SOURCE), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    segments: list[_ChainSegment] = []
    if count:
        walk = _ChainWalk(trace, rows)
        for node, now, link in walk.nodes():
            end[node] = now
            segments += walk.chain(node, now, link)
            begin[node], source[node] = walk.reached
    return DependencyChains(begin, end, source, _times_by_category(trace, segments, nodes))


class _Link(NamedTuple):
    """Why something starts when it does: a latency of `kind` since `time`, after an item or else on a thread."""

    kind: PathSegmentKind
    time: int
    item: int | None
    thread: int


class _ChainSegment(NamedTuple):
    """A segment of a chain. `first`: its host thread, or its first device item; `last`: its last device item."""

    node: int
    kind: PathSegmentKind
    begin: int
    end: int
    first: int = NO_CODE
    last: int = NO_CODE


class _ChainWalk:
    """Walk backwards like `path`, but only to the nearest node; `reached` is then its time and number."""

    def __init__(self, trace: Trace, rows: Int32) -> None:
        self.graph, spans = schedule(trace), recorded_spans(trace)
        self.reached = 0, NO_CODE
        self.begins, self.end = spans.begin[0].tolist(), int(spans.end[0, -1])
        self.count = len(rows)
        items, edges, points = self.graph.items, self.graph.edges, self.graph.points
        node = np.full(len(trace), NO_CODE, np.int64)
        node[rows] = np.arange(len(rows))
        self.node = node[items.row]
        self.launched = step_items(trace).order
        # For each item the nearest at or before it that does not just follow earlier work of its stream.
        starts_run = self.graph.limit != StartLimit.STREAM
        starts_run[1:] |= self.node[:-1] >= 0
        self.run_start = np.maximum.accumulate(np.where(starts_run, np.arange(len(items)), 0))
        binding = np.flatnonzero(edges.binds)
        thread = points.thread[edges.target[binding]]
        self.binding_edges = {code: binding[thread == code].tolist() for code in distinct(thread).tolist()}
        self.release_times = {
            code: points.time[edges.target[chosen]].tolist() for code, chosen in self.binding_edges.items()
        }

    def nodes(self) -> Iterator[tuple[int, int, _Link]]:
        """Yield (node, its time, its link) for device operations in the steps, step begins, and the end."""
        items, main = self.graph.items, self.graph.main_thread
        inside = (self.node >= 0) & (items.start >= self.begins[0]) & (items.start < self.end)
        for item in np.flatnonzero(inside).tolist():
            yield int(self.node[item]), int(items.start[item]), self._link_of_item(item)
        for step, begin in enumerate(self.begins):
            yield self.count + step, begin, _Link(PathSegmentKind.HOST, begin, None, main)
        ending = self.launched[items.end[self.launched] == self.end]
        item = int(ending[0]) if len(ending) else None
        yield self.count + len(self.begins), self.end, _Link(PathSegmentKind.HOST, self.end, item, main)

    def chain(self, node: int, now: int, link: _Link) -> Iterator[_ChainSegment]:
        """Yield the segments from a node at time `now` back to the node before it."""
        begin = self.begins[0]
        # As in the path, no edge is used twice.
        unused = {code: len(times) for code, times in self.release_times.items()}
        while True:
            time = max(min(link.time, now), begin)
            if time < now:
                yield _ChainSegment(node, link.kind, time, now)
            now, item, thread = time, link.item, link.thread
            if now <= begin:
                self.reached = now, NO_CODE
                return
            if item is not None and self.node[item] >= 0:
                self.reached = now, int(self.node[item])
                return
            if item is not None:
                first = int(self.run_start[item])
                start = self.graph.items.start[first : item + 1]
                first += max(int(np.searchsorted(start, begin, "right")) - 1, 0)
                time = max(min(int(self.graph.items.start[first]), now), begin)
                yield _ChainSegment(node, PathSegmentKind.DEVICE, time, now, first, item)
                now, link = time, self._link_of_item(first)
                continue
            release = bisect_right(self.release_times.get(thread, []), now, hi=unused.get(thread, 0)) - 1
            unused[thread] = max(release, 0)
            time = max(self.release_times[thread][release], begin) if release >= 0 else begin
            step = bisect_left(self.begins, now) - 1
            if thread == self.graph.main_thread and self.begins[step] >= time:
                yield _ChainSegment(node, PathSegmentKind.HOST, self.begins[step], now, thread)
                self.reached = self.begins[step], self.count + step
                return
            yield _ChainSegment(node, PathSegmentKind.HOST, time, now, thread)
            now, link = time, self._link_of_thread(thread, release)

    def _link_of_item(self, item: int) -> _Link:
        """Return why an item starts when it does."""
        graph, main = self.graph, self.graph.main_thread
        limit = graph.limit[item]
        if limit == StartLimit.STREAM:
            return _Link(PathSegmentKind.KERNEL_GAP, int(graph.items.end[item - 1]), item - 1, main)
        if limit == StartLimit.LAUNCH:
            point = graph.submission[item]
            time, thread = graph.points.time[point], graph.points.thread[point]
            return _Link(PathSegmentKind.LAUNCH_LATENCY, int(time), None, int(thread))
        if limit == StartLimit.WAIT:
            source = int(graph.waits.source[graph.limiting_wait[item]])
            return _Link(PathSegmentKind.STREAM_WAIT, int(graph.items.end[source]), source, main)
        return _Link(PathSegmentKind.BEFORE, self.begins[0], None, main)

    def _link_of_thread(self, thread: int, release: int) -> _Link:
        """Return why a thread goes on when it does: its binding edge number `release`; -1: nothing released it."""
        if release < 0:
            return _Link(PathSegmentKind.HOST, self.begins[0], None, thread)
        graph, edge = self.graph, self.binding_edges[thread][release]
        item, point = int(graph.edges.item[edge]), int(graph.edges.point[edge])
        if item >= 0:
            return _Link(PathSegmentKind.WAKE_UP, int(graph.items.end[item]), item, thread)
        return _Link(
            PathSegmentKind.HAND_OFF, int(graph.points.time[point]), None, int(graph.points.thread[point])
        )


def _times_by_category(trace: Trace, segments: list[_ChainSegment], nodes: int) -> Int64:
    """Return ns of each node's chain by category: int64[nodes, len(PATH_CATEGORIES)]."""
    times = np.zeros((nodes, len(PATH_CATEGORIES)), np.int64)
    if not segments:
        return times
    node, kind, begin, end, first, last = np.array(segments, np.int64).T
    for latency, name in LATENCY_CATEGORIES.items():
        mine = kind == latency
        np.add.at(times[:, PATH_CATEGORIES.index(name)], node[mine], (end - begin)[mine])
    mine = kind == PathSegmentKind.DEVICE
    _add_device_times(trace, times, node[mine], begin[mine], end[mine], first[mine], last[mine])
    for thread in distinct(first[kind == PathSegmentKind.HOST]).tolist():
        mine = (kind == PathSegmentKind.HOST) & (first == thread)
        states = thread_states(trace, thread)
        borders = np.concatenate([begin[mine][:1], states.times, end[mine][:1]])
        borders[0], borders[-1] = min(borders[0], begin[mine].min()), max(borders[-1], end[mine].max())
        for cause in distinct(states.cause).tolist():
            chosen = (states.cause == cause) & (np.diff(borders) > 0)
            inside = covered_time(merge(borders[:-1][chosen], borders[1:][chosen]), begin[mine], end[mine])
            np.add.at(times[:, PATH_CATEGORIES.index(Cause(cause).name.lower())], node[mine], inside)
    return times


def _add_device_times(
    trace: Trace, times: Int64, node: Int64, begin: Int64, end: Int64, first: Int64, last: Int64
) -> None:
    """Add runs of items of a stream to `times`: the items by category, and the gaps between them."""
    work = schedule(trace).items
    until = work.end.copy()
    until[:-1] = np.where(work.queue[1:] == work.queue[:-1], np.minimum(until[:-1], work.start[1:]), until[:-1])
    communicates = is_communication_kernel(trace)[work.row]
    kernel = (event_kinds(trace)[work.row] == Kind.KERNEL) & ~communicates
    rest = end - begin
    for name, mine in (("kernel", kernel), ("communication", communicates), ("copy", ~kernel & ~communicates)):
        sums = np.append(0, np.cumsum(np.where(mine, until - work.start, 0)))
        category_ns = sums[last + 1] - sums[first]
        # The first and last item of a run may be cut.
        category_ns -= np.where(mine[last], np.maximum(until[last] - end, 0), 0)
        category_ns -= np.where(mine[first], np.maximum(begin - work.start[first], 0), 0)
        np.add.at(times[:, PATH_CATEGORIES.index(name)], node, category_ns)
        rest = rest - category_ns
    np.add.at(times[:, PATH_CATEGORIES.index("kernel_gap")], node, rest)
