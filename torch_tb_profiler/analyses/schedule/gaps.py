"""The gaps of a device (or of one stream): what comes next, who was to submit it, and what emptied the queue.

              a                     b
    work -----|                     |----- next work K
    host   ... preparing ... submit |
                               h

[a, h) the host is late, [h, b) the device is. Where the next compute kernel is submitted in the gap, its launch
decides, so that a prefetch on a side stream takes no blame.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import Intervals, merge, subtract
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.devices import device_kind, device_name
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.schedule.blocking import WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.items import clock_shift_ns, device_items
from torch_tb_profiler.model.steps import Steps, steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, derived


class Work(msgspec.Struct, frozen=True):
    """The items of a device or stream by start. Columns of length n; times on the device's own clock.

    position  int64  in `device_items`
    submitted int64  ABSENT where no launch is recorded
    compute   bool   a kernel that does not communicate
    """

    position: Int64
    row: Int32
    call: Int32
    thread: Int32
    start: Int64
    end: Int64
    submitted: Int64
    compute: Bool


class Gaps(msgspec.Struct, frozen=True):
    """Columns of length g, in order of time; times in ns on the device's own clock.

    begin, end   int64
    late_until   int64  until then the host had not submitted what comes next
    thread       int32  the thread that submits it, NO_CODE if none is known
    next         int64  index into `work` of the item that ends the gap, or comes after it; -1 if nothing follows
    emptied_by   int32  row of the blocking call that spans the begin, NO_CODE: the device caught up with the host
    """

    work: Work
    begin: Int64
    end: Int64
    late_until: Int64
    thread: Int32
    next: Int64
    emptied_by: Int32


def windows(spans: Steps) -> Intervals:
    """The time of the complete steps."""
    return merge(spans.starts[spans.complete], spans.ends[spans.complete])


@derived
def work_of(trace: Trace, device: int, stream: int | None = None) -> Work:
    """Raises NotFoundError if nothing ran on the device or stream."""
    work, shift = device_items(trace), clock_shift_ns(trace)
    mine = (work.device == device) & ((work.stream == stream) if stream is not None else True)
    if not mine.any():
        name = device_name(device_kind(trace), device)
        what = name if stream is None else f"stream {stream} of {name}"
        raise NotFoundError(f"nothing ran on {what}")
    at = np.flatnonzero(mine)
    at = at[np.argsort(work.start[at], kind="stable")]
    rows = work.row[at]
    return Work(
        position=at,
        row=rows,
        call=work.call[at],
        thread=work.thread[at],
        start=work.start[at] - shift,
        end=work.end[at] - shift,
        submitted=np.where(work.submit_time[at] == ABSENT, ABSENT, work.submit_time[at] - shift),
        compute=(event_kinds(trace)[rows] == Kind.KERNEL) & ~communication_kernels(trace)[rows],
    )


@derived
def gaps(trace: Trace, device: int, stream: int | None = None) -> Gaps:
    """The gaps in the complete steps."""
    work = work_of(trace, device, stream)
    idle = subtract(windows(steps(trace)), merge(work.start, work.end))
    begin, end = idle
    following = np.searchsorted(work.start, end, "left")
    following = np.where(following < len(work.start), following, NO_CODE)
    decides = _deciding(work, begin, end, following)
    submitted = np.where(decides >= 0, work.submitted[decides], ABSENT)
    known = submitted != ABSENT
    late = np.where(known, np.clip(submitted, begin, end), begin)
    thread = np.where(known, work.thread[decides], NO_CODE).astype(np.int32)
    return Gaps(work, begin, end, late, thread, following, _emptied_by(trace, begin))


def _deciding(work: Work, begin: Int64, end: Int64, following: Int64) -> Int64:
    """Whose submission counts: the next compute kernel's if submitted after the begin, else the next item's."""
    compute = np.flatnonzero(work.compute)
    if len(compute) == 0:
        return following
    at = np.searchsorted(work.start[compute], end, "left")
    kernel = compute[np.minimum(at, len(compute) - 1)]
    counts = (at < len(compute)) & (work.submitted[kernel] > begin)
    return np.where(counts, kernel, following)


def _emptied_by(trace: Trace, begin: Int64) -> Int32:
    """The blocking call that runs at each begin; of several threads' calls the one that began last."""
    calls = blocking_calls(trace)
    kept = np.flatnonzero(calls.kind != WaitKind.QUEUE)
    begin = begin + clock_shift_ns(trace)
    emptied = np.full(len(begin), NO_CODE, np.int32)
    since = np.full(len(begin), ABSENT)
    for thread in np.unique(calls.thread[kept]).tolist():
        mine = kept[calls.thread[kept] == thread]
        mine = mine[np.argsort(calls.begin[mine], kind="stable")]
        at = np.searchsorted(calls.begin[mine], begin, "right") - 1
        call = mine[np.maximum(at, 0)]
        spans = (at >= 0) & (calls.end[call] >= begin) & (calls.begin[call] > since)
        emptied[spans], since[spans] = calls.call[call[spans]], calls.begin[call[spans]]
    return emptied


@derived
def default_device(trace: Trace) -> int | None:
    """The device with the most items; None without any."""
    work = device_items(trace)
    if len(work) == 0:
        return None
    devices, counts = np.unique(work.device, return_counts=True)
    return int(devices[np.argmax(counts)])
