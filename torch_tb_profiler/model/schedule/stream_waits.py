"""Items that wait for items of other streams.

After `cudaStreamWaitEvent` the thread's next launch waits for what was launched last on the stream of the event.
If that stream isn't recorded, it waits for the last item of each other stream of the device that ended before it
starts. Where no call is recorded, communication waits for the work launched on its device before it, whose results
it sends, also where other communication holds it up for longer (inferred). An item that starts late for no other
reason, right after one of another stream, likely waited for that one (inferred): one of the same device, or else
of another device of the process, as between the stages of a model on several devices.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct_numbers, search_sorted
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.schedule.items import (
    NEVER,
    STREAM_WAKE_NS,
    DeviceItems,
    device_items,
    earliest_starts,
    last_items_before,
    queue_streams,
)
from torch_tb_profiler.model.schedule.sync_calls import makes_stream_wait, recorded_waits
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int64, Trace, distinct_codes

LATE_NS = 20_000
"""An item that starts this much later than its known limits allow isn't explained by them, ns."""

_MAX_CANDIDATES = 4
"""How many of the items that ended last before a late start are tried as its cause."""


class StreamWaits(msgspec.Struct, frozen=True):
    """Edges from an item to one on another stream, by item and source; columns of length w.

    item, source  int64  positions of items; the source starts before the item and has ended when it starts
    inferred      bool   from times, or from what communication sends: no recorded call makes it wait
    """

    item: Int64
    source: Int64
    inferred: Bool


@stored
def stream_waits(trace: Trace) -> StreamWaits:
    """Return all waits between streams."""
    items = device_items(trace)
    if items.queues < 2:
        none = np.empty(0, np.int64)
        return StreamWaits(none, none, np.empty(0, np.bool_))
    item, source = _find_waits_by_call(trace, items)
    recorded = len(item)
    sends, data = _find_waits_of_communication(trace, items, item)
    item, source = np.append(item, sends), np.append(source, data)
    late, cause = _find_waits_by_time(trace, items, item, source)
    item, source = np.append(item, late), np.append(source, cause)
    inferred = np.arange(len(item)) >= recorded
    order = np.lexsort((inferred, source, item))
    item, source, inferred = item[order], source[order], inferred[order]
    is_new = np.ones(len(item), np.bool_)
    is_new[1:] = (item[1:] != item[:-1]) | (source[1:] != source[:-1])
    return StreamWaits(item[is_new], source[is_new], inferred[is_new])


def has_unknown_consumers(trace: Trace) -> bool:
    """Return whether nothing recorded says what waits for communication.

    What it delayed is inferred then. What would have waited for it, had it come sooner, isn't known.
    """
    items = device_items(trace)
    return bool(is_communication_kernel(trace)[items.row].any()) and not bool(makes_stream_wait(trace).any())


def _find_waits_by_call(trace: Trace, items: DeviceItems) -> tuple[Int64, Int64]:
    """Return (items, sources) of the waits that calls ask for."""
    calls = np.flatnonzero(makes_stream_wait(trace))
    thread, start = trace.events.thread[calls], trace.events.start[calls]
    item = np.full(len(calls), -1, np.int64)
    for code in distinct_codes(thread):
        launched = np.flatnonzero(items.thread == code)
        launched = launched[np.argsort(items.submit_time[launched], kind="stable")]
        on_thread = np.flatnonzero(thread == code)
        following = search_sorted(items.submit_time[launched], start[on_thread], "right")
        item[on_thread[following < len(launched)]] = launched[following[following < len(launched)]]
    calls, item = calls[item >= 0], item[item >= 0]
    if len(calls) == 0:
        return item, item
    recorded = recorded_waits(trace, calls)
    last = last_items_before(items, recorded.since)
    queues = np.arange(items.queues)[None, :]
    fits = (last >= 0) & (queues != items.queue[item][:, None])
    fits &= (items.end[last] <= items.start[item][:, None]) & (items.start[last] < items.start[item][:, None])
    # A stream has its number on each device; the event may be of another one.
    is_recorded = fits & (queue_streams(items)[None, :] == recorded.stream[:, None])
    fits &= items.device[last] == items.device[item][:, None]
    is_here = is_recorded & fits
    for found in (is_recorded, is_here):
        has_record = found.any(axis=1)
        fits[has_record] = found[has_record]
    waiting, queue = np.nonzero(fits)
    return item[waiting], last[waiting, queue]


def _find_waits_of_communication(trace: Trace, items: DeviceItems, waiting: Int64) -> tuple[Int64, Int64]:
    """Return (items, sources) of communication without a recorded wait: the last work launched before it there.

    `torch.distributed` makes each collective wait for the stream of its device that computes what it sends.
    """
    communicates = is_communication_kernel(trace)[items.row]
    communicates[items.call < 0] = False
    found = [np.empty(0, np.int64)]
    for code in distinct_codes(items.thread[communicates]):
        launched = np.flatnonzero((items.thread == code) & (items.call >= 0))
        launched = launched[np.argsort(items.submit_time[launched], kind="stable")]
        for device in distinct_numbers(items.device[launched[communicates[launched]]]):
            here = launched[items.device[launched] == device]
            computes = np.where(communicates[here], NO_CODE, np.arange(len(here)))
            latest = np.maximum.accumulate(computes)
            mine = np.flatnonzero(communicates[here] & (latest >= 0))
            found.append(np.stack([here[mine], here[latest[mine]]]).ravel("F"))
    item, source = np.concatenate(found).reshape(-1, 2).T
    waits = np.zeros(len(items), np.bool_)
    waits[waiting] = True
    fits = ~waits[item] & (items.queue[source] != items.queue[item])
    fits &= (items.end[source] <= items.start[item]) & (items.start[source] < items.start[item])
    return item[fits], source[fits]


def _find_waits_by_time(trace: Trace, items: DeviceItems, item: Int64, source: Int64) -> tuple[Int64, Int64]:
    """Return (items, likely sources) of late starts that launch, stream and the given waits don't explain.

    A source is on the same device if one there fits, otherwise on another device of the process.
    """
    by_launch, by_stream = earliest_starts(trace)
    known = np.maximum(by_launch, by_stream)
    by_wait = np.full(len(items), NEVER)
    np.maximum.at(by_wait, item, items.end[source] + STREAM_WAKE_NS)
    late = np.flatnonzero((items.start - np.maximum(known, by_wait) > LATE_NS) & (known > NEVER))
    cause = np.full(len(late), NO_CODE, np.int64)
    for device in distinct_numbers(items.device[late]):
        here = np.flatnonzero(items.device[late] == device)
        cause[here] = _find_ended_before(items, np.flatnonzero(items.device == device), late[here])
    unexplained = np.flatnonzero(cause < 0)
    cause[unexplained] = _find_ended_before(items, np.arange(len(items)), late[unexplained])
    return late[cause >= 0], cause[cause >= 0]


def _find_ended_before(items: DeviceItems, candidates: Int64, late: Int64) -> Int64:
    """Return for each late item the candidate of another stream that ended right before it, or NO_CODE."""
    cause = np.full(len(late), NO_CODE, np.int64)
    ordered = candidates[np.argsort(items.end[candidates], kind="stable")]
    ended = search_sorted(items.end[ordered], items.start[late], "right") - 1
    for back in range(_MAX_CANDIDATES):
        other = ordered[np.maximum(ended - back, 0)]
        fits = (ended >= back) & (cause < 0) & (items.queue[other] != items.queue[late])
        fits &= (items.start[late] - items.end[other] <= LATE_NS) & (items.start[other] < items.start[late])
        cause[fits] = other[fits]
    return cause
