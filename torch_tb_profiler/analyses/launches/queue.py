"""The launch queue of each stream: work that the host has launched and the device hasn't started.

launch  |1   |2   |3
start         |1       |2     |3
length  1    2 1   2    1      0
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.payload_values import optional_int
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.schedule.blocking import WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.trace import Int32, Int64, Trace


class StreamQueue(msgspec.Struct, frozen=True):
    """The launch queue of one stream.

    device, stream  None where the trace doesn't say
    times    int64[k]  ns, ascending: when something is launched or starts
    lengths  int64[k]  the length of the queue from then on
    """

    device: int | None
    stream: int | None
    times: Int64
    lengths: Int64

    @property
    def longest(self) -> int:
        return int(self.lengths.max(initial=0))

    @property
    def empty_ns(self) -> int:
        """Return how long it is empty between its first launch and the start of its last item."""
        return int(np.diff(self.times)[self.lengths[:-1] == 0].sum())

    @property
    def duration_ns(self) -> int:
        """Return the time from its first launch to the start of its last item."""
        return int(self.times[-1] - self.times[0])

    @property
    def mean(self) -> float | None:
        """Return the length averaged over time, or None if no time passes."""
        if self.duration_ns == 0:
            return None
        return float((np.diff(self.times) * self.lengths[:-1]).sum()) / self.duration_ns


def stream_queues(trace: Trace, work: Int32) -> list[StreamQueue]:
    """Return the queues of the streams that ran some device work, by device and stream.

    A queue grows by 1 at the start of a launch call and shrinks by 1 at the start of its work; launches come first
    at the same instant. A graph launch adds all its items at once. If a skewed clock starts work before its call,
    the call counts as of that instant, so that no queue is negative. Work without a recorded call is left out.
    """
    rows, launch = device_launches(trace)
    chosen = np.isin(rows, work) & (launch >= 0)
    rows, launch = rows[chosen], launch[chosen]
    begin = trace.events.start[rows]
    call = np.minimum(trace.events.start[launch], begin)
    device, stream = device_ids(trace)[rows], stream_ids(trace)[rows]
    results = []
    for key in np.unique(np.stack([device, stream]), axis=1).T if len(rows) else ():
        mine = (device == key[0]) & (stream == key[1])
        times = np.concatenate([call[mine], begin[mine]])
        change = np.repeat([1, -1], int(mine.sum()))
        order = np.lexsort((-change, times))
        results.append(
            StreamQueue(optional_int(key[0]), optional_int(key[1]), times[order], np.cumsum(change[order]))
        )
    return results


def max_lengths_between(queue: StreamQueue, edges: Int64) -> Int64:
    """Return the largest length of the queue in each of the k buckets between k + 1 ascending times: int64[k]."""
    at = np.searchsorted(queue.times, edges, "left")
    length_at_begin = np.append(0, queue.lengths)[at[:-1]]
    padded = np.append(queue.lengths, 0)
    largest = np.maximum.reduceat(padded, np.minimum(at[:-1], len(padded) - 1))
    return np.where(at[1:] > at[:-1], np.maximum(length_at_begin, largest), length_at_begin)


def blocked_launches(trace: Trace, work: Int32) -> tuple[int, int]:
    """Return how many calls that launched some of the work waited for a full queue, and their total wait."""
    calls, submitted = blocking_calls(trace), device_items(trace)
    launched = np.isin(calls.call, submitted.call[np.isin(submitted.row, work)])
    length = calls.end - calls.begin
    blocked = launched & (calls.kind == WaitKind.QUEUE) & calls.has_waited & (length > submitted.typical_call_ns)
    return int(blocked.sum()), int((length[blocked] - submitted.typical_call_ns).sum())
