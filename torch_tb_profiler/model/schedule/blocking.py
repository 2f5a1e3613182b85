"""Calls that return only after device work has ended, and the items that each waits for.

    cudaStreamSynchronize -----------|      thread
         gemm --------------|               stream      source: the last item submitted before the call

Without a record, a call that waits for an event may wait for older work than that: for what ended right before it
returned.

The call returns some microseconds after its last source; later than `MAX_WAKE_NS` after it, the call runs its own
code (from `resume_time`).

A launch also blocks while its stream's queue is full. It counts as blocked if it takes over four times what a
quick launch takes (5th percentile), the queue is at 90% of its fullest or above, and it returns at most 10 us
after an earlier item of the stream starts; a launch of a graph doesn't count. Its source is the item before that
one, whose end made room. The median distance of such calls from the item that runs is the queue's capacity.
Launches behind more than half of that capacity get the edge as well, with slack: a change may fill the queue.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import median, quantile, search_sorted
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.base.patterns import AnyCase
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.schedule.items import (
    BLOCKED_LAUNCH_RATIO,
    MIN_QUICK_LAUNCH_NS,
    NEVER,
    DeviceItems,
    device_items,
    last_items_before,
    queue_streams,
)
from torch_tb_profiler.model.schedule.sync_calls import (
    recorded_waits,
    waits_for_device,
    waits_for_event,
    waits_for_stream,
)
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, Trace, name_mask

MAX_WAKE_NS = 50_000
"""Longest time from the end of a call's last source to its return that still counts as waiting, ns."""

_COPY_TOLERANCE_NS = 20_000
"""A pageable copy's call may return this long before the copy is recorded to end, ns."""

_MIN_LONG_COPY_CALL_NS = 50_000
"""A longer call of a pageable copy waits for it, ns, even if it returns a little before the recorded end."""

_MIN_LONG_KERNEL_NS = 20_000
"""Kernels longer than this show whether their launches block, ns; shorter ones may end in their launch anyway."""

_MIN_BLOCKING_SHARE = 0.8
"""Share of the long kernels that must end within their calls for launches to count as blocking."""

_MIN_LONG_KERNELS = 10
"""Fewest long kernels that tell whether launches block."""

_ON_DEVICE_OR_PINNED = AnyCase("dtod ptop pinned", ("device -> device", "device -> device"))

_MIN_QUEUE_ITEMS = 64
"""Fewest launches of a stream that tell whether its queue fills up."""

_MIN_QUEUE_LENGTH = 16
"""A queue that never holds this many items is never full."""

_MIN_BLOCKED_LAUNCHES = 3
"""Fewest blocked launches that tell a queue's capacity."""

_NEARLY_FULL_SHARE = 0.9
"""Share of the longest recorded queue from which on a queue may be full: lengths are known to a few items."""

_RETURN_TOLERANCE_NS = 10_000
"""Longest time from the start of an item to the return of the launch that waited for its place, ns."""


class WaitKind(IntEnum):
    """Why a call waits: a sync, a blocking copy, a blocking launch, or a full queue."""

    SYNC = 0
    COPY = 1
    LAUNCH = 2
    QUEUE = 3


class BlockingCalls(msgspec.Struct, frozen=True):
    """Calls that wait for items, by thread and end. Columns of length b; times in ns on the host's clock.

    call, thread  int32  row and thread of the call; of nested ones the outermost
    kind          int8   a WaitKind
    begin, end    int64
    sources_end   int64  end of its last source, NEVER without any; up to `begin` if it need not wait
    resume_time   int64  when its own code runs: at most MAX_WAKE_NS after `sources_end`; `end` without a wait
    first_source  int64[b + 1]  the sources of call k are sources[first_source[k]:first_source[k + 1]]
    sources       int64[s]  positions of items
    """

    call: Int32
    thread: Int32
    kind: Int8
    begin: Int64
    end: Int64
    sources_end: Int64
    resume_time: Int64
    first_source: Int64
    sources: Int64

    @property
    def has_waited(self) -> Bool:
        """Return bool[b]: calls during which a source ended."""
        has_waited: Bool = self.sources_end > self.begin
        return has_waited

    @property
    def source_call(self) -> Int64:
        """Return int64[s]: the position of the call of each source."""
        return np.repeat(np.arange(len(self.call)), np.diff(self.first_source))


@stored
def blocking_calls(trace: Trace) -> BlockingCalls:
    """Return all calls of a trace that wait for a device, including launches into a full queue."""
    items = device_items(trace)
    edges = [
        (WaitKind.SYNC, *_sync_edges(trace, items)),
        (WaitKind.COPY, *_find_copy_edges(trace, items)),
        (WaitKind.LAUNCH, *_find_launch_edges(trace, items)),
        (WaitKind.QUEUE, *_find_full_queue_edges(trace, items)),
    ]
    call = np.concatenate([calls for _, calls, _ in edges]).astype(np.int32)
    source = np.concatenate([sources for _, _, sources in edges])
    kind = np.concatenate([np.full(len(calls), kind, np.int8) for kind, calls, _ in edges])
    return _merge_edges(trace, items, call, source, kind)


