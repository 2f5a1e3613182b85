"""Waits for the device that no call records: a thread is silent until right after the device is done.

    host    |launch|launch|...................|add|    nothing begins or ends on the thread while it waits
    device         [   a  ][        b        ]         b is the last of what was launched by then

Some recorders leave out the calls that synchronize, and code that polls an event makes none. A thread on which one
is recorded has no others.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct_numbers, search_sorted
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.base.patterns import Words
from torch_tb_profiler.model.calls.calltree import call_tree, stack_of_thread
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import HOST_KINDS, codes_of_kinds, event_spans
from torch_tb_profiler.model.schedule.blocking import WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.compiled_threads import thread_functions
from torch_tb_profiler.model.schedule.items import DeviceItems, device_items
from torch_tb_profiler.model.trace import Int32, Int64, Trace, distinct_codes, name_mask

MIN_SILENCE_NS = 100_000
"""A shorter silence says nothing about waiting, ns."""

MAX_RETURN_SHARE = 0.02
"""The thread goes on within this share of the silence after the work ends: by chance, that is as unlikely."""

MAX_RETURN_NS = 50_000
"""Longest time from the end of the work to when the thread goes on, ns."""

_POLL = Words("EventQuery StreamQuery")


class UnrecordedWaits(msgspec.Struct, frozen=True):
    """Waits of threads for the end of an item; columns of length h.

    thread         int32
    item           int64  position in `device_items`
    since, resume  int64  ns on the host's clock: the thread is silent in between, and the item ends
    """

    thread: Int32
    item: Int64
    since: Int64
    resume: Int64


@stored
def unrecorded_waits(trace: Trace) -> UnrecordedWaits:
    """Return the waits of the threads that launch work, and on which no call is recorded that waits."""
    items, calls = device_items(trace), blocking_calls(trace)
    recorded = distinct_numbers(calls.thread[calls.has_waited & (calls.kind != WaitKind.QUEUE)])
    waiting = [code for code in distinct_codes(items.thread[items.call >= 0]) if code not in recorded]
    launched = _sort_launched_work(items) if waiting else None
    found = [] if launched is None else [_find_waits_of_thread(trace, items, *launched, code) for code in waiting]
    none = np.empty(0, np.int64)
    parts = [UnrecordedWaits(none.astype(np.int32), none, none, none), *found]
    columns = zip(*map(msgspec.structs.astuple, parts), strict=True)
    return UnrecordedWaits(*map(np.concatenate, columns))


def has_unrecorded_waits(trace: Trace) -> bool:
    """Return whether the host waits for the device although no call is recorded that does."""
    return len(unrecorded_waits(trace).item) > 0


@derived
def has_unlinked_communication(trace: Trace) -> bool:
    """Return whether most communication has no recorded launch, so that no path leads through it.

    The first kernels of a recording may have been launched before it.
    """
    items = device_items(trace)
    length = (items.end - items.start) * is_communication_kernel(trace)[items.row]
    return bool(2 * length[items.call < 0].sum() > length.sum())


def _sort_launched_work(items: DeviceItems) -> tuple[Int64, Int64]:
    """Return (int64[k] when items were launched, ascending; int64[k] which of those by then ends last)."""
    launched = np.flatnonzero(items.call >= 0)
    launched = launched[np.argsort(items.submit_time.take(launched), kind="stable")]
    end = items.end.take(launched)
    reach = np.maximum.accumulate(end)
    last = launched[np.maximum.accumulate(np.where(end == reach, np.arange(len(launched)), 0))]
    return items.submit_time.take(launched), last


def _find_waits_of_thread(
    trace: Trace, items: DeviceItems, submitted: Int64, last: Int64, thread: int
) -> UnrecordedWaits:
    """Return its waits, if it waits in most of the silences that begin while work isn't done."""
    since, resume = find_silences(trace, thread)
    count = search_sorted(submitted, since, "right")
    source = last[np.maximum(count - 1, 0)]
    end = items.end[source]
    silent = (count > 0) & (end > since)
    waits = silent & (end <= resume)
    waits &= resume - end <= np.minimum(MAX_RETURN_SHARE * (resume - since), MAX_RETURN_NS)
    if 2 * waits.sum() <= silent.sum():
        waits[:] = False
    return UnrecordedWaits(np.full(int(waits.sum()), thread, np.int32), source[waits], since[waits], resume[waits])


def find_silences(trace: Trace, thread: int) -> tuple[Int64, Int64]:
    """Return between which times no slice of a thread begins or ends, but for calls that poll the device.

    They lie in the few long gaps between starts, which ascend; ends are sought in those alone.
    """
    events, rows = trace.events, stack_of_thread(trace, call_tree(trace), thread)
    polls = name_mask(trace.strings, _POLL.search, codes_of_kinds(trace, *HOST_KINDS))
    if functions := thread_functions():
        found = functions.silences(rows, events.start, events.duration, events.name, polls, MIN_SILENCE_NS)
        if found is not None:
            return found
    rows = rows[~polls.take(events.name.take(rows))]
    starts, ends = event_spans(trace, rows)
    if len(rows) == 0:
        return starts, ends
    following = np.append(starts[1:], ends.max())
    long = following - starts >= MIN_SILENCE_NS
    begin, stop = starts[long], following[long]
    ends = ends[long | (ends > following)]  # the others lie between starts that follow each other closely
    gap = search_sorted(begin, ends, "left") - 1
    inside = (gap >= 0) & (ends < np.append(stop, 0)[gap])
    numbers = np.arange(len(begin))
    gap = np.concatenate([numbers, gap[inside], numbers])
    times = np.concatenate([begin, ends[inside], stop])
    order = np.lexsort((times, gap))
    gap, times = gap[order], times[order]
    since, resume = times[:-1], times[1:]
    silent = (gap[:-1] == gap[1:]) & (resume - since >= MIN_SILENCE_NS)
    return since[silent], resume[silent]
