"""How long a step takes if a part of it is faster: the recorded schedule replayed with less.

A host target takes that share off its time between points; of a point that waits, the same share off what is not
waiting. Items of a device target last that much less. A wait that is removed holds nobody up, at 100 % only.

The step is convex and piecewise linear in the percent, so a few of them draw the whole curve.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans, step_spans
from torch_tb_profiler.analyses.schedule.targets import Target, target
from torch_tb_profiler.base.units import format_ratio
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.schedule.replay import replay
from torch_tb_profiler.model.schedule.schedule import MIN_EXPLAINED_SHARE, Schedule, schedule
from torch_tb_profiler.model.trace import Int64, Trace, derived

PERCENTS = (0, 25, 50, 75, 100)
"""What is taken off at the points of a curve."""

_CELLS = 1_000_000
"""So many times are computed at once, to bound the memory."""

_TABLE_CELLS, _FEWEST, _MOST = 4_000_000, 6, 60


def unexplained(trace: Trace) -> str | None:
    """Why the schedule cannot tell what a change would bring, None if it can."""
    graph = schedule(trace)
    if graph.explained_share is None:
        return "no device work is recorded"
    if missing_kernels_reason(trace) is not None:
        return "kernels are missing in the recording"
    if len(graph.step_begin) == 0 or not (graph.items.call >= 0).any():
        return "no launch is recorded"
    if graph.is_reliable:
        return None
    share, least = format_ratio(graph.explained_share), format_ratio(MIN_EXPLAINED_SHARE)
    return f"only {share} of the device work starts when the schedule says (at least {least} are needed)"


def what_if(trace: Trace, spelled: str, percent: int) -> int:
    """ns of the mean complete step if `percent` of a target's time is taken off (negative: put on)."""
    return int(_steps(trace, [(target(trace, spelled), percent)])[0])


@derived
def curves(trace: Trace, targets: tuple[str, ...]) -> Int64:
    """int64[targets, len(PERCENTS)]: ns of the mean complete step with that much of each target taken off."""
    cases = [(target(trace, spelled), percent) for spelled in targets for percent in PERCENTS[1:]]
    times = _steps(trace, cases).reshape(len(targets), len(PERCENTS) - 1)
    now = np.full((len(targets), 1), recorded_spans(trace).mean_ns[0])
    return np.concatenate([now, times], axis=1)


def without(trace: Trace, parts: Sequence[Target]) -> Int64:
    """int64[k]: ns of the mean complete step without each of these parts."""
    return _steps(trace, [(part, 100) for part in parts])


def _steps(trace: Trace, cases: Sequence[tuple[Target, int]]) -> Int64:
    graph = schedule(trace)
    at_once = max(1, _CELLS // max(len(graph.points) + len(graph.items), 1))
    batches = (cases[first : first + at_once] for first in range(0, len(cases), at_once))
    return np.concatenate([_replayed(trace, graph, batch) for batch in batches])


def _replayed(trace: Trace, graph: Schedule, cases: Sequence[tuple[Target, int]]) -> Int64:
    duration = graph.items.end - graph.items.start
    since = np.maximum(graph.points.elapsed, 1)
    steps = np.repeat(graph.step[None], len(cases), axis=0)
    durations = np.repeat(duration[None], len(cases), axis=0)
    removed = np.zeros((len(cases), len(graph.edges.target)), np.bool_)
    # Nothing changes before the first step, so that all cases begin at the recorded time.
    begin = recorded_spans(trace).begin[0, :1]
    points, items = graph.points.time > begin, graph.items.start >= begin
    for case, (part, percent) in enumerate(cases):
        # Of what waits a share; all else whole, as a product of two long times would not fit.
        at = np.flatnonzero(points & (part.host > 0))
        host, step = part.host[at], graph.step[at]
        host = np.where(step == since[at], host, (host * (step / since[at])).astype(np.int64))
        steps[case, at] -= host * percent // 100
        at = np.flatnonzero((part.device > 0) & items)
        durations[case, at] -= part.device[at] * percent // 100
        removed[case] = part.edges & points[graph.edges.target] & (percent == 100)
    return step_spans(trace, replay(trace, steps, durations, removed)).mean_ns


def affordable(trace: Trace) -> int:
    """For how many targets curves are worth their time in a table: fewer for larger traces."""
    graph = schedule(trace)
    nodes = len(graph.points) + len(graph.items)
    return int(np.clip(_TABLE_CELLS // max((len(PERCENTS) - 1) * nodes, 1), _FEWEST, _MOST))
