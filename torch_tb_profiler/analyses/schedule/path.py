"""The critical path of a trace, what happens on it, and what limits the steps.

The path goes backwards from the end of the last complete step along whatever was waited for last:

    host    data |launch|                     path: data and the launch on the host, the launch's latency,
    stream         . [ a ][ b ]                     a, the gap, b, to the end of the step

Its segments tile the time from the start of the first step to the end of the last. They are cut at step borders,
so those of a step sum to the step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES, Cause, add_times_by_cause, split_by_state
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans, step_items
from torch_tb_profiler.base.arrays import distinct_numbers, search_sorted, sums_by_number
from torch_tb_profiler.base.memo import derived, prepared, stored
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.schedule.schedule import Schedule, StartLimit, schedule
from torch_tb_profiler.model.trace import NO_CODE, Int8, Int32, Int64, Trace


class PathSegmentKind(IntEnum):
    """What a segment of the path is."""

    HOST = 0
    DEVICE = 1
    LAUNCH_LATENCY = 2
    KERNEL_GAP = 3
    STREAM_WAIT = 4
    WAKE_UP = 5
    HAND_OFF = 6
    BEFORE = 7


HOST_CATEGORIES = CAUSE_NAMES[: Cause.UNRECORDED + 1]
"""What the host does on the path, named like the causes of idle time; `sync` is the call without its wait."""

DEVICE_CATEGORIES = ("kernel", "communication", "copy")

LATENCY_CATEGORIES = {
    PathSegmentKind.LAUNCH_LATENCY: "launch_latency",
    PathSegmentKind.KERNEL_GAP: "kernel_gap",
    PathSegmentKind.STREAM_WAIT: "stream_wait",
    PathSegmentKind.WAKE_UP: "wake_up",
    PathSegmentKind.HAND_OFF: "hand_off",
    PathSegmentKind.BEFORE: "before_recording",
}

PATH_CATEGORIES = (*HOST_CATEGORIES, *DEVICE_CATEGORIES, *LATENCY_CATEGORIES.values())
"""Everything that can be on the path: on the host, on the device, and latencies between them."""

BOTTLENECKS = ("host", "device", "communication", "latency")
"""What can limit a step; `communication` is not part of `device` here."""


def category_group(category: str) -> str:
    """Return the group of a path category: host, device, or latency."""
    if category in HOST_CATEGORIES:
        return "host"
    return "device" if category in DEVICE_CATEGORIES else "latency"


class CriticalPath(msgspec.Struct, frozen=True):
    """Segments of the path in order of time; columns of length k, ns on the host's clock.

    kind        int8   a PathSegmentKind
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


class HostSegments(msgspec.Struct, frozen=True):
    """Host segments of the path, cut where the thread's innermost slice changes; columns of length k.

    row         int32  the innermost slice, NO_CODE where nothing is recorded
    category    int8   index into HOST_CATEGORIES
    thread      int64  code
    begin, end  int64  ns on the host's clock
    step        int64  as in CriticalPath
    """

    row: Int32
    category: Int8
    thread: Int64
    begin: Int64
    end: Int64
    step: Int64


class PathSegments(msgspec.Struct, frozen=True):
    """All segments of the path in order of time, those of the host as in `HostSegments`; columns of length k.

    category    int8   index into PATH_CATEGORIES
    row         int32  the slice, item or call, NO_CODE where nothing is recorded
    begin, end  int64  ns on the host's clock
    step        int64  number among the complete steps
    """

    category: Int8
    row: Int32
    begin: Int64
    end: Int64
    step: Int64


@stored
def critical_path(trace: Trace) -> CriticalPath:
    """Return the path through the complete steps of a trace; empty without a complete step or a host."""
    spans = recorded_spans(trace)
    if spans.end.size == 0 or spans.end[0, -1] <= spans.begin[0, 0]:
        none = np.empty(0, np.int64)
        return CriticalPath(none.astype(np.int8), none, none, none, none)
    path = path_between(trace, int(spans.begin[0, 0]), int(spans.end[0, -1]))
    return _cut_at_steps(path, spans.begin[0], spans.end[0])


def path_between(trace: Trace, begin: int, end: int) -> CriticalPath:
    """Return the path through any window, all of it in step 0.

    It goes backwards from an item of the complete steps that ends at `end`, or else from the main thread.
    """
    graph, launched = schedule(trace), step_items(trace).order
    walk = _PathWalk(graph, begin)
    ending = launched[graph.items.end[launched] == end]
    walk.walk_back(end, int(ending[0]) if len(ending) else None)
    kind, begins, ends, ref = (np.concatenate(column)[::-1] for column in zip(*walk.segments, strict=True))
    begins = np.maximum(begins, begin)
    nonempty = ends > begins
    step = np.zeros(int(nonempty.sum()), np.int64)
    return CriticalPath(
        kind[nonempty].astype(np.int8), begins[nonempty], ends[nonempty], step, ref[nonempty].astype(np.int64)
    )


