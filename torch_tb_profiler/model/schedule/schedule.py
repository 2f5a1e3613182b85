"""One graph of a trace: what waits for what, with weights that reproduce the recorded times to the nanosecond.

Two families of nodes, two recurrences (max-plus). x is the time of a point of a host thread, s and e are the start
and end of an item:

    x[k] = max(x[k - 1] + step[k], e[source] + weight, x[source] + weight)        along a thread
    s[i] = max(e[i - 1] + gap[i], x[submission] + launch[i], e[source] + weight)  along a stream

Typical latencies are the weights; the limit of an item that is reached last *binds* and takes what remains. What
has no limit (the first item of a stream without a launch, the first point of a thread) stays where it was
recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.kinds import HOST_KINDS, event_spans, rows_of_kind
from torch_tb_profiler.model.schedule.blocking import BlockingCalls, WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.items import (
    NEVER,
    STREAM_WAKE_NS,
    DeviceItems,
    clock_shift_ns,
    device_items,
    earliest_starts,
)
from torch_tb_profiler.model.schedule.stream_waits import LATE_NS, StreamWaits, stream_waits
from torch_tb_profiler.model.schedule.threads import HandOffs, handoffs, main_thread
from torch_tb_profiler.model.schedule.unrecorded_waits import UnrecordedWaits, unrecorded_waits
from torch_tb_profiler.model.steps import Steps, steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, Trace

TIME_RESOLUTION_NS = 1_000
"""Begins and durations may be rounded to a µs each, so that a call seems to outlast the step around it by that."""

MIN_EXPLAINED_SHARE = 0.95
"""Smallest share of explained starts with which a replay of other times is reliable."""

_MAX_IDLE_RETURN_NS = 12_000
"""Longest time from a source's end to the return of a call that did not wait for it, ns."""

_IDLE_SYNC_NS = 3_000
"""Time that a synchronization takes if there is nothing to wait for, ns."""


class HostPoints(msgspec.Struct, frozen=True):
    """Distinct instants, by thread and time, at which host threads submit work or wait; columns of length p.

    thread   int32  code
    time     int64  ns
    first    bool   the first of its thread
    threads  int32[t]      the threads that have points
    bounds   int64[t + 1]  the points of threads[k] are bounds[k]:bounds[k + 1]
    """

    thread: Int32
    time: Int64
    first: Bool
    threads: Int32
    bounds: Int64

    def __len__(self) -> int:
        return len(self.time)

    @property
    def elapsed(self) -> Int64:
        """Return int64[p]: ns since the previous point on the thread; 0 for the first."""
        since: Int64 = np.diff(self.time, prepend=self.time[:1])
        return np.where(self.first, 0, since)

    def thread_index(self, thread: int) -> int:
        """Return the position of `thread` in `threads`, or -1 if it has no points."""
        at = int(np.searchsorted(self.threads, thread))
        return at if at < len(self.threads) and self.threads[at] == thread else -1


class StartLimit(IntEnum):
    """What an item's start was waiting for last."""

    LAUNCH = 0
    STREAM = 1
    WAIT = 2
    NOTHING = 3


class HostEdges(msgspec.Struct, frozen=True):
    """What points wait for, by target; columns of length a.

    target  int64  position of the point that goes on
    item    int64  the item whose end it waits for, NO_CODE if it waits for a point
    point   int64  the point that it waits for, NO_CODE if it waits for an item
    weight  int64  shortest time from the source to the target, ns
    call    int32  row of the call that waits, NO_CODE of hand-offs and of waits that no call records
    binds   bool   the recorded target is where this edge puts it, and its thread alone would have been earlier
    """

    target: Int64
    item: Int64
    point: Int64
    weight: Int64
    call: Int32
    binds: Bool


