"""Slack: how much later a point may be reached, or an item may end, without the last complete step ending later.

This runs the recurrences of the schedule backwards: a node's latest time is the earliest its dependents allow.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans, step_items
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.schedule.compiled import schedule_functions
from torch_tb_profiler.model.schedule.replay import NodeRun, compiled_order, computation_order
from torch_tb_profiler.model.schedule.schedule import Schedule, schedule
from torch_tb_profiler.model.trace import Int64, Trace

UNLIMITED_NS = 2**60
"""The latest time of a node that nothing in the complete steps waits for."""


class Slack(msgspec.Struct, frozen=True):
    """The slack of each point, int64[p], and item, int64[n], in ns; UNLIMITED_NS // 2 or more if nothing waits."""

    points: Int64
    items: Int64


@derived
def slack(trace: Trace) -> Slack:
    """Return the slack relative to the end of the last complete step, with everything else as recorded."""
    graph, spans = schedule(trace), recorded_spans(trace)
    count = spans.end.shape[1]
    latest = _LatestTimes(graph)
    if count:
        launched, end = step_items(trace), int(spans.end[0, -1])
        latest.points[graph.step_end[:count]] = end
        latest.ends[launched.order] = end
    functions = schedule_functions()
    runs = compiled_order(trace) if functions is not None else None
    if functions is not None and runs is not None:
        functions.latest(graph, runs, latest.points, latest.ends)
        return Slack(latest.points - graph.points.time, latest.ends - graph.items.end)
    for run in reversed(computation_order(trace)):
        (latest.visit_host if run.of_host else latest.visit_stream)(run)
    return Slack(latest.points - graph.points.time, latest.ends - graph.items.end)


class _LatestTimes:
    """The latest times of points, and of the ends of items: upper bounds until a node's run is processed."""

    def __init__(self, graph: Schedule) -> None:
        self.graph = graph
        self.points = np.full(len(graph.points), UNLIMITED_NS)
        self.ends = np.full(len(graph.items), UNLIMITED_NS)
        self.along = np.cumsum(graph.step)
        self.duration = graph.items.end - graph.items.start
        between = np.zeros(len(graph.items), np.int64)
        between[1:] = self.duration[:-1] + graph.gap[1:]
        self.between = np.cumsum(between)

    def visit_host(self, run: NodeRun) -> None:
        low, high, graph = run.low, run.high, self.graph
        limits = self.points[low:high]
        if high < len(self.points) and not graph.points.first[high]:
            limits[-1] = min(limits[-1], self.points[high] - graph.step[high])
        limits[:] = _propagate_back(limits, self.along[low:high])
        if run.sources is None:
            return
        which = slice(run.sources.low, run.sources.high)
        edges = graph.edges
        allowed = self.points[edges.target[which]] - edges.weight[which]
        item, point = edges.item[which], edges.point[which]
        np.minimum.at(self.ends, item[item >= 0], allowed[item >= 0])
        np.minimum.at(self.points, point[point >= 0], allowed[point >= 0])

    def visit_stream(self, run: NodeRun) -> None:
        low, high, graph = run.low, run.high, self.graph
        duration = self.duration[low:high]
        starts = self.ends[low:high] - duration
        if high < len(self.ends) and graph.items.queue[high] == graph.items.queue[low]:
            following = self.ends[high] - self.duration[high]
            starts[-1] = min(starts[-1], following - graph.gap[high] - duration[-1])
        starts = _propagate_back(starts, self.between[low:high])
        self.ends[low:high] = starts + duration
        submission = graph.submission[low:high]
        linked = submission >= 0
        np.minimum.at(self.points, submission[linked], (starts - graph.launch[low:high])[linked])
        if run.sources is not None:
            which = slice(run.sources.low, run.sources.high)
            allowed = starts[graph.waits.item[which] - low] - graph.wait_weight[which]
            np.minimum.at(self.ends, graph.waits.source[which], allowed)


def _propagate_back(limits: Int64, along: Int64) -> Int64:
    """Solve x[k] = min(limits[k], x[k + 1] - (along[k + 1] - along[k]))."""
    latest: Int64 = along + np.minimum.accumulate((limits - along)[::-1])[::-1]
    return latest