def _sync_edges(trace: Trace, items: DeviceItems) -> tuple[Int64, Int64]:
    """Return (calls, sources) of synchronization calls; the source is NO_CODE for a call without one."""
    whole_device = waits_for_device(trace)
    calls = np.flatnonzero(whole_device | waits_for_stream(trace))
    recorded = recorded_waits(trace, calls)
    latest_items = last_items_before(items, recorded.since)
    finish = event_ends(trace)[calls][:, None]
    of_event = np.flatnonzero(waits_for_event(trace)[calls] & (recorded.stream == ABSENT))
    latest_items[of_event] = _find_awaited_events(items, latest_items[of_event], finish[of_event])
    is_source = (
        (latest_items >= 0) & (items.end[latest_items] <= finish) & (items.start[latest_items] < finish)
        if len(items)
        else latest_items >= 0
    )
    one_stream = ~whole_device[calls]
    on_stream = is_source & (queue_streams(items)[None, :] == recorded.stream[:, None])
    is_recorded = one_stream & on_stream.any(axis=1)
    is_source[is_recorded] = on_stream[is_recorded]
    # Without a record, the stream that ends last is the one it waited for.
    is_guess = one_stream & ~is_recorded & is_source.any(axis=1)
    if is_guess.any():
        latest = np.where(is_source[is_guess], items.end[latest_items[is_guess]], NEVER).argmax(axis=1)
        is_source[is_guess] = np.arange(items.queues)[None, :] == latest[:, None]
    call, queue = np.nonzero(is_source)
    without_source = np.flatnonzero(~is_source.any(axis=1))
    no_source = np.full(len(without_source), NO_CODE, np.int64)
    return calls[np.append(call, without_source)], np.append(latest_items[call, queue], no_source)


def _find_awaited_events(items: DeviceItems, latest: Int64, finish: Int64) -> Int64:
    """Return what calls waited for that may wait for older work than the latest items of each stream.

    Where none of these ended up to MAX_WAKE_NS before the call returned, it is the item of each stream that did.

    latest  int64[k, queues]; finish: int64[k, 1], when the calls returned
    """
    awaited: Int64 = latest.copy()
    if len(items) == 0:
        return awaited

    def woke(which: Int64) -> Bool:
        after = finish - items.end[which]
        on_time: Bool = (which >= 0) & (after >= 0) & (after <= MAX_WAKE_NS)
        return on_time

    unexplained = ~woke(latest).any(axis=1)
    for queue in range(items.queues):
        low, high = items.bounds[queue], items.bounds[queue + 1]
        ended = np.searchsorted(np.maximum.accumulate(items.end[low:high]), finish[:, 0], "right")
        item = np.minimum(latest[:, queue], low + ended - 1)
        older = unexplained & (ended > 0) & woke(item[:, None])[:, 0]
        awaited[older, queue] = item[older]
    return awaited


def _find_copy_edges(trace: Trace, items: DeviceItems) -> tuple[Int64, Int64]:
    """Return (calls, sources) of copies from or to pageable memory whose call outlasts them."""
    at = np.flatnonzero((items.call >= 0) & (event_kinds(trace)[items.row] == Kind.MEMCPY))
    names = trace.events.name[items.row[at]]
    at = at[~name_mask(trace.strings, _ON_DEVICE_OR_PINNED.search, names)[names]]
    finish = event_ends(trace)[items.call[at]]
    is_long = finish - items.call_start[at] > _MIN_LONG_COPY_CALL_NS
    outlasts = (finish >= items.end[at]) | (is_long & (finish >= items.end[at] - _COPY_TOLERANCE_NS))
    at = at[outlasts & (finish > items.start[at])]
    return items.call[at].astype(np.int64), at


def _find_launch_edges(trace: Trace, items: DeviceItems) -> tuple[Int64, Int64]:
    """Return (calls, sources) of every launch if the process ran with blocking launches, else nothing.

    Launches block if most of the long kernels end with their call.
    """
    at = np.flatnonzero((items.call >= 0) & (event_kinds(trace)[items.row] == Kind.KERNEL))
    long = at[items.end[at] - items.start[at] > _MIN_LONG_KERNEL_NS]
    if len(long) < _MIN_LONG_KERNELS or _end_in_their_calls(trace, items, long).mean() < _MIN_BLOCKING_SHARE:
        at = at[:0]
    else:
        at = at[_end_in_their_calls(trace, items, at)]
    return items.call[at].astype(np.int64), at


def _end_in_their_calls(trace: Trace, items: DeviceItems, at: Int64) -> Bool:
    """Return bool[k]: which of these items end before the call that launches them returns, or right after."""
    finish = event_ends(trace)[items.call[at]]
    ends: Bool = (items.end[at] <= finish + MAX_WAKE_NS) & (items.start[at] < finish)
    return ends