class _ScheduleColumns(msgspec.Struct, frozen=True):
    """What of a `Schedule` isn't a table of its own, as it is cached."""

    points: HostPoints
    edges: HostEdges
    step: Int64
    anchored: Bool
    submission: Int64
    launch: Int64
    gap: Int64
    wait_weight: Int64
    limit: Int8
    limiting_wait: Int64
    residual: Int64
    step_begin: Int64
    step_end: Int64


class Schedule(_ScheduleColumns, frozen=True):
    """The entire graph: n items, p points, w waits between streams; times in ns.

    step           int64[p]  work of the thread before each point: the time since the previous point, less waiting
    anchored       bool[p]   stays where it was recorded: the first point of its thread, unless it ends a hand-off
    submission     int64[n]  the point at which each item is submitted, NO_CODE if none is known
    launch, gap    int64[n]  weights of submission and stream, 0 where there is none
    wait_weight    int64[w]  weights of `waits`
    limit          int8[n]   a StartLimit
    limiting_wait  int64[n]  position of the wait that binds, NO_CODE if none does
    residual       int64[n]  by how much the binding weight is longer than typical
    step_begin, step_end  int64[steps]  points at the host borders of `steps`; empty without a main thread
    explained_share  share of the items of complete steps that start within 20 us of what launch, stream and waits
                     allow, of all items if no step has any; None without items
    """

    items: DeviceItems
    calls: BlockingCalls
    handoffs: HandOffs
    waits: StreamWaits
    clock_shift_ns: int
    main_thread: int
    explained_share: float | None

    @property
    def is_reliable(self) -> bool:
        """Return whether enough is explained for a replay to predict what a change would bring."""
        return self.explained_share is not None and self.explained_share >= MIN_EXPLAINED_SHARE


@derived
def schedule(trace: Trace) -> Schedule:
    """Return the schedule of a trace."""
    columns, items = _schedule_columns(trace), device_items(trace)
    return Schedule(
        items=items,
        calls=blocking_calls(trace),
        handoffs=handoffs(trace),
        waits=stream_waits(trace),
        clock_shift_ns=clock_shift_ns(trace),
        main_thread=main_thread(trace),
        explained_share=_explained_share(trace, items, columns),
        **{name: getattr(columns, name) for name in columns.__struct_fields__},
    )


def _explained_share(trace: Trace, items: DeviceItems, columns: _ScheduleColumns) -> float | None:
    """Return `Schedule.explained_share`.

    A replay changes nothing before the first complete step or after the last one. In a recording that begins in
    the middle of a step, what was launched before has no reason to start when it does, and none is needed.
    """
    if len(items) == 0:
        return None
    spans, start = steps(trace), trace.events.start[items.row]
    complete = np.flatnonzero(spans.complete)
    counted = np.zeros(len(items), np.bool_)
    if len(complete):
        counted = (start >= spans.starts[complete[0]]) & (start < spans.ends[complete[-1]])
    explained = (columns.limit != StartLimit.NOTHING) & (columns.residual <= LATE_NS)
    return float((explained[counted] if counted.any() else explained).mean())


@stored
def _schedule_columns(trace: Trace) -> _ScheduleColumns:
    items, calls, hands, waits = device_items(trace), blocking_calls(trace), handoffs(trace), stream_waits(trace)
    main, spans, unrecorded = main_thread(trace), steps(trace), unrecorded_waits(trace)
    linked = items.call >= 0
    is_waiting = hands.waiting_since != ABSENT
    borders = len(spans.starts) if main != NO_CODE else 0
    main_threads = np.full(borders, main, np.int32)
    step_starts, step_ends = (
        _move_out_of_calls(times[:borders], calls, main)
        for times in (spans.host_starts, _host_ends(trace, spans, items, main))
    )
    points, places = _collect_points(
        (items.thread[linked], items.submit_time[linked]),
        (calls.thread, calls.begin),
        (calls.thread, calls.resume_time),
        (calls.thread, calls.end),
        (hands.source, hands.source_time),
        (hands.target, hands.target_time),
        (hands.target[is_waiting], hands.waiting_since[is_waiting]),
        (main_threads, step_starts),
        (main_threads, step_ends),
        (unrecorded.thread, unrecorded.since),
        (unrecorded.thread, unrecorded.resume),
    )
    submission = np.full(len(items), NO_CODE, np.int64)
    submission[linked] = places[0]
    step, edges, anchored = _host_graph(points, items, calls, hands, unrecorded, places)
    weights = _device_weights(trace, items, waits)
    return _ScheduleColumns(
        points=points,
        edges=edges,
        step=step,
        anchored=anchored,
        submission=submission,
        launch=weights.launch,
        gap=weights.gap,
        wait_weight=weights.wait,
        limit=weights.limit,
        limiting_wait=weights.limiting_wait,
        residual=weights.residual,
        step_begin=places[7],
        step_end=places[8],
    )


