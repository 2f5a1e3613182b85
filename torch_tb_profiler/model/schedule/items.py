"""The work of the devices, stream by stream, and when each piece of it was handed over."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.calls.links import launches
from torch_tb_profiler.model.devices import device_of, stream_of
from torch_tb_profiler.model.kinds import ends
from torch_tb_profiler.model.schedule.clock import clock_shift_ns
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace, derived

NEVER = -(2**60)
"""Earlier than any time of a trace, with room to add to it."""

_FOLLOWS_NS = 20_000
"""An item that starts this soon after the one before it in its stream was waiting for it."""

_TYPICAL_CALL_NS = (1_000, 20_000)
"""Bounds of the median duration of a launching call."""


class Items(msgspec.Struct, frozen=True):
    """Kernels, copies and memsets by stream and start. Columns of length n; times in ns on the host's clock.

    row           int32  of the trace
    call          int32  row of the call that launched it, NO_CODE if none is recorded
    thread        int32  of that call, NO_CODE if none
    device, stream  int64  as the trace numbers them
    queue         int32  position in `bounds`: one per (device, stream)
    start, end    int64  shifted by `clock_shift_ns`
    called        int64  when the call began, ABSENT if none
    submitted     int64  when the item was handed over, inside or at the end of its call; ABSENT if none
    previous_end  int64  end of the item before it in the stream, NEVER for the first
    bounds        int64[queues + 1]  the items of queue k are bounds[k]:bounds[k + 1]
    typical_call_ns  median duration of the calls
    """

    row: Int32
    call: Int32
    thread: Int32
    device: Int64
    stream: Int64
    queue: Int32
    start: Int64
    end: Int64
    called: Int64
    submitted: Int64
    previous_end: Int64
    bounds: Int64
    typical_call_ns: int

    def __len__(self) -> int:
        return len(self.row)

    @property
    def queues(self) -> int:
        """How many streams have items."""
        return len(self.bounds) - 1


@derived
def items(trace: Trace) -> Items:
    """All device work of a trace.

    Handed over at min(call end, item start); where the item started right after the one before it, and that one
    ended after a typical call would have returned, no later than that: the call outlasted the hand-over.
    """
    rows, calls = launches(trace)
    start, finish, shift = trace.events.start, ends(trace), clock_shift_ns(trace)
    device, stream = device_of(trace)[rows], stream_of(trace)[rows]
    called = np.where(calls >= 0, start[calls], ABSENT)
    order = np.lexsort((finish[rows], called, start[rows], stream, device))
    rows, calls, called, device, stream = rows[order], calls[order], called[order], device[order], stream[order]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (device[1:] != device[:-1]) | (stream[1:] != stream[:-1])
    bounds = np.append(np.flatnonzero(fresh), len(rows)).astype(np.int64)
    begin, end = start[rows] + shift, finish[rows] + shift
    previous = np.full(len(rows), NEVER)
    previous[1:] = np.where(fresh[1:], NEVER, end[:-1])
    linked = calls >= 0
    lasting = (finish[calls] - start[calls])[linked]
    typical = int(np.clip(median(lasting), *_TYPICAL_CALL_NS)) if linked.any() else _TYPICAL_CALL_NS[0]
    submitted = np.full(len(rows), ABSENT)
    returned = finish[calls[linked]]
    handed = np.minimum(returned, begin[linked])
    early = np.minimum(called[linked] + typical, returned)
    queued = (previous[linked] >= early) & (begin[linked] - previous[linked] <= _FOLLOWS_NS)
    handed = np.where(queued, np.minimum(handed, early), handed)
    submitted[linked] = np.maximum(handed, np.minimum(called[linked], begin[linked]))
    return Items(
        row=rows,
        call=calls,
        thread=np.where(linked, trace.events.thread[calls], NO_CODE).astype(np.int32),
        device=device,
        stream=stream,
        queue=(np.cumsum(fresh) - 1).astype(np.int32),
        start=begin,
        end=end,
        called=called,
        submitted=submitted,
        previous_end=previous,
        bounds=bounds,
        typical_call_ns=typical,
    )


def last_items(work: Items, times: Int64) -> Int64:
    """int64[k, queues]: of each stream the last item whose call, or that of one before it, began before each time;
    NO_CODE where there is none."""
    last = np.full((len(times), work.queues), NO_CODE, np.int64)
    called = np.where(work.called == ABSENT, NEVER, work.called)
    for queue in range(work.queues):
        low, high = work.bounds[queue], work.bounds[queue + 1]
        before = np.searchsorted(np.maximum.accumulate(called[low:high]), times, "left")
        # Items without a call begin at NEVER: with nothing else before it, the time is earlier than the recording.
        known = (before > 0) & (called[low:high].max(initial=NEVER) > NEVER)
        last[:, queue] = np.where(known, low + before - 1, NO_CODE)
    return last


def queue_streams(work: Items) -> Int64:
    """int64[queues]: the stream of each queue."""
    return work.stream[work.bounds[:-1]]
