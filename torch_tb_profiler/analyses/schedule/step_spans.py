"""Begins and ends of the steps on the host's clock, as recorded and in a replay.

A step ends with its host part or with the device work launched in it, whichever is later, and begins no sooner
than the step before it ended. These are the steps of `model.steps` with device times moved by the clock shift.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.kinds import event_spans
from torch_tb_profiler.model.schedule.replay import ReplayTimes
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import launched_before_recording, steps
from torch_tb_profiler.model.trace import Bool, Int64, Trace


class StepSpans(msgspec.Struct, frozen=True):
    """The complete steps of c cases (the recording, or replays): int64[c, steps] each, ns on the host's clock.

    typical  bool[steps]: which of them are typical, as recorded
    """

    begin: Int64
    end: Int64
    typical: Bool

    @property
    def durations(self) -> Int64:
        """Return int64[c, steps], ns."""
        return self.end - self.begin

    @property
    def mean_ns(self) -> Int64:
        """Return the mean duration of a typical step in each case: int64[c], ns, rounded down."""
        mean: Int64 = self.durations[:, self.typical].sum(axis=1) // max(int(self.typical.sum()), 1)
        return mean


class StepItems(msgspec.Struct, frozen=True):
    """The items launched in each complete step.

    order   items by step; complete step k has order[bounds[k]:bounds[k + 1]]
    loose   items launched before the first step that end before its first item starts, as in `model.steps`
    """

    order: Int64
    bounds: Int64
    loose: Int64


@stored
def step_items(trace: Trace) -> StepItems:
    """Return which items the calls of each complete step launched, as in `model.steps`."""
    spans, work = steps(trace), schedule(trace).items
    count = int(spans.complete.sum())
    if not spans.recorded:
        return StepItems(np.arange(len(work)), np.array([0, len(work)]), np.empty(0, np.int64))
    linked = work.call >= 0
    step = search_sorted(spans.host_starts, work.call_start, "right") - 1
    inside = linked & (step >= 0)
    inside[inside] &= event_spans(trace, work.call[inside])[1] <= spans.host_ends[step[inside]]
    known = np.flatnonzero(inside & (step < count))
    order = known[np.argsort(step[known], kind="stable")]
    bounds = np.searchsorted(step[order], np.arange(count + 1)).astype(np.int64)
    first = work.start[inside & (step == 0)]
    earlier = np.where(linked, work.call_start < spans.host_starts[0], launched_before_recording(trace, work.row))
    loose = np.flatnonzero(earlier & (work.end < first.min())) if len(first) else np.empty(0, np.int64)
    return StepItems(order, bounds, loose)


def step_spans(trace: Trace, times: ReplayTimes) -> StepSpans:
    """Return the complete steps of each case of a replay."""
    graph, spans, launched = schedule(trace), steps(trace), step_items(trace)
    count = min(int(spans.complete.sum()), len(graph.step_begin))
    begin, end = times.points[:, graph.step_begin[:count]], times.points[:, graph.step_end[:count]]
    low, high = launched.bounds[:count], launched.bounds[1 : count + 1]
    with_items = np.flatnonzero(high > low)
    if len(with_items):
        # Several times as fast as an index of the second axis.
        of_steps = np.take(times.ends, launched.order[: launched.bounds[count]], axis=1)
        latest = np.maximum.reduceat(of_steps, low[with_items], axis=1)
        end[:, with_items] = np.maximum(end[:, with_items], latest)
    if count and len(launched.loose):
        begin[:, 0] = np.maximum(begin[:, 0], times.ends[:, launched.loose].max(axis=1))
    end[:, :1] = np.maximum(end[:, :1], begin[:, :1])
    end = np.maximum.accumulate(end, axis=1)
    begin[:, 1:] = np.maximum(begin[:, 1:], end[:, :-1])
    return StepSpans(begin, np.maximum(end, begin), step_kinds(trace).typical[:count])


@stored
def recorded_spans(trace: Trace) -> StepSpans:
    """Return the complete steps as recorded: one case."""
    graph = schedule(trace)
    return step_spans(trace, ReplayTimes(graph.points.time[None], graph.items.end[None]))
