"""The work of the devices, stream by stream: when each item was submitted, and how soon it could start.

Times are on the host's clock: a device clock that runs behind is shifted by `clock_shift_ns`.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import median, quantile, search_sorted
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import event_spans
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace

NEVER = -(2**60)
"""A time earlier than any of a trace, far enough from the int64 limit to add to it."""

STREAM_WAKE_NS = 4_000
"""Longest time from the end of an item to the start of one on another stream that waits for it, ns."""

_MIN_LAUNCH_LATENCY_NS = 1_000
"""Shortest time from the start of a launching call to the start of its work, ns."""

_MAX_QUEUED_GAP_NS = 20_000
"""An item that starts within this time of the previous one on its stream was queued behind it, ns."""

BLOCKED_LAUNCH_RATIO = 4
"""A launch this many times slower than a quick one (5th percentile) may be blocked."""

MIN_QUICK_LAUNCH_NS = 1_000
"""Shortest duration that counts for a quick launch, ns: old files round durations to µs."""

_TYPICAL_CALL_NS = (1_000, 20_000)
"""Lower and upper limit of the median duration of launching calls, ns."""

_DEFAULT_LAUNCH_NS, _MAX_LAUNCH_NS = 4_000, 20_000
_DEFAULT_GAP_NS, _MAX_GAP_NS = 2_000, 10_000

_MIN_LATENCY_SAMPLES = 10
"""Fewest items that make a measured latency meaningful; with fewer the default is used."""


class DeviceItems(msgspec.Struct, frozen=True):
    """Kernels, copies and memsets by stream and start. Columns of length n; times in ns on the host's clock.

    row           int32  row of the trace
    call          int32  row of the call that launched it, NO_CODE if none is recorded
    thread        int32  thread of that call, NO_CODE if none
    device, stream  int64  as the trace numbers them
    queue         int32  position in `bounds`: one per (device, stream)
    start, end    int64  shifted by `clock_shift_ns`
    call_start    int64  when the call began, ABSENT if none
    submit_time   int64  when the item was submitted, inside or at the end of its call; ABSENT if none
    previous_end  int64  end of the item before it in the stream, NEVER for the first
    bounds        int64[queues + 1]  the items of queue k are bounds[k]:bounds[k + 1]
    typical_call_ns  median duration of the calls, without those that wait for a full queue if they are most
    """

    row: Int32
    call: Int32
    thread: Int32
    device: Int64
    stream: Int64
    queue: Int32
    start: Int64
    end: Int64
    call_start: Int64
    submit_time: Int64
    previous_end: Int64
    bounds: Int64
    typical_call_ns: int

    def __len__(self) -> int:
        return len(self.row)

    @property
    def queues(self) -> int:
        """Return the number of streams that have items."""
        return len(self.bounds) - 1


@stored
def clock_shift_ns(trace: Trace) -> int:
    """Return what analyses add to device times so that nothing starts before its call; 0 where nothing does.

    If an item starts before its call: shift = max(0, 1 us - min(item start - call start)).
    """
    rows, calls = device_launches(trace)
    linked = calls >= 0
    if not linked.any():
        return 0
    shortest = int((trace.events.start[rows[linked]] - trace.events.start[calls[linked]]).min())
    return max(0, _MIN_LAUNCH_LATENCY_NS - shortest) if shortest < 0 else 0


@stored
def device_items(trace: Trace) -> DeviceItems:
    """Return all device work of a trace.

    An item is submitted at min(call end, item start). If it starts right after the previous one on its stream, and
    that one ended after a typical call would have returned, it was submitted no later than that typical return:
    the call went on after submitting.
    """
    rows, calls = device_launches(trace)
    (start, finish), shift = event_spans(trace, rows), clock_shift_ns(trace)
    device, stream = device_ids(trace).take(rows), stream_ids(trace).take(rows)
    linked = calls >= 0
    call_start, call_end = event_spans(trace, np.where(linked, calls, 0))
    call_start[~linked] = ABSENT
    order = np.lexsort((finish, call_start, start, stream, device))
    rows, calls, linked = rows.take(order), calls.take(order), linked.take(order)
    call_start, call_end = call_start.take(order), call_end.take(order)[linked]
    device, stream = device.take(order), stream.take(order)
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (device[1:] != device[:-1]) | (stream[1:] != stream[:-1])
    bounds = np.append(np.flatnonzero(is_first), len(rows)).astype(np.int64)
    begin, end = start.take(order) + shift, finish.take(order) + shift
    previous_end = np.full(len(rows), NEVER)
    previous_end[1:] = np.where(is_first[1:], NEVER, end[:-1])
    durations = call_end - call_start[linked]
    typical = (
        int(np.clip(_estimate_typical_duration(durations), *_TYPICAL_CALL_NS))
        if linked.any()
        else _TYPICAL_CALL_NS[0]
    )
    submit_time = np.full(len(rows), ABSENT)
    submit = np.minimum(call_end, begin[linked])
    typical_end = np.minimum(call_start[linked] + typical, call_end)
    is_queued = previous_end[linked] >= typical_end
    is_queued &= begin[linked] - previous_end[linked] <= _MAX_QUEUED_GAP_NS
    submit = np.where(is_queued, np.minimum(submit, typical_end), submit)
    submit_time[linked] = np.maximum(submit, np.minimum(call_start[linked], begin[linked]))
    return DeviceItems(
        row=rows,
        call=calls,
        thread=np.where(linked, trace.events.thread.take(calls), NO_CODE).astype(np.int32),
        device=device,
        stream=stream,
        queue=(np.cumsum(is_first) - 1).astype(np.int32),
        start=begin,
        end=end,
        call_start=call_start,
        submit_time=submit_time,
        previous_end=previous_end,
        bounds=bounds,
        typical_call_ns=typical,
    )


def _estimate_typical_duration(durations: Int64) -> float:
    """Return the median duration of calls, or of the quick ones where most are slow: these wait for room."""
    if len(durations) == 0:
        return 0.0
    middle, quick = median(durations), quantile(durations, 0.05)
    longest = BLOCKED_LAUNCH_RATIO * max(quick, MIN_QUICK_LAUNCH_NS)
    return middle if middle <= longest else median(durations[durations <= longest])


def last_items_before(items: DeviceItems, times: Int64) -> Int64:
    """Return int64[k, queues]: the last item of each stream that was called before each time; NO_CODE if none.

    An item counts as called once its call, or the call of any item before it in the stream, has begun.
    """
    last = np.full((len(times), items.queues), NO_CODE, np.int64)
    call_start = np.where(items.call_start == ABSENT, NEVER, items.call_start)
    for queue in range(items.queues):
        low, high = items.bounds[queue], items.bounds[queue + 1]
        before = search_sorted(np.maximum.accumulate(call_start[low:high]), times, "left")
        # Items without a call count as called at NEVER: with nothing else before it, the time is too early to
        # tell.
        known = (before > 0) & (call_start[low:high].max(initial=NEVER) > NEVER)
        last[:, queue] = np.where(known, low + before - 1, NO_CODE)
    return last


def queue_streams(items: DeviceItems) -> Int64:
    """Return int64[queues]: the stream of each queue."""
    return items.stream[items.bounds[:-1]]


class StartLatencies(msgspec.Struct, frozen=True):
    """How soon items start once nothing delays them.

    launch_ns  25th percentile of the time from submission to start in an empty stream
    gap_ns     median time between two items of which the second is queued
    """

    launch_ns: int
    gap_ns: int


def typical_latencies(items: DeviceItems) -> StartLatencies:
    """Return the typical latencies of this trace, or defaults where fewer than ten items show them."""
    linked = items.call >= 0
    finds_empty_stream = linked & (items.submit_time >= items.previous_end)
    launch, gap = _DEFAULT_LAUNCH_NS, _DEFAULT_GAP_NS
    if finds_empty_stream.sum() >= _MIN_LATENCY_SAMPLES:
        delay = quantile((items.start - items.submit_time)[finds_empty_stream], 0.25)
        launch = int(np.clip(delay, 0, _MAX_LAUNCH_NS))
    is_queued = linked & (items.submit_time + launch < items.previous_end)
    if is_queued.sum() >= _MIN_LATENCY_SAMPLES:
        between = median((items.start - items.previous_end)[is_queued])
        gap = int(np.clip(between, 0, _MAX_GAP_NS))
    return StartLatencies(launch, gap)


@derived
def earliest_starts(trace: Trace) -> tuple[Int64, Int64]:
    """Return int64[n] twice: when submission and stream allow each item to start; NEVER where neither is known."""
    items = device_items(trace)
    typical = typical_latencies(items)
    linked, follows = items.call >= 0, items.previous_end > NEVER
    launch = np.minimum(items.start - items.submit_time, typical.launch_ns)
    by_launch = np.where(linked, items.submit_time + launch, NEVER)
    by_stream = items.previous_end + np.minimum(items.start - items.previous_end, typical.gap_ns)
    return by_launch, np.where(follows, by_stream, NEVER)
