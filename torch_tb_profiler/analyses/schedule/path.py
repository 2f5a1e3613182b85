"""The critical path: backwards from the end of the last complete step along what was waited for last.

    host    data |launch|                     path: data and the launch on the host, the launch's latency,
    stream         . [ a ][ b ]                     a, the gap, b, to the end of the step

Its pieces tile the time from the begin of the first step to the end of the last; cut at the borders of the steps,
those of a step sum to the step.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans, step_items
from torch_tb_profiler.model.schedule.schedule import Schedule, StartLimit, schedule
from torch_tb_profiler.model.trace import Int8, Int64, Trace, derived


class PieceKind(IntEnum):
    """What a piece of the path is."""

    HOST = 0
    DEVICE = 1
    LAUNCH_LATENCY = 2
    KERNEL_GAP = 3
    STREAM_WAIT = 4
    WAKE_UP = 5
    HAND_OFF = 6
    BEFORE = 7


class Path(msgspec.Struct, frozen=True):
    """Pieces in order of time; columns of length k, ns on the host's clock.

    kind        int8   a PieceKind
    begin, end  int64  begin < end
    step        int64  number among the complete steps
    ref         int64  HOST: code of the thread; DEVICE, LAUNCH_LATENCY, KERNEL_GAP, STREAM_WAIT, BEFORE: the item
                       that runs or starts then; WAKE_UP: row of the call; HAND_OFF: thread that goes on
    """

    kind: Int8
    begin: Int64
    end: Int64
    step: Int64
    ref: Int64


@derived
def critical_path(trace: Trace) -> Path:
    """The path through the complete steps of a trace; empty without a complete step or a host."""
    spans = recorded_spans(trace)
    if spans.end.size == 0 or spans.end[0, -1] <= spans.begin[0, 0]:
        none = np.empty(0, np.int64)
        return Path(none.astype(np.int8), none, none, none, none)
    whole = path_between(trace, int(spans.begin[0, 0]), int(spans.end[0, -1]))
    return _by_step(whole, spans.begin[0], spans.end[0])


def path_between(trace: Trace, begin: int, end: int) -> Path:
    """The path of any window, `step` 0: back from an item of the complete steps that ends at `end`, else from the
    main thread."""
    graph, launched = schedule(trace), step_items(trace).order
    walk = _Walk(graph, begin)
    ending = launched[graph.items.end[launched] == end]
    walk.back(end, int(ending[0]) if len(ending) else None)
    kind, begins, ends, ref = (np.concatenate(column)[::-1] for column in zip(*walk.parts, strict=True))
    begins = np.maximum(begins, begin)
    kept = ends > begins
    step = np.zeros(int(kept.sum()), np.int64)
    return Path(kind[kept].astype(np.int8), begins[kept], ends[kept], step, ref[kept].astype(np.int64))


class _Walk:
    """Pieces found so far, from the latest to the earliest: columns in `parts`."""

    def __init__(self, graph: Schedule, begin: int) -> None:
        self.graph, self.begin = graph, begin
        self.parts: list[tuple[Int64, Int64, Int64, Int64]] = []
        items, edges, points = graph.items, graph.edges, graph.points
        # Of each item the nearest before or at it whose start the stream does not bind.
        place = np.arange(len(items))
        self.head = np.maximum.accumulate(np.where(graph.limit == StartLimit.STREAM, 0, place)).tolist()
        binding = np.flatnonzero(edges.binds)
        thread = points.thread[edges.target[binding]]
        self.binding = {code: binding[thread == code].tolist() for code in np.unique(thread).tolist()}
        self.times = {code: points.time[edges.target[of]].tolist() for code, of in self.binding.items()}

    def back(self, now: int, item: int | None) -> None:
        """From `now` to the begin, starting with an item that ends then, or on the main thread."""
        thread = self.graph.main_thread
        while now > self.begin:
            if item is not None:
                now, item, thread = self._device(now, item)
            else:
                now, item, thread = self._host(now, thread)

    def _add(self, kind: PieceKind, begin: int, end: int, ref: int) -> int:
        begin = max(begin, self.begin)
        if begin < end:
            self.parts.append((np.array([kind]), np.array([begin]), np.array([end]), np.array([ref])))
        return min(begin, end)

    def _device(self, now: int, item: int) -> tuple[int, int | None, int]:
        """An item and those before it that its stream alone held up, then what held up the first of them."""
        graph, items = self.graph, self.graph.items
        head = self.head[item]
        low = head + int(np.searchsorted(items.start[head : item + 1], self.begin, "right")) - 1
        low = max(low, head)
        start = items.start[low : item + 1]
        until = np.minimum(np.append(start[1:], now), now)
        done = np.minimum(items.end[low : item + 1], until)
        which = np.arange(low, item + 1)
        kinds = np.repeat([PieceKind.DEVICE, PieceKind.KERNEL_GAP], len(which))
        order = np.argsort(np.concatenate([start, done]), kind="stable")[::-1]
        refs = np.append(which, np.minimum(which + 1, item))
        self.parts.append(
            (kinds[order], np.append(start, done)[order], np.append(done, until)[order], refs[order])
        )
        now = min(int(start[0]), now)
        if now <= self.begin:
            return now, None, graph.main_thread
        bound = graph.limit[low]
        if bound == StartLimit.LAUNCH:
            submission = graph.submission[low]
            now = self._add(PieceKind.LAUNCH_LATENCY, int(graph.points.time[submission]), now, low)
            return now, None, int(graph.points.thread[submission])
        if bound == StartLimit.WAIT:
            source = int(graph.waits.source[graph.limiting_wait[low]])
            return self._add(PieceKind.STREAM_WAIT, int(items.end[source]), now, low), source, graph.main_thread
        return self._add(PieceKind.BEFORE, self.begin, now, low), None, graph.main_thread

    def _host(self, now: int, thread: int) -> tuple[int, int | None, int]:
        """A thread back to what it last waited for."""
        graph, edges = self.graph, self.graph.edges
        at = bisect_right(self.times.get(thread, []), now) - 1
        if at < 0 or self.times[thread][at] <= self.begin:
            return self._add(PieceKind.HOST, self.begin, now, thread), None, thread
        now = self._add(PieceKind.HOST, self.times[thread][at], now, thread)
        edge = self.binding[thread][at]
        item, point = int(edges.item[edge]), int(edges.point[edge])
        if item >= 0:
            now = self._add(PieceKind.WAKE_UP, int(graph.items.end[item]), now, int(edges.call[edge]))
            return now, item, thread
        now = self._add(PieceKind.HAND_OFF, int(graph.points.time[point]), now, thread)
        return now, None, int(graph.points.thread[point])


def _by_step(path: Path, begins: Int64, ends: Int64) -> Path:
    """Cut at the borders of the steps; what lies between two steps belongs to neither."""
    low, high = np.searchsorted(ends, path.begin, "right"), np.searchsorted(begins, path.end, "left")
    count = np.maximum(high - low, 0)
    of = np.repeat(np.arange(len(path.kind)), count)
    step = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + low[of]
    begin, end = np.maximum(path.begin[of], begins[step]), np.minimum(path.end[of], ends[step])
    kept = end > begin
    of, step = of[kept], step[kept]
    return Path(path.kind[of], begin[kept], end[kept], step, path.ref[of])