def _find_full_queue_edges(trace: Trace, items: DeviceItems) -> tuple[Int64, Int64]:
    """Return (calls, sources) of the launches that wait for room in the queue of their stream."""
    calls, sources = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for queue in range(items.queues):
        call, source = _queue_edges(trace, items, int(items.bounds[queue]), int(items.bounds[queue + 1]))
        calls.append(call)
        sources.append(source)
    return np.concatenate(calls), np.concatenate(sources)


def _queue_edges(trace: Trace, items: DeviceItems, low: int, high: int) -> tuple[Int64, Int64]:
    none = np.empty(0, np.int64)
    # The items of a graph take no places of their own, and its launch can't wait for one of them.
    # Items are nearly in the order of their calls, which a stable sort takes a fiftieth of the time for.
    call, first, count = np.unique(items.call[low:high], return_index=True, return_counts=True)
    at = low + np.sort(first[(call >= 0) & (count == 1)], kind="stable")
    if len(at) < _MIN_QUEUE_ITEMS:
        return none, none
    at = at[np.argsort(items.call_start[at], kind="stable")]
    call_start, call_end, starts = items.call_start[at], event_ends(trace)[items.call[at]], items.start[low:high]
    queued = np.arange(len(at)) - search_sorted(np.sort(items.start[at], kind="stable"), call_start, "right")
    if queued.max() < _MIN_QUEUE_LENGTH:
        return none, none
    duration = call_end - call_start
    running = search_sorted(starts, call_end, "right") - 1
    blocked = duration > BLOCKED_LAUNCH_RATIO * max(quantile(duration, 0.05), MIN_QUICK_LAUNCH_NS)
    blocked &= (queued >= _NEARLY_FULL_SHARE * queued.max()) & (running > 0)
    blocked &= (call_end - starts[running] <= _RETURN_TOLERANCE_NS) & (starts[running] > call_start)
    calls, sources = items.call[at[blocked]], low + running[blocked] - 1
    if blocked.sum() >= _MIN_BLOCKED_LAUNCHES and len(at) == high - low:
        behind_half, source = _find_half_full_edges(queued, running, blocked)
        calls, sources = np.append(calls, items.call[at[behind_half]]), np.append(sources, low + source)
    return calls.astype(np.int64), sources.astype(np.int64)


def _find_half_full_edges(queued: Int64, running: Int64, blocked: Bool) -> tuple[Int64, Int64]:
    """Return (launches behind more than half a capacity, the item whose end makes room for each), as positions."""
    place = np.arange(len(queued))
    capacity = int(median((place - running)[blocked]))
    behind_half = np.flatnonzero(~blocked & (queued >= capacity // 2) & (place >= capacity + 1))
    return behind_half, behind_half - capacity - 1


def _merge_edges(trace: Trace, items: DeviceItems, call: Int32, source: Int64, kind: Int8) -> BlockingCalls:
    """Merge the edges call -> source into one row per call; leave out nested calls and those of no length."""
    begin, end = trace.events.start[call], event_ends(trace)[call]
    thread = trace.events.thread[call]
    order = np.lexsort((source, kind, call, -end, begin, thread))
    order = order[(end > begin)[order]]
    call, source, kind = call[order], source[order], kind[order]
    thread, begin, end = thread[order], begin[order], end[order]
    is_first = np.append(True, call[1:] != call[:-1]) if len(call) else np.empty(0, np.bool_)
    position = np.cumsum(is_first) - 1
    outer = _is_outermost(thread[is_first], end[is_first])
    has_source = outer[position] & (source >= 0)
    heads = np.flatnonzero(is_first)[outer]
    counts = np.bincount(position[has_source], minlength=len(outer))[outer]
    first_source = np.append(0, np.cumsum(counts)).astype(np.int64)
    sources = source[has_source]
    sources_end = np.full(len(heads), NEVER)
    np.maximum.at(sources_end, np.repeat(np.arange(len(heads)), np.diff(first_source)), items.end[sources])
    begin, end, kind = begin[heads], end[heads], kind[heads]
    has_own_code = (sources_end > begin) & (kind != WaitKind.QUEUE)
    resume_time = np.where(has_own_code, np.minimum(end, sources_end + MAX_WAKE_NS), end)
    return BlockingCalls(
        call[heads], thread[heads], kind, begin, end, sources_end, resume_time, first_source, sources
    )


def _is_outermost(thread: Int32, end: Int64) -> Bool:
    """Return bool[k]: calls that end after all that began before them on their thread; by thread and begin."""
    outer = np.ones(len(thread), np.bool_)
    bounds = np.flatnonzero(np.diff(thread, prepend=NO_CODE, append=NO_CODE))
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        reach = np.maximum.accumulate(end[low:high])
        outer[low + 1 : high] = end[low + 1 : high] > reach[:-1]
    return outer
