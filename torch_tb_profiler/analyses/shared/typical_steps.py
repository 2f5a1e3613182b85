"""Typical and odd steps: the steps that every sentence about "a step" averages, and those that are left out of it.

    steps  346  10  10  11  10  310     typical: 10 10 11 10; odd: the first compiles, the last saves a checkpoint

Averages, shares, savings and costs are those of the typical steps. An odd step has a sentence of its own.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown, breakdown
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.intervals import Intervals, merge
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import Bool, Float64, Int64, Trace

MIN_ODD_RATIO = 0.2
"""An odd step is further from the median step than this ratio of it,"""

MIN_ODD_DEVIATIONS = 5.0
"""than this many median deviations of the steps (Hampel 1974),"""

MAX_ODD_SHARE = 0.25
"""and one of at most this share of the steps, or the only one. A long first step doesn't count for this share.

If more are that far, a step is odd only if it is further from all that must be typical, which are the others
without that share of the steps, than these are from each other (Dixon's Q above a half)."""

MIN_STEPS = 3
"""Fewest steps that show what is typical."""

DEVICE_CATEGORIES = ("kernel", "memcpy", "memset", "communication")


class StepKinds(msgspec.Struct, frozen=True):
    """Which of k steps are typical; incomplete steps are neither typical nor odd.

    typical  bool[k]
    odd      bool[k]  complete steps that are much longer or shorter than the others
    filling  whether the first step fills the pipeline: host and device worked in it as in the others, but the
             device falls behind the host in it, which its end includes. It is then neither typical nor odd
    """

    typical: Bool
    odd: Bool
    filling: bool


@derived
def step_kinds(trace: Trace) -> StepKinds:
    """Return which steps of a trace are typical."""
    return classify_steps(breakdown(trace))


def odd_step_names(trace: Trace) -> tuple[str, ...]:
    """Return the names of the odd steps."""
    names = breakdown(trace).steps.names
    return tuple(names[i] for i in np.flatnonzero(step_kinds(trace).odd).tolist())


@derived
def typical_windows(trace: Trace) -> Intervals:
    """Return the time of the typical steps; those that touch are one window."""
    return merge(*typical_bounds(trace))


def typical_bounds(trace: Trace) -> tuple[Int64, Int64]:
    """Return where each typical step begins and ends, int64[k] each."""
    spans, typical = breakdown(trace).steps, step_kinds(trace).typical
    return spans.starts[typical], spans.ends[typical]


def classify_steps(times: Breakdown) -> StepKinds:
    """Decide which steps are typical, by how long they take.

    Iterations of an inference engine all are: a prefill takes longer than a decode, and its time is part of what a
    token costs. Stalls among them are the Serving tab's.
    """
    complete = times.steps.complete
    if times.steps.vary:
        return StepKinds(complete.copy(), np.zeros(len(complete), np.bool_), filling=False)
    indices = np.flatnonzero(complete)
    filling = _fills_pipeline(times)
    judged = indices[1:] if filling else indices
    odd = np.zeros(len(complete), np.bool_)
    odd[judged[odd_durations(times.durations[judged])]] = True
    typical = complete & ~odd
    if filling:
        typical[indices[0]] = False
    return StepKinds(typical, odd, filling)


def odd_durations(durations: Int64 | Float64) -> Bool:
    """Return bool[k]: which steps are far from the others; none of fewer than MIN_STEPS."""
    odd = np.zeros(len(durations), np.bool_)
    if len(durations) < MIN_STEPS:
        return odd
    # A first step may start up, so the others alone say whether it is odd: it isn't if many of them are as long.
    as_long = (durations[1:] >= (1 - MIN_ODD_RATIO) * durations[0]).mean() > MAX_ODD_SHARE
    longer = durations[0] > median(durations[1:]) and not as_long
    odd[0] = longer and _are_far(durations[:1], durations[1:])[0]
    others = np.flatnonzero(~odd)
    if len(others) >= MIN_STEPS:
        far, allowed = _are_far(durations[others], durations[others]), int(max(MAX_ODD_SHARE * len(others), 1))
        if far.sum() > allowed:
            # So many are no exceptions: steps of that length recur, or all of them vary.
            far &= _are_apart(durations[others], allowed)
        odd[others[far]] = True
    return odd


def _are_far(durations: Int64 | Float64, others: Int64 | Float64) -> Bool:
    """Return which durations are far from the median of others."""
    middle = median(others)
    spread = median(np.abs(others - middle))
    far: Bool = np.abs(durations - middle) > max(MIN_ODD_RATIO * float(middle), MIN_ODD_DEVIATIONS * spread)
    return far


def _are_apart(durations: Int64 | Float64, allowed: int) -> Bool:
    """Return which durations are further from all others than these are from each other.

    The others are all but the `allowed` that are furthest from the median, so that one that is far doesn't hide
    another.
    """
    order = np.argsort(np.abs(durations - median(durations)), kind="stable")
    remaining = durations[order[: len(durations) - allowed]]
    low, high = remaining.min(), remaining.max()
    apart: Bool = np.maximum(low - durations, durations - high) > high - low
    return apart


def _fills_pipeline(times: Breakdown) -> bool:
    """Return whether the first step is far longer, but neither the host nor the device worked for longer in it."""
    spans = times.steps
    if np.count_nonzero(spans.complete) < MIN_STEPS or not spans.complete[0]:
        return False

    def is_typical(values: Int64) -> bool:
        return bool(values[0] <= (1 + MIN_ODD_RATIO) * median(values[1:][spans.complete[1:]]))

    worked: Int64 = np.sum([times.times[name] for name in DEVICE_CATEGORIES], axis=0)
    is_typical_work = is_typical(spans.host_ends - spans.host_starts) and is_typical(worked)
    return is_typical_work and bool(worked[0]) and not is_typical(times.durations)


class AverageStep(msgspec.Struct, frozen=True):
    """Means over the typical steps in ns, of the duration and of the time in each category.

    steps  number of typical steps
    odd    indices of the odd steps; filling: see `StepKinds`
    """

    duration: float
    categories: dict[str, float]
    steps: int
    odd: tuple[int, ...]
    filling: bool


@derived
def average_step(trace: Trace) -> AverageStep | None:
    """Average the typical steps; None without a complete step."""
    times, kinds = breakdown(trace), step_kinds(trace)
    if not kinds.typical.any():
        return None
    return AverageStep(
        float(times.durations[kinds.typical].mean()),
        {name: float(times.times[name][kinds.typical].mean()) for name in CATEGORIES},
        int(kinds.typical.sum()),
        tuple(np.flatnonzero(kinds.odd).tolist()),
        kinds.filling,
    )
