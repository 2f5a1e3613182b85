"""The queue of each stream: work that the host has launched and the device has not started.

launch  |1   |2   |3
start         |1       |2     |3
length  1    2 1   2    1      0
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.schedule.blocking import WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace


class Queue(msgspec.Struct, frozen=True):
    """The queue of one stream.

    device, stream  None where the trace does not say
    times    int64[k]  ns, ascending: when something is launched or starts
    lengths  int64[k]  the length from then on
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
        """How long it is empty between its first launch and the start of its last item."""
        return int(np.diff(self.times)[self.lengths[:-1] == 0].sum())

    @property
    def duration_ns(self) -> int:
        """From its first launch to the start of its last item."""
        return int(self.times[-1] - self.times[0])

    @property
    def mean(self) -> float | None:
        """The length averaged over time; None where no time passes."""
        if self.duration_ns == 0:
            return None
        return float((np.diff(self.times) * self.lengths[:-1]).sum()) / self.duration_ns


def queues(trace: Trace, work: Int32) -> list[Queue]:
    """The queues of the streams that ran some device work, by device and stream; work without a call has no part.

    +1 at the start of the call, -1 at the start of the work, at one instant the calls first. A call that launches
    many (a graph) adds them all at once. Work that a skewed clock starts before its call makes a queue negative:
    its call then counts as of that instant.
    """
    rows, launch = device_launches(trace)
    kept = np.isin(rows, work) & (launch >= 0)
    rows, launch = rows[kept], launch[kept]
    begin = trace.events.start[rows]
    call = np.minimum(trace.events.start[launch], begin)
    device, stream = device_ids(trace)[rows], stream_ids(trace)[rows]
    results = []
    for key in np.unique(np.stack([device, stream]), axis=1).T if len(rows) else ():
        mine = (device == key[0]) & (stream == key[1])
        times = np.concatenate([call[mine], begin[mine]])
        change = np.repeat([1, -1], int(mine.sum()))
        order = np.lexsort((-change, times))
        results.append(Queue(_known(key[0]), _known(key[1]), times[order], np.cumsum(change[order])))
    return results


def _known(value: np.int64) -> int | None:
    return None if value == ABSENT else int(value)


def longest_between(queue: Queue, edges: Int64) -> Int64:
    """int64[k]: the greatest length of the queue in each of the k stretches between k + 1 ascending times."""
    at = np.searchsorted(queue.times, edges, "left")
    held = np.append(0, queue.lengths)[at[:-1]]  # the length with which a stretch begins
    padded = np.append(queue.lengths, 0)
    most = np.maximum.reduceat(padded, np.minimum(at[:-1], len(padded) - 1))
    return np.where(at[1:] > at[:-1], np.maximum(held, most), held)


def blocked_launches(trace: Trace, work: Int32) -> tuple[int, int]:
    """(calls that launched some of the work and waited for a full queue; their ns, less a median launch each)."""
    calls, submitted = blocking_calls(trace), device_items(trace)
    launched = np.isin(calls.call, submitted.call[np.isin(submitted.row, work)])
    length = calls.end - calls.begin
    held = launched & (calls.kind == WaitKind.QUEUE) & calls.has_waited & (length > submitted.typical_call_ns)
    return int(held.sum()), int((length[held] - submitted.typical_call_ns).sum())
