"""What the start of each collective hangs on in its rank, back to the collective or begin of a step before it.

    host     |step|-- data --|launch|                 chain of all_reduce: back, the gap, forward, the latency
    stream 7                    . [ forward ][ back ]  of its launch, that and data on the host, the step's begin
    stream 20                                       . [ all_reduce ]

Joined at the collectives, where a rank waits for the one that arrives last, the chains are the path of a job.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.categories import CATEGORIES, LATENCIES
from torch_tb_profiler.analyses.schedule.causes import Cause
from torch_tb_profiler.analyses.schedule.path import PieceKind
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans, step_items
from torch_tb_profiler.analyses.schedule.threads import thread_states
from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.schedule.schedule import StartLimit, schedule
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

UNKNOWN = -2
"""The source of an operation that is no work of the device in the complete steps."""


class Chains(msgspec.Struct, frozen=True):
    """Nodes: the k operations of `collectives`, the begins of the s complete steps, the end of the last of them.

    Columns of length k + s + 1; ns on the host's clock.

    begin, end  int64  from the end of what the node hangs on to the node; equal of operations of the host
    source      int64  the node that it hangs on; NO_CODE: the begin of the first step; UNKNOWN
    times       int64[k + s + 1, len(CATEGORIES)]  the time between by category, which sums to it
    """

    begin: Int64
    end: Int64
    source: Int64
    times: Int64


def chains(trace: Trace) -> Chains:
    """Of all nodes; without a complete step or a host nothing hangs on anything."""
    spans = recorded_spans(trace)
    rows, count = collectives(trace).event, spans.begin.shape[1]
    nodes = len(rows) + count + 1
    source, begin, end = np.full(nodes, UNKNOWN), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    stretches: list[_Stretch] = []
    if count:
        walk = _Walk(trace, rows)
        for node, now, link in walk.nodes():
            end[node] = now
            stretches += walk.chain(node, now, link)
            begin[node], source[node] = walk.reached
    return Chains(begin, end, source, _by_category(trace, stretches, nodes))


class _Link(NamedTuple):
    """Why something begins: what passes since `time`, and the item that ends then, or else the thread."""

    kind: PieceKind
    time: int
    item: int | None
    thread: int


class _Stretch(NamedTuple):
    """A part of a node's chain. `first`: its thread on the host, the first of its items on the device; `last`: the
    last of these."""

    node: int
    kind: PieceKind
    begin: int
    end: int
    first: int = NO_CODE
    last: int = NO_CODE


class _Walk:
    """As `path` goes backwards, but to the nearest node only: when it was, and which, is then `reached`."""

    def __init__(self, trace: Trace, rows: Int32) -> None:
        self.graph, spans = schedule(trace), recorded_spans(trace)
        self.reached = 0, NO_CODE
        self.begins, self.end = spans.begin[0].tolist(), int(spans.end[0, -1])
        self.count = len(rows)
        items, edges, points = self.graph.items, self.graph.edges, self.graph.points
        node = np.full(len(trace), NO_CODE, np.int64)
        node[rows] = np.arange(len(rows))
        self.node = node[items.row]
        self.last = step_items(trace).order
        # Of each item the nearest before or at it that does not just follow work of its stream.
        apart = self.graph.limit != StartLimit.STREAM
        apart[1:] |= self.node[:-1] >= 0
        self.head = np.maximum.accumulate(np.where(apart, np.arange(len(items)), 0))
        binding = np.flatnonzero(edges.binds)
        thread = points.thread[edges.target[binding]]
        self.binding = {code: binding[thread == code].tolist() for code in np.unique(thread).tolist()}
        self.times = {code: points.time[edges.target[of]].tolist() for code, of in self.binding.items()}

    def nodes(self) -> Iterator[tuple[int, int, _Link]]:
        """(node, when it is, why) of the operations of the device in the steps, of the steps, and of their end."""
        items, main = self.graph.items, self.graph.main_thread
        inside = (self.node >= 0) & (items.start >= self.begins[0]) & (items.start < self.end)
        for item in np.flatnonzero(inside).tolist():
            yield int(self.node[item]), int(items.start[item]), self._started(item)
        for step, begin in enumerate(self.begins):
            yield self.count + step, begin, _Link(PieceKind.HOST, begin, None, main)
        ending = self.last[items.end[self.last] == self.end]
        item = int(ending[0]) if len(ending) else None
        yield self.count + len(self.begins), self.end, _Link(PieceKind.HOST, self.end, item, main)

    def chain(self, node: int, now: int, link: _Link) -> Iterator[_Stretch]:
        """From a node that is `now` back to the one before it."""
        begin = self.begins[0]
        while True:
            time = max(min(link.time, now), begin)
            if time < now:
                yield _Stretch(node, link.kind, time, now)
            now, item, thread = time, link.item, link.thread
            if now <= begin:
                self.reached = now, NO_CODE
                return
            if item is not None and self.node[item] >= 0:
                self.reached = now, int(self.node[item])
                return
            if item is not None:
                head = int(self.head[item])
                start = self.graph.items.start[head : item + 1]
                head += max(int(np.searchsorted(start, begin, "right")) - 1, 0)
                time = max(min(int(self.graph.items.start[head]), now), begin)
                yield _Stretch(node, PieceKind.DEVICE, time, now, head, item)
                now, link = time, self._started(head)
                continue
            at = bisect_right(self.times.get(thread, []), now) - 1
            time = max(self.times[thread][at], begin) if at >= 0 else begin
            step = bisect_left(self.begins, now) - 1
            if thread == self.graph.main_thread and self.begins[step] >= time:
                yield _Stretch(node, PieceKind.HOST, self.begins[step], now, thread)
                self.reached = self.begins[step], self.count + step
                return
            yield _Stretch(node, PieceKind.HOST, time, now, thread)
            now, link = time, self._released(thread, at)

    def _started(self, item: int) -> _Link:
        """Why an item starts when it does."""
        graph, main = self.graph, self.graph.main_thread
        bound = graph.limit[item]
        if bound == StartLimit.STREAM:
            return _Link(PieceKind.KERNEL_GAP, int(graph.items.end[item - 1]), item - 1, main)
        if bound == StartLimit.LAUNCH:
            point = graph.submission[item]
            time, thread = graph.points.time[point], graph.points.thread[point]
            return _Link(PieceKind.LAUNCH_LATENCY, int(time), None, int(thread))
        if bound == StartLimit.WAIT:
            source = int(graph.waits.source[graph.limiting_wait[item]])
            return _Link(PieceKind.STREAM_WAIT, int(graph.items.end[source]), source, main)
        return _Link(PieceKind.BEFORE, self.begins[0], None, main)

    def _released(self, thread: int, at: int) -> _Link:
        """Why a thread goes on when it does: by the edge `at` of those that bind it; -1: nothing is known."""
        if at < 0:
            return _Link(PieceKind.HOST, self.begins[0], None, thread)
        graph, edge = self.graph, self.binding[thread][at]
        item, point = int(graph.edges.item[edge]), int(graph.edges.point[edge])
        if item >= 0:
            return _Link(PieceKind.WAKE_UP, int(graph.items.end[item]), item, thread)
        return _Link(PieceKind.HAND_OFF, int(graph.points.time[point]), None, int(graph.points.thread[point]))


def _by_category(trace: Trace, stretches: list[_Stretch], nodes: int) -> Int64:
    times = np.zeros((nodes, len(CATEGORIES)), np.int64)
    if not stretches:
        return times
    node, kind, begin, end, first, last = np.array(stretches, np.int64).T
    for latency, name in LATENCIES.items():
        mine = kind == latency
        np.add.at(times[:, CATEGORIES.index(name)], node[mine], (end - begin)[mine])
    mine = kind == PieceKind.DEVICE
    _add_work(trace, times, node[mine], begin[mine], end[mine], first[mine], last[mine])
    for thread in np.unique(first[kind == PieceKind.HOST]).tolist():
        mine = (kind == PieceKind.HOST) & (first == thread)
        states = thread_states(trace, thread)
        borders = np.concatenate([begin[mine][:1], states.times, end[mine][:1]])
        borders[0], borders[-1] = min(borders[0], begin[mine].min()), max(borders[-1], end[mine].max())
        for cause in np.unique(states.cause).tolist():
            of = (states.cause == cause) & (np.diff(borders) > 0)
            inside = covered_time(merge(borders[:-1][of], borders[1:][of]), begin[mine], end[mine])
            np.add.at(times[:, CATEGORIES.index(Cause(cause).name.lower())], node[mine], inside)
    return times


def _add_work(
    trace: Trace, times: Int64, node: Int64, begin: Int64, end: Int64, first: Int64, last: Int64
) -> None:
    """Runs of items of a stream: what they take by category, and the gaps between them."""
    work = schedule(trace).items
    until = work.end.copy()
    until[:-1] = np.where(work.queue[1:] == work.queue[:-1], np.minimum(until[:-1], work.start[1:]), until[:-1])
    talking = communication_kernels(trace)[work.row]
    kernel = (event_kinds(trace)[work.row] == Kind.KERNEL) & ~talking
    rest = end - begin
    for name, mine in (("kernel", kernel), ("communication", talking), ("copy", ~kernel & ~talking)):
        sums = np.append(0, np.cumsum(np.where(mine, until - work.start, 0)))
        taken = sums[last + 1] - sums[first]
        # The run is cut where it is entered and left.
        taken -= np.where(mine[last], np.maximum(until[last] - end, 0), 0)
        taken -= np.where(mine[first], np.maximum(begin - work.start[first], 0), 0)
        np.add.at(times[:, CATEGORIES.index(name)], node, taken)
        rest = rest - taken
    np.add.at(times[:, CATEGORIES.index("kernel_gap")], node, rest)
