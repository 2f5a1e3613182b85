"""Items that wait for items of other streams.

After `cudaStreamWaitEvent` the thread's next launch waits for what was launched last on the stream of the event:
as recorded; else on each other stream of the device, unless that ended later than the item starts. An item that
starts late for no other reason, right after one of another stream, waited for that one (inferred).
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.schedule.call_names import makes_stream_wait
from torch_tb_profiler.model.schedule.items import NEVER, Items, items, last_items, queue_streams
from torch_tb_profiler.model.schedule.recorded import recorded_waits
from torch_tb_profiler.model.schedule.submission import WAKE_NS, arrivals, latencies
from torch_tb_profiler.model.trace import Bool, Int64, Trace, derived, distinct

LATE_NS = 20_000
"""What starts later than its known reasons allow by more than this is not explained by them."""

_LOOKS_BACK = 4


class StreamWaits(msgspec.Struct, frozen=True):
    """Edges from an item to one on another stream, by item and source; columns of length w.

    item, source  int64  positions of items; the source starts before the item and has ended when it starts
    inferred      bool   from times alone: no call says so
    """

    item: Int64
    source: Int64
    inferred: Bool


@derived
def stream_waits(trace: Trace) -> StreamWaits:
    """All waits between streams."""
    work = items(trace)
    if work.queues < 2:
        none = np.empty(0, np.int64)
        return StreamWaits(none, none, np.empty(0, np.bool_))
    item, source = _by_call(trace, work)
    late, cause = _by_time(work, item, source)
    item, source = np.append(item, late), np.append(source, cause)
    inferred = np.arange(len(item)) >= len(item) - len(late)
    order = np.lexsort((inferred, source, item))
    item, source, inferred = item[order], source[order], inferred[order]
    fresh = np.ones(len(item), np.bool_)
    fresh[1:] = (item[1:] != item[:-1]) | (source[1:] != source[:-1])
    return StreamWaits(item[fresh], source[fresh], inferred[fresh])


def _by_call(trace: Trace, work: Items) -> tuple[Int64, Int64]:
    calls = np.flatnonzero(makes_stream_wait(trace))
    thread, start = trace.events.thread[calls], trace.events.start[calls]
    item = np.full(len(calls), -1, np.int64)
    for code in distinct(thread):
        mine = np.flatnonzero(work.thread == code)
        mine = mine[np.argsort(work.submitted[mine], kind="stable")]
        asked = np.flatnonzero(thread == code)
        following = np.searchsorted(work.submitted[mine], start[asked], "right")
        item[asked[following < len(mine)]] = mine[following[following < len(mine)]]
    calls, item = calls[item >= 0], item[item >= 0]
    if len(calls) == 0:
        return item, item
    recorded = recorded_waits(trace, calls)
    last = last_items(work, recorded.since)
    queues = np.arange(work.queues)[None, :]
    there = (last >= 0) & (queues != work.queue[item][:, None])
    there &= (work.device[last] == work.device[item][:, None]) & (work.end[last] <= work.start[item][:, None])
    there &= work.start[last] < work.start[item][:, None]
    named = there & (queue_streams(work)[None, :] == recorded.stream[:, None])
    by_name = named.any(axis=1)
    there[by_name] = named[by_name]
    of, queue = np.nonzero(there)
    return item[of], last[of, queue]


def _by_time(work: Items, item: Int64, source: Int64) -> tuple[Int64, Int64]:
    """Items whose start their launch, their stream and the waits known so far do not explain."""
    by_launch, by_stream = arrivals(work, latencies(work))
    known = np.maximum(by_launch, by_stream)
    by_wait = np.full(len(work), NEVER)
    np.maximum.at(by_wait, item, work.end[source] + WAKE_NS)
    late = np.flatnonzero((work.start - np.maximum(known, by_wait) > LATE_NS) & (known > NEVER))
    cause = np.full(len(late), -1, np.int64)
    for device in np.unique(work.device[late]).tolist():
        there = np.flatnonzero(work.device == device)
        there = there[np.argsort(work.end[there], kind="stable")]
        asked = np.flatnonzero(work.device[late] == device)
        ended = np.searchsorted(work.end[there], work.start[late[asked]], "right") - 1
        for back in range(_LOOKS_BACK):
            other = there[np.maximum(ended - back, 0)]
            after = late[asked]
            fits = (ended >= back) & (cause[asked] < 0) & (work.queue[other] != work.queue[after])
            fits &= (work.start[after] - work.end[other] <= LATE_NS) & (work.start[other] < work.start[after])
            cause[asked[fits]] = other[fits]
    return late[cause >= 0], cause[cause >= 0]