class _PathWalk:
    """Walk the path backwards; `segments` has the columns of those found so far, latest first."""

    def __init__(self, graph: Schedule, begin: int) -> None:
        self.graph, self.begin = graph, begin
        self.segments: list[tuple[Int64, Int64, Int64, Int64]] = []
        items, edges, points = graph.items, graph.edges, graph.points
        # For each item the nearest at or before it that does not just follow earlier work of its stream.
        position = np.arange(len(items))
        self.run_start = np.maximum.accumulate(np.where(graph.limit == StartLimit.STREAM, 0, position))
        binding = np.flatnonzero(edges.binds)
        thread = points.thread[edges.target[binding]]
        self.binding_edges = {code: binding[thread == code].tolist() for code in distinct_numbers(thread)}
        self.release_times = {
            code: points.time[edges.target[of]].tolist() for code, of in self.binding_edges.items()
        }
        # Times in a file may contradict each other: the path uses no edge twice, so that it has an end.
        self.unused = {code: len(times) for code, times in self.release_times.items()}

    def walk_back(self, now: int, item: int | None) -> None:
        """Walk from `now` to the start, starting with an item that ends then, or else on the main thread."""
        thread = self.graph.main_thread
        while now > self.begin:
            if item is not None:
                now, item, thread = self._add_device_run(now, item)
            else:
                now, item, thread = self._add_host_stretch(now, thread)

    def _add(self, kind: PathSegmentKind, begin: int, end: int, ref: int) -> int:
        begin = max(begin, self.begin)
        if begin < end:
            self.segments.append((np.array([kind]), np.array([begin]), np.array([end]), np.array([ref])))
        return min(begin, end)

    def _add_device_run(self, now: int, item: int) -> tuple[int, int | None, int]:
        """Add an item, the items before it that only their stream held up, and what held up the first of those.

        Return where the walk goes on: (time, item or None, thread).
        """
        graph, items = self.graph, self.graph.items
        first = int(self.run_start[item])
        low = first + int(np.searchsorted(items.start[first : item + 1], self.begin, "right")) - 1
        low = max(low, first)
        start = items.start[low : item + 1]
        until = np.minimum(np.append(start[1:], now), now)
        done = np.minimum(items.end[low : item + 1], until)
        run = np.arange(low, item + 1)
        segment_kinds = np.repeat([PathSegmentKind.DEVICE, PathSegmentKind.KERNEL_GAP], len(run))
        order = np.argsort(np.concatenate([start, done]), kind="stable")[::-1]
        refs = np.append(run, np.minimum(run + 1, item))
        self.segments.append(
            (segment_kinds[order], np.append(start, done)[order], np.append(done, until)[order], refs[order])
        )
        now = min(int(start[0]), now)
        if now <= self.begin:
            return now, None, graph.main_thread
        limit = graph.limit[low]
        if limit == StartLimit.LAUNCH:
            submission = graph.submission[low]
            now = self._add(PathSegmentKind.LAUNCH_LATENCY, int(graph.points.time[submission]), now, low)
            return now, None, int(graph.points.thread[submission])
        if limit == StartLimit.WAIT:
            source = int(graph.waits.source[graph.limiting_wait[low]])
            return (
                self._add(PathSegmentKind.STREAM_WAIT, int(items.end[source]), now, low),
                source,
                graph.main_thread,
            )
        return self._add(PathSegmentKind.BEFORE, self.begin, now, low), None, graph.main_thread

    def _add_host_stretch(self, now: int, thread: int) -> tuple[int, int | None, int]:
        """Add a thread's time since it last waited and the latency after that; return where the walk goes on."""
        graph, edges = self.graph, self.graph.edges
        release = bisect_right(self.release_times.get(thread, []), now, hi=self.unused.get(thread, 0)) - 1
        if release < 0 or self.release_times[thread][release] <= self.begin:
            return self._add(PathSegmentKind.HOST, self.begin, now, thread), None, thread
        self.unused[thread] = release
        now = self._add(PathSegmentKind.HOST, self.release_times[thread][release], now, thread)
        edge = self.binding_edges[thread][release]
        item, point = int(edges.item[edge]), int(edges.point[edge])
        if item >= 0:
            now = self._add(PathSegmentKind.WAKE_UP, int(graph.items.end[item]), now, int(edges.call[edge]))
            return now, item, thread
        now = self._add(PathSegmentKind.HAND_OFF, int(graph.points.time[point]), now, thread)
        return now, None, int(graph.points.thread[point])


