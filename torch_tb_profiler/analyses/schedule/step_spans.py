"""Begins and ends of the steps on the host's clock, as recorded and in a replay.

A step ends with its host part or with the device work launched in it, whichever is later, and begins no sooner
than the step before it ended. These are the steps of `model.steps` with device times moved by the clock shift.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.typical_steps import step_kinds, typical_windows
from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.base.intervals import covered_time, total
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_intervals, event_spans, rows_of_kind
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.schedule.replay import ReplayTimes
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import launched_before_recording, steps
from torch_tb_profiler.model.trace import Bool, Float64, Int64, Trace

MAX_EDGE_RATIO = 0.1
"""A step at an edge that saves less than this ratio of the others lacks what passes from step to step."""

MAX_STEP_GAP_RATIO = 0.01
"""Steps that are further apart than this ratio of a step have something else between them."""


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


def mean_saving(trace: Trace, saved: Float64) -> float:
    """Return the mean of float64[typical steps], at most.

    What passes from one step to the next, such as a wait at the end of each, passes to fewer steps than there are:
    not into the first or out of the last one, and neither into nor out of an odd step or time outside of steps. A
    step at such an edge that saves next to nothing isn't counted, as all typical steps in a row save it.
    """
    idle = np.zeros(saved.shape, np.bool_)
    for edge in _edges(recorded_spans(trace)):
        if edge.any() and not edge.all():
            idle |= edge & (saved < MAX_EDGE_RATIO * saved[~edge].mean())
    inner = float((saved * ~idle).sum()) / max(int((~idle).sum()), 1)
    return max(float(saved.mean()), inner)


def _edges(spans: StepSpans) -> tuple[Bool, Bool]:
    """Return which typical steps no typical one leads up to, and which none follows, bool[typical steps] each."""
    begin, end, typical = spans.begin[0], spans.end[0], spans.typical
    near = begin[1:] - end[:-1] <= MAX_STEP_GAP_RATIO * spans.mean_ns[0]
    touch = near & typical[1:] & typical[:-1]
    return ~np.append(False, touch)[typical], ~np.append(touch, False)[typical]


def most_saved_by_host(trace: Trace, savings: Sequence[Float64]) -> float:
    """Return the largest mean of what typical steps save in replays in which only the host has less to do, ns.

    That is no more than devices are idle: steps at an edge may save nothing for want of a stall that others have.
    """
    windows, busy = typical_windows(trace), event_intervals(trace, rows_of_kind(trace, *DEVICE_KINDS))
    working = int(covered_time(busy, windows.starts, windows.ends).sum())
    idle = (total(windows) - working) / max(int(step_kinds(trace).typical.sum()), 1)
    return min(max(mean_saving(trace, saved) for saved in savings), most_saved_on_host(trace), idle)


@derived
def most_saved_on_host(trace: Trace) -> float:
    """Return what a host that takes no time saves at most, mean ns per typical step: all but the busiest stream.

    A replay may move work from one step into another one, which doesn't make either shorter.
    """
    items, windows = device_items(trace), typical_windows(trace)
    count = int(step_kinds(trace).typical.sum())
    busiest = 0
    for queue in range(items.queues):
        mine = items.row[items.bounds[queue] : items.bounds[queue + 1]]
        times = event_intervals(trace, mine)
        busiest = max(busiest, int(covered_time(times, windows.starts, windows.ends).sum()))
    return max(float((windows.ends - windows.starts).sum() - busiest) / max(count, 1), 0.0)
