"""Calls that return only after work of a device, and the items that each waits for.

    cudaStreamSynchronize -----------|      thread
         gemm --------------|               stream      source: the last item handed over before the call

The call returns a wake-up after its last source; from 50 us after it the call works for itself (`released`).
"""

from __future__ import annotations

import re
from enum import IntEnum

import msgspec
import numpy as np

from torch_tb_profiler.model.kinds import Kind, ends, kinds
from torch_tb_profiler.model.schedule.call_names import waits_for_device, waits_for_stream
from torch_tb_profiler.model.schedule.full_queue import full_queue_edges
from torch_tb_profiler.model.schedule.items import NEVER, Items, items, last_items, queue_streams
from torch_tb_profiler.model.schedule.recorded import recorded_waits
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64, Trace, derived, name_mask

LONGEST_WAKE_NS = 50_000
"""From here after its last source a call works for itself."""

_COPY_AHEAD_NS = 20_000
"""A pageable copy's call may return this long before the copy is recorded to end."""

_LONG_COPY_CALL_NS = 50_000
_LONG_ITEM_NS = 20_000
_BLOCKING_SHARE = 0.8
_LEAST_LAUNCHES = 10

_ON_DEVICE_OR_PINNED = re.compile("dtod|device -> device|ptop|pinned", re.IGNORECASE)


class WaitKind(IntEnum):
    """Why a call waits."""

    SYNC = 0
    COPY = 1
    LAUNCH = 2
    QUEUE = 3


class BlockingCalls(msgspec.Struct, frozen=True):
    """Calls that wait for items, by thread and end. Columns of length b; times in ns on the host's clock.

    call, thread  int32  row and thread of the call; of nested ones the outermost
    kind          int8   a WaitKind
    begin, end    int64
    ready         int64  end of its last source, NEVER without any; with `ready <= begin` there was nothing left to
                         wait for
    released      int64  when it went on by itself: at most LONGEST_WAKE_NS after `ready`; `end` if it did not wait
    first         int64[b + 1]  the sources of call k are sources[first[k]:first[k + 1]]
    sources       int64[s]  positions of items
    """

    call: Int32
    thread: Int32
    kind: Int8
    begin: Int64
    end: Int64
    ready: Int64
    released: Int64
    first: Int64
    sources: Int64

    @property
    def waited(self) -> Bool:
        """bool[b]: a source ended while the call ran."""
        waited: Bool = self.ready > self.begin
        return waited

    @property
    def of_source(self) -> Int64:
        """int64[s]: the call of each source."""
        return np.repeat(np.arange(len(self.call)), np.diff(self.first))


@derived
def blocking_calls(trace: Trace) -> BlockingCalls:
    """All calls of a trace that wait for a device; those that wait for a full queue among them."""
    work = items(trace)
    edges = [_synchronizing(trace, work), _copying(trace, work), _launching(trace, work)]
    edges.append((WaitKind.QUEUE, *full_queue_edges(trace, work)))
    call = np.concatenate([calls for _, calls, _ in edges]).astype(np.int32)
    source = np.concatenate([sources for _, _, sources in edges])
    kind = np.concatenate([np.full(len(calls), kind, np.int8) for kind, calls, _ in edges])
    return _assemble(trace, work, call, source, kind)


def _synchronizing(trace: Trace, work: Items) -> tuple[WaitKind, Int64, Int64]:
    """(kind, calls, sources): NO_CODE for a call without a source."""
    whole = waits_for_device(trace)
    calls = np.flatnonzero(whole | waits_for_stream(trace))
    recorded = recorded_waits(trace, calls)
    latest_items = last_items(work, recorded.since)
    finish = ends(trace)[calls][:, None]
    there = (
        (latest_items >= 0) & (work.end[latest_items] <= finish) & (work.start[latest_items] < finish)
        if len(work)
        else latest_items >= 0
    )
    of_one = ~whole[calls]
    named = there & (queue_streams(work)[None, :] == recorded.stream[:, None])
    by_name = of_one & named.any(axis=1)
    there[by_name] = named[by_name]
    last = of_one & ~by_name & there.any(axis=1)
    if last.any():
        latest = np.where(there[last], work.end[latest_items[last]], NEVER).argmax(axis=1)
        there[last] = np.arange(work.queues)[None, :] == latest[:, None]
    of, queue = np.nonzero(there)
    alone = np.flatnonzero(~there.any(axis=1))
    nothing = np.full(len(alone), NO_CODE, np.int64)
    return WaitKind.SYNC, calls[np.append(of, alone)], np.append(latest_items[of, queue], nothing)


