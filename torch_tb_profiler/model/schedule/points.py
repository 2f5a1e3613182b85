"""The instants of host threads at which something is handed over or waited for."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import Bool, Int32, Int64


class Points(msgspec.Struct, frozen=True):
    """Distinct instants by thread and time; columns of length p.

    thread   int32  code
    time     int64  ns
    first    bool   the first of its thread
    threads  int32[t]      the threads that have points
    bounds   int64[t + 1]  the points of threads[k] are bounds[k]:bounds[k + 1]
    """

    thread: Int32
    time: Int64
    first: Bool
    threads: Int32
    bounds: Int64

    def __len__(self) -> int:
        return len(self.time)

    @property
    def before(self) -> Int64:
        """int64[p]: ns since the point before on the thread; 0 for the first."""
        since: Int64 = np.diff(self.time, prepend=self.time[:1])
        return np.where(self.first, 0, since)

    def slot(self, thread: int) -> int:
        """Where a thread stands in `threads`; -1 if it has no points."""
        at = int(np.searchsorted(self.threads, thread))
        return at if at < len(self.threads) and self.threads[at] == thread else -1


def collect(*requests: tuple[Int32, Int64]) -> tuple[Points, list[Int64]]:
    """The points of all (thread, time) requested, and for each request the positions of its points."""
    thread = np.concatenate([threads for threads, _ in requests]).astype(np.int32)
    time = np.concatenate([times for _, times in requests]).astype(np.int64)
    order = np.lexsort((time, thread))
    ordered_thread, ordered_time = thread[order], time[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (ordered_thread[1:] != ordered_thread[:-1]) | (ordered_time[1:] != ordered_time[:-1])
    position = np.empty(len(order), np.int64)
    position[order] = np.cumsum(fresh) - 1
    thread, time = ordered_thread[fresh], ordered_time[fresh]
    first = np.ones(len(thread), np.bool_)
    first[1:] = thread[1:] != thread[:-1]
    low = np.flatnonzero(first)
    points = Points(thread, time, first, thread[low], np.append(low, len(thread)).astype(np.int64))
    return points, np.split(position, np.cumsum([len(times) for _, times in requests])[:-1])
