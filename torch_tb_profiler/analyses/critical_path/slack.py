"""Slack: how much later a point may be reached, or an item end, without the last complete step ending later.

The recurrences of the schedule backwards: a node's latest time is the earliest that those who wait allow.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans, step_items
from torch_tb_profiler.model.schedule.replay import NodeRun, computation_order
from torch_tb_profiler.model.schedule.schedule import Schedule, schedule
from torch_tb_profiler.model.trace import Int64, Trace, derived

UNBOUNDED = 2**60
"""Nothing in the complete steps waits for it."""


class Slack(msgspec.Struct, frozen=True):
    """int64[p] points, int64[n] items, ns; at least UNBOUNDED // 2 where nothing in the complete steps waits."""

    points: Int64
    items: Int64


@derived
def slack(trace: Trace) -> Slack:
    """Slack relative to the end of the last complete step, with all else as recorded."""
    graph, spans = schedule(trace), recorded_spans(trace)
    count = spans.end.shape[1]
    latest = _Latest(graph)
    if count:
        launched, end = step_items(trace), int(spans.end[0, -1])
        latest.points[graph.step_end[:count]] = end
        latest.ends[launched.order] = end
    for run in reversed(computation_order(trace)):
        (latest.host if run.of_host else latest.stream)(run)
    return Slack(latest.points - graph.points.time, latest.ends - graph.items.end)


class _Latest:
    """Latest times: of points, and of the ends of items. Caps until a node's run is done, then its answer."""

    def __init__(self, graph: Schedule) -> None:
        self.graph = graph
        self.points = np.full(len(graph.points), UNBOUNDED)
        self.ends = np.full(len(graph.items), UNBOUNDED)
        self.along = np.cumsum(graph.step)
        self.duration = graph.items.end - graph.items.start
        between = np.zeros(len(graph.items), np.int64)
        between[1:] = self.duration[:-1] + graph.gap[1:]
        self.between = np.cumsum(between)

    def host(self, run: NodeRun) -> None:
        low, high, graph = run.low, run.high, self.graph
        caps = self.points[low:high]
        if high < len(self.points) and not graph.points.first[high]:
            caps[-1] = min(caps[-1], self.points[high] - graph.step[high])
        caps[:] = _backwards(caps, self.along[low:high])
        if run.sources is None:
            return
        which = slice(run.sources.low, run.sources.high)
        edges = graph.edges
        allowed = self.points[edges.target[which]] - edges.weight[which]
        item, point = edges.item[which], edges.point[which]
        np.minimum.at(self.ends, item[item >= 0], allowed[item >= 0])
        np.minimum.at(self.points, point[point >= 0], allowed[point >= 0])

    def stream(self, run: NodeRun) -> None:
        low, high, graph = run.low, run.high, self.graph
        duration = self.duration[low:high]
        starts = self.ends[low:high] - duration
        if high < len(self.ends) and graph.items.queue[high] == graph.items.queue[low]:
            following = self.ends[high] - self.duration[high]
            starts[-1] = min(starts[-1], following - graph.gap[high] - duration[-1])
        starts = _backwards(starts, self.between[low:high])
        self.ends[low:high] = starts + duration
        submission = graph.submission[low:high]
        linked = submission >= 0
        np.minimum.at(self.points, submission[linked], (starts - graph.launch[low:high])[linked])
        if run.sources is not None:
            which = slice(run.sources.low, run.sources.high)
            allowed = starts[graph.waits.item[which] - low] - graph.wait_weight[which]
            np.minimum.at(self.ends, graph.waits.source[which], allowed)


def _backwards(caps: Int64, along: Int64) -> Int64:
    """x[k] = min(caps[k], x[k + 1] - (along[k + 1] - along[k]))."""
    least: Int64 = along + np.minimum.accumulate((caps - along)[::-1])[::-1]
    return least