def _collect_points(*requests: tuple[Int32, Int64]) -> tuple[HostPoints, list[Int64]]:
    """Return the points of all (threads, times), and for each request the positions of its points."""
    thread = np.concatenate([threads for threads, _ in requests]).astype(np.int32)
    time = np.concatenate([times for _, times in requests]).astype(np.int64)
    order = np.lexsort((time, thread))
    ordered_thread, ordered_time = thread[order], time[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (ordered_thread[1:] != ordered_thread[:-1]) | (ordered_time[1:] != ordered_time[:-1])
    position = np.empty(len(order), np.int64)
    position[order] = np.cumsum(is_new) - 1
    thread, time = ordered_thread[is_new], ordered_time[is_new]
    first = np.ones(len(thread), np.bool_)
    first[1:] = thread[1:] != thread[:-1]
    low = np.flatnonzero(first)
    points = HostPoints(thread, time, first, thread[low], np.append(low, len(thread)).astype(np.int64))
    return points, np.split(position, np.cumsum([len(times) for _, times in requests])[:-1])


def _host_ends(trace: Trace, spans: Steps, items: DeviceItems, main: int) -> Int64:
    """Return when the main thread is done with each step; a trace without steps may end with its device work."""
    if spans.recorded or len(items) == 0 or items.end.max() < spans.ends.max():
        return spans.host_ends
    rows = rows_of_kind(trace, *HOST_KINDS)
    ends = event_spans(trace, rows[trace.events.thread[rows] == main])[1]
    done: Int64 = np.minimum(spans.host_ends, ends.max(initial=spans.host_starts.min()))
    return done


def _move_out_of_calls(times: Int64, calls: BlockingCalls, thread: int) -> Int64:
    """Return borders of steps, with those that rounding puts inside a call of their thread moved to its end.

    Inside, all the waiting of the call would count as work of the thread before the border.
    """
    mine = np.flatnonzero(calls.thread == thread)
    if len(mine) == 0:
        return times
    begin, end = calls.begin[mine], calls.end[mine]
    at = np.maximum(np.searchsorted(begin, times, "left") - 1, 0)
    inside = (begin[at] < times) & (times < end[at])
    moved = np.where(inside & (end[at] - times <= TIME_RESOLUTION_NS), end[at], times)
    return np.where(inside & (times - begin[at] <= TIME_RESOLUTION_NS), begin[at], moved)


def _host_graph(
    points: HostPoints,
    items: DeviceItems,
    calls: BlockingCalls,
    hands: HandOffs,
    unrecorded: UnrecordedWaits,
    places: list[Int64],
) -> tuple[Int64, HostEdges, Bool]:
    """Return (step, edges, anchored) of the points; `places` are the positions of the requested points."""
    call_begin, resume, source_point, target_point, resumed = (places[each] for each in (1, 2, 4, 5, 10))
    step = points.elapsed.copy()
    # A call that waited works for part of the time from its start to its resumption; the rest is waiting.
    own_work = np.where(calls.kind == WaitKind.QUEUE, items.typical_call_ns, _IDLE_SYNC_NS)
    has_waited = calls.has_waited
    already_past = points.time[np.maximum(resume - 1, 0)] - points.time[call_begin]
    remaining = np.maximum(np.minimum(calls.resume_time - calls.begin, own_work) - already_past, 0)
    np.minimum.at(step, resume[has_waited], remaining[has_waited])
    step[target_point] = step[resumed] = 0
    anchored = points.first.copy()
    anchored[target_point] = False

    call = calls.source_call
    after = calls.resume_time[call] - items.end[calls.sources]
    is_last = has_waited[call] & (items.end[calls.sources] == calls.sources_end[call])
    weight = np.where(is_last, after, np.minimum(after, _MAX_IDLE_RETURN_NS))
    parts = (
        (resume[call], calls.sources, None, weight, calls.call[call], is_last),
        (target_point, None, source_point, hands.target_time - hands.source_time, None, None),
        (resumed, unrecorded.item, None, unrecorded.resume - items.end[unrecorded.item], None, None),
    )
    edges = _sort_edges([_host_edges(*part) for part in parts])
    return step, edges, anchored


def _host_edges(
    target: Int64, item: Int64 | None, point: Int64 | None, weight: Int64, call: Int32 | None, binds: Bool | None
) -> HostEdges:
    """Return edges with the same targets; None: no item, point or call, or all bind."""
    none = np.full(len(target), NO_CODE, np.int64)
    return HostEdges(
        target,
        none if item is None else item,
        none if point is None else point,
        weight,
        (none if call is None else call).astype(np.int32),
        np.ones(len(target), np.bool_) if binds is None else binds,
    )


def _sort_edges(parts: Sequence[HostEdges]) -> HostEdges:
    """Return all edges by target."""
    columns = [np.concatenate(column) for column in zip(*map(msgspec.structs.astuple, parts), strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return HostEdges(*(column[order] for column in columns))


class _DeviceWeights(msgspec.Struct, frozen=True):
    """The device's columns of `Schedule`; `wait` is `wait_weight`."""

    launch: Int64
    gap: Int64
    wait: Int64
    limit: Int8
    limiting_wait: Int64
    residual: Int64


def _device_weights(trace: Trace, items: DeviceItems, waits: StreamWaits) -> _DeviceWeights:
    by_launch, by_stream = earliest_starts(trace)
    after = items.start[waits.item] - items.end[waits.source]
    wait = np.minimum(after, STREAM_WAKE_NS)
    by_wait, limiting_wait = np.full(len(items), NEVER), np.full(len(items), NO_CODE, np.int64)
    wait_end = items.end[waits.source] + wait
    np.maximum.at(by_wait, waits.item, wait_end)
    latest = np.flatnonzero(wait_end == by_wait[waits.item])
    limiting_wait[waits.item[latest][::-1]] = latest[::-1]
    earliest = np.maximum(by_launch, by_stream)
    limit = np.where(by_stream > by_launch, np.int8(StartLimit.STREAM), np.int8(StartLimit.LAUNCH))
    limit[by_wait > earliest] = StartLimit.WAIT
    np.maximum(earliest, by_wait, out=earliest)
    unlimited = earliest == NEVER
    limit[unlimited] = StartLimit.NOTHING
    residual = np.where(unlimited, 0, items.start - earliest)
    limiting_wait[limit != StartLimit.WAIT] = NO_CODE
    binding = limiting_wait[limiting_wait >= 0]
    wait[binding] += residual[waits.item[binding]]
    launch = np.where(items.call >= 0, by_launch - items.submit_time, 0)
    gap = np.where(items.previous_end > NEVER, by_stream - items.previous_end, 0)
    launch[limit == StartLimit.LAUNCH] += residual[limit == StartLimit.LAUNCH]
    gap[limit == StartLimit.STREAM] += residual[limit == StartLimit.STREAM]
    return _DeviceWeights(launch, gap, wait, limit, limiting_wait, residual)
