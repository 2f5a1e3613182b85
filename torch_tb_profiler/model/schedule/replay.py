"""When everything happens if some of it takes another time: the recurrences of a schedule as scans over columns.

Between what waits, a thread or a stream is x[k] = max(x[k - 1] + d[k], a[k]); with D the running sum of d that is
x = D + running maximum of (a - D). All in integers: unchanged input gives the recorded times to the nanosecond.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.schedule.items import NEVER
from torch_tb_profiler.model.schedule.order import Run, run_order
from torch_tb_profiler.model.schedule.schedule import Bound, Schedule, schedule
from torch_tb_profiler.model.trace import Bool, Int64, Trace


class Times(msgspec.Struct, frozen=True):
    """Of c cases: when each point is reached and each item ends; ns on the host's clock.

    points  int64[c, p]
    ends    int64[c, n]
    """

    points: Int64
    ends: Int64


def replay(trace: Trace, step: Int64, duration: Int64, removed: Bool | None = None) -> Times:
    """The schedule with other times, several cases at once.

    step      int64[c, p]  in the place of `Schedule.step`
    duration  int64[c, n]  of the items
    removed   bool[c, a]   host edges that no longer hold
    """
    graph = schedule(trace)
    return _Replay(graph, step, duration, removed).over(run_order(trace))


class _Replay:
    def __init__(self, graph: Schedule, step: Int64, duration: Int64, removed: Bool | None) -> None:
        self.graph, self.duration, self.removed = graph, duration, removed
        self.step, self.along = step, np.cumsum(step, axis=1)
        self.next = np.empty_like(duration)
        self.next[:, :1] = 0
        self.next[:, 1:] = duration[:, :-1] + graph.gap[1:]  # from start to start
        self.between = np.cumsum(self.next, axis=1)
        self.points = np.full(step.shape, NEVER)
        self.ends = np.full(duration.shape, NEVER)

    def over(self, runs: tuple[Run, ...]) -> Times:
        for run in runs:
            (self._host if run.of_host else self._stream)(run)
        return Times(self.points, self.ends)

    def _host(self, run: Run) -> None:
        low, high, points = run.low, run.high, self.points
        if not run.first:
            head = points[:, low - 1] + self.step[:, low]
        elif self.graph.anchored[low]:
            head = np.full(len(points), self.graph.points.time[low])
        else:
            head = np.full(len(points), NEVER)
        along = self.along[:, low:high]
        if run.sources is None:
            points[:, low:high] = along + (head - along[:, 0])[:, None]
            return
        arrivals = np.full((len(points), high - low), NEVER)
        arrivals[:, 0] = head
        edges, which = self.graph.edges, slice(run.sources.low, run.sources.high)
        item, point = edges.item[which], edges.point[which]
        times = edges.weight[which] + np.where(
            item >= 0, self.ends[:, item] if self.ends.size else 0, points[:, point]
        )
        if self.removed is not None:
            times[self.removed[:, which]] = NEVER
        _put(arrivals, run, times)
        points[:, low:high] = along + np.maximum.accumulate(arrivals - along, axis=1)

    def _stream(self, run: Run) -> None:
        low, high, graph = run.low, run.high, self.graph
        submission = graph.submission[low:high]
        linked = submission >= 0
        arrivals = np.full((len(self.ends), high - low), NEVER)
        arrivals[:, linked] = self.points[:, submission[linked]] + graph.launch[low:high][linked]
        if not run.first:
            arrivals[:, 0] = np.maximum(arrivals[:, 0], self.ends[:, low - 1] + graph.gap[low])
        elif graph.bound[low] == Bound.NOTHING:
            arrivals[:, 0] = graph.items.start[low]
        if run.sources is not None:
            which = slice(run.sources.low, run.sources.high)
            _put(arrivals, run, self.ends[:, graph.waits.source[which]] + graph.wait_weight[which])
        between = self.between[:, low:high]
        starts = between + np.maximum.accumulate(arrivals - between, axis=1)
        self.ends[:, low:high] = starts + self.duration[:, low:high]


def _put(arrivals: Int64, run: Run, times: Int64) -> None:
    """The latest of the times of each target's edges, where it is later than what is known of it."""
    assert run.sources is not None
    latest = np.maximum.reduceat(times, run.sources.starts, axis=1)
    at = run.sources.targets
    arrivals[:, at] = np.maximum(arrivals[:, at], latest)