def _cut_at_steps(path: CriticalPath, begins: Int64, ends: Int64) -> CriticalPath:
    """Cut a path at step borders; time between two steps belongs to neither and is left out."""
    low, high = search_sorted(ends, path.begin, "right"), search_sorted(begins, path.end, "left")
    count = np.maximum(high - low, 0)
    segment = np.repeat(np.arange(len(path.kind)), count)
    step = np.arange(len(segment)) - np.repeat(np.cumsum(count) - count, count) + low[segment]
    begin, end = np.maximum(path.begin[segment], begins[step]), np.minimum(path.end[segment], ends[step])
    nonempty = end > begin
    segment, step = segment[nonempty], step[nonempty]
    return CriticalPath(path.kind[segment], begin[nonempty], end[nonempty], step, path.ref[segment])


@derived
def host_segments(trace: Trace) -> HostSegments:
    """Return the host segments of the path, cut where their thread enters or leaves a slice."""
    path = critical_path(trace)
    host = np.flatnonzero(path.kind == PathSegmentKind.HOST)
    parts = split_by_state(trace, path.ref[host].astype(np.int32), path.begin[host], path.end[host])
    segment = host[parts.window]
    return HostSegments(parts.row, parts.cause, path.ref[segment], parts.begin, parts.end, path.step[segment])


@prepared
def path_segments(trace: Trace) -> PathSegments:
    """Return all segments of the path with their category and the event behind each."""
    host, other = host_segments(trace), _device_segments(trace)
    begin = np.append(host.begin, other.begin)
    order = np.argsort(begin, kind="stable")
    return PathSegments(
        category=np.append(host.category, other.category).astype(np.int8)[order],
        row=np.append(host.row, other.row).astype(np.int32)[order],
        begin=begin[order],
        end=np.append(host.end, other.end)[order],
        step=np.append(host.step, other.step)[order],
    )


def _device_segments(trace: Trace) -> PathSegments:
    """Return the segments of the path that are not the host's: work of devices, and latencies."""
    path = critical_path(trace)
    other = np.flatnonzero(path.kind != PathSegmentKind.HOST)
    kind, ref = path.kind[other], path.ref[other]
    category_of_kind = np.array(
        [PATH_CATEGORIES.index(LATENCY_CATEGORIES.get(each, "kernel")) for each in PathSegmentKind], np.int8
    )
    category, row = category_of_kind[kind], np.full(len(other), NO_CODE, np.int32)
    has_item = np.isin(kind, (PathSegmentKind.WAKE_UP, PathSegmentKind.HAND_OFF), invert=True)
    row[has_item] = schedule(trace).items.row[ref[has_item]]
    row[kind == PathSegmentKind.WAKE_UP] = ref[kind == PathSegmentKind.WAKE_UP]
    runs = kind == PathSegmentKind.DEVICE
    category[runs & (event_kinds(trace)[row] != Kind.KERNEL)] = PATH_CATEGORIES.index("copy")
    category[runs & is_communication_kernel(trace)[row]] = PATH_CATEGORIES.index("communication")
    return PathSegments(category, row, path.begin[other], path.end[other], path.step[other])


@stored
def path_times(trace: Trace) -> Int64:
    """Return ns of the path by step and category: int64[complete steps, categories]; rows sum to the steps.

    The host's segments aren't listed, which only a tab needs: they are the largest table of a trace.
    """
    path, count = critical_path(trace), recorded_spans(trace).begin.shape[1]
    other, columns = _device_segments(trace), len(PATH_CATEGORIES)
    place = other.step * columns + other.category
    times = sums_by_number(place, other.end - other.begin, count * columns).reshape(count, columns)
    host = np.flatnonzero(path.kind == PathSegmentKind.HOST)
    thread, begin, end = path.ref[host].astype(np.int32), path.begin[host], path.end[host]
    add_times_by_cause(trace, thread, begin, end, path.step[host], times)
    return times


@derived
def bottleneck_times(trace: Trace) -> dict[str, int]:
    """Return ns of the path through the typical steps by BOTTLENECKS."""
    return group_by_bottleneck(path_times(trace)[recorded_spans(trace).typical].sum(axis=0).tolist())


def unexplained_sync_ns(trace: Trace) -> int:
    """Return ns of the path through the typical steps in synchronization calls that no recorded work holds up."""
    times = path_times(trace)[recorded_spans(trace).typical, PATH_CATEGORIES.index("sync")]
    return int(times.sum())


def group_by_bottleneck(times: Sequence[int]) -> dict[str, int]:
    """Sum times by PATH_CATEGORIES to times by BOTTLENECKS."""
    sums = dict.fromkeys(BOTTLENECKS, 0)
    for category, spent in zip(PATH_CATEGORIES, times, strict=True):
        sums[category if category in BOTTLENECKS else category_group(category)] += spent
    return sums