def _copying(trace: Trace, work: Items) -> tuple[WaitKind, Int64, Int64]:
    """Copies from or to pageable memory whose call outlasts them."""
    at = np.flatnonzero((work.call >= 0) & (kinds(trace)[work.row] == Kind.MEMCPY))
    names = trace.events.name[work.row[at]]
    at = at[~name_mask(trace.strings, _ON_DEVICE_OR_PINNED.search, names)[names]]
    finish = ends(trace)[work.call[at]]
    long = finish - work.called[at] > _LONG_COPY_CALL_NS
    outlasts = (finish >= work.end[at]) | (long & (finish >= work.end[at] - _COPY_AHEAD_NS))
    at = at[outlasts & (finish > work.start[at])]
    return WaitKind.COPY, work.call[at].astype(np.int64), at


def _launching(trace: Trace, work: Items) -> tuple[WaitKind, Int64, Int64]:
    """Every launch, if the process ran with blocking launches: most of what is long ends with its call."""
    at = np.flatnonzero((work.call >= 0) & (kinds(trace)[work.row] == Kind.KERNEL))
    finish = ends(trace)[work.call[at]]
    inside = (work.end[at] <= finish + LONGEST_WAKE_NS) & (work.start[at] < finish)
    long = work.end[at] - work.start[at] > _LONG_ITEM_NS
    if long.sum() < _LEAST_LAUNCHES or inside[long].mean() < _BLOCKING_SHARE:
        at = at[:0]
    else:
        at = at[inside]
    return WaitKind.LAUNCH, work.call[at].astype(np.int64), at


def _assemble(trace: Trace, work: Items, call: Int32, source: Int64, kind: Int8) -> BlockingCalls:
    """Edges call -> source as one row per call; calls inside another one, and those of no length, are left out."""
    begin, end = trace.events.start[call], ends(trace)[call]
    thread = trace.events.thread[call]
    order = np.lexsort((source, kind, call, -end, begin, thread))
    order = order[(end > begin)[order]]
    call, source, kind = call[order], source[order], kind[order]
    thread, begin, end = thread[order], begin[order], end[order]
    fresh = np.append(True, call[1:] != call[:-1]) if len(call) else np.empty(0, np.bool_)
    of = np.cumsum(fresh) - 1
    outer = _outermost(thread[fresh], end[fresh])
    kept = outer[of] & (source >= 0)
    heads = np.flatnonzero(fresh)[outer]
    first = np.append(0, np.cumsum(np.bincount(of[kept], minlength=len(outer))[outer])).astype(np.int64)
    sources = source[kept]
    ready = np.full(len(heads), NEVER)
    np.maximum.at(ready, np.repeat(np.arange(len(heads)), np.diff(first)), work.end[sources])
    begin, end, kind = begin[heads], end[heads], kind[heads]
    waits = (ready > begin) & (kind != WaitKind.QUEUE)
    released = np.where(waits, np.minimum(end, ready + LONGEST_WAKE_NS), end)
    return BlockingCalls(call[heads], thread[heads], kind, begin, end, ready, released, first, sources)


def _outermost(thread: Int32, end: Int64) -> Bool:
    """bool[k]: calls that end after all that began before them on their thread; ordered by thread and begin."""
    outer = np.ones(len(thread), np.bool_)
    bounds = np.flatnonzero(np.diff(thread, prepend=NO_CODE, append=NO_CODE))
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        reach = np.maximum.accumulate(end[low:high])
        outer[low + 1 : high] = end[low + 1 : high] > reach[:-1]
    return outer
