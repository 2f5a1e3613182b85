"""The idle gaps of a device or stream: what runs next, which thread submits it, and what drained the queue.

              a                     b
    work -----|                     |----- next work K
    host   ... preparing ... submit |
                               h

In [a, h) the host is late, in [h, b) the device is. If the next compute kernel is submitted in the gap, its launch
is h, so that a prefetch on a side stream takes no blame.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct_numbers, search_sorted
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import Intervals, merge, subtract
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.devices import device_kind, device_name
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.schedule.blocking import WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.items import clock_shift_ns, device_items
from torch_tb_profiler.model.steps import Steps, steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace

MAX_QUEUE_GAP_NS = 30_000
"""A device that starts submitted work later than this waits for something else than the next item's launch."""


class ItemsByStart(msgspec.Struct, frozen=True):
    """The items of a device or stream, by start; columns of length n, times on the device's own clock.

    position  int64  in `device_items`
    submitted int64  ABSENT where no launch is recorded
    compute   bool   a kernel other than communication
    """

    position: Int64
    row: Int32
    call: Int32
    thread: Int32
    start: Int64
    end: Int64
    submitted: Int64
    compute: Bool


class DeviceGaps(msgspec.Struct, frozen=True):
    """The gaps of a device or stream in order of time; columns of length g, ns on the device's own clock.

    begin, end   int64
    late_until   int64  when the host had submitted the next work
    thread       int32  the thread that submits it, NO_CODE if unknown
    next         int64  index into `items` of the item that ends the gap or comes after it; -1 if nothing follows
    emptied_by   int32  row of the blocking call that drained the queue: it spans the start, and all that runs
                        later was submitted after it returned. NO_CODE: the device caught up with the host, or had
                        work
    """

    items: ItemsByStart
    begin: Int64
    end: Int64
    late_until: Int64
    thread: Int32
    next: Int64
    emptied_by: Int32


def complete_step_windows(spans: Steps) -> Intervals:
    """Return the time of the complete steps."""
    return merge(spans.starts[spans.complete], spans.ends[spans.complete])


@derived
def items_by_start(trace: Trace, device: int, stream: int | None = None) -> ItemsByStart:
    """Return the items of a device or stream; raise NotFoundError if nothing ran there."""
    work, shift = device_items(trace), clock_shift_ns(trace)
    mine = (work.device == device) & ((work.stream == stream) if stream is not None else True)
    if not mine.any():
        name = device_name(device_kind(trace), device)
        place = name if stream is None else f"stream {stream} of {name}"
        raise NotFoundError(f"nothing ran on {place}")
    position = np.flatnonzero(mine)
    position = position[np.argsort(work.start[position], kind="stable")]
    rows = work.row[position]
    return ItemsByStart(
        position=position,
        row=rows,
        call=work.call[position],
        thread=work.thread[position],
        start=work.start[position] - shift,
        end=work.end[position] - shift,
        submitted=np.where(work.submit_time[position] == ABSENT, ABSENT, work.submit_time[position] - shift),
        compute=(event_kinds(trace)[rows] == Kind.KERNEL) & ~is_communication_kernel(trace)[rows],
    )


@derived
def device_gaps(trace: Trace, device: int, stream: int | None = None) -> DeviceGaps:
    """Return the gaps of a device or stream in the complete steps."""
    work = items_by_start(trace, device, stream)
    idle = subtract(complete_step_windows(steps(trace)), merge(work.start, work.end))
    begin, end = idle
    following = search_sorted(work.start, end, "left")
    following = np.where(following < len(work.start), following, NO_CODE)
    awaited = _awaited_item(work, begin, end, following)
    submitted = np.where(awaited >= 0, work.submitted[awaited], ABSENT)
    known = submitted != ABSENT
    late = np.where(known, np.clip(submitted, begin, end), begin)
    thread = np.where(known, work.thread[awaited], NO_CODE).astype(np.int32)
    return DeviceGaps(
        work, begin, end, late, thread, following, _find_draining_calls(trace, work, begin, following)
    )


def _awaited_item(work: ItemsByStart, begin: Int64, end: Int64, following: Int64) -> Int64:
    """Return the item that the gap waits for: the next compute kernel if submitted in it, else the next item."""
    compute = np.flatnonzero(work.compute)
    if len(compute) == 0:
        return following
    at = search_sorted(work.start[compute], end, "left")
    kernel = compute[np.minimum(at, len(compute) - 1)]
    counts = (at < len(compute)) & (work.submitted[kernel] > begin)
    return np.where(counts, kernel, following)


def _find_draining_calls(trace: Trace, work: ItemsByStart, begin: Int64, following: Int64) -> Int32:
    """Return the blocking call that drained the queue before each gap (of several the latest one), or NO_CODE.

    It runs at the start of the gap, and of what runs from `following` on nothing was submitted when it returned.
    """
    calls = blocking_calls(trace)
    waits = np.flatnonzero(calls.kind != WaitKind.QUEUE)
    pending_since = _earliest_submission(work, following) + clock_shift_ns(trace)
    begin = begin + clock_shift_ns(trace)
    emptied = np.full(len(begin), NO_CODE, np.int32)
    since = np.full(len(begin), ABSENT)
    for thread in distinct_numbers(calls.thread[waits]):
        mine = waits[calls.thread[waits] == thread]
        mine = mine[np.argsort(calls.begin[mine], kind="stable")]
        at = search_sorted(calls.begin[mine], begin, "right") - 1
        call = mine[np.maximum(at, 0)]
        spans = (at >= 0) & (calls.end[call] >= begin) & (calls.begin[call] > since)
        spans &= pending_since >= calls.end[call]
        emptied[spans], since[spans] = calls.call[call[spans]], calls.begin[call[spans]]
    return emptied


def _earliest_submission(work: ItemsByStart, following: Int64) -> Int64:
    """Return when the first of the items from each `following` on was submitted; never where nothing follows.

    Items without a recorded launch are left out.
    """
    never = np.iinfo(np.int64).max // 2
    submitted = np.where(work.submitted == ABSENT, never, work.submitted)
    earliest = np.append(np.minimum.accumulate(submitted[::-1])[::-1], never)
    return np.where(following >= 0, earliest[following], never)


@derived
def main_device(trace: Trace) -> int | None:
    """Return the device with the most items, or None without device work."""
    work = device_items(trace)
    if len(work) == 0:
        return None
    devices, counts = np.unique(work.device, return_counts=True)
    return int(devices[np.argmax(counts)])
