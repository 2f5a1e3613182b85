"""What a step is made of: parts whose times sum to the step exactly, on one side and compared between two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.counted_steps import SideValues, counted_steps
from torch_tb_profiler.analyses.diff.roles import autograd_threads
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, breakdown, role_intervals, times_by_category
from torch_tb_profiler.base.intervals import Intervals, covered_time, merge, subtract, union
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import host_communication_calls, is_communication_kernel
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_intervals,
    rows_of_kind,
)
from torch_tb_profiler.model.modules import module_calls
from torch_tb_profiler.model.phases import PHASES, event_phases
from torch_tb_profiler.model.steps import has_host_events
from torch_tb_profiler.model.trace import Int32, Int64, Recordings, Trace, TracePair, name_mask
from torch_tb_profiler.model.trainer import trainer_phases

PHASE_ORDER = ("data", "optimizer", "backward", "forward")
"""Phases by precedence: an instant in which several run counts for the first of them."""

PartTimes = dict[str, Int64]
"""Part -> int64[steps] ns; all parts of a step sum to its duration."""


class StepPart(msgspec.Struct, frozen=True):
    """A part of the step on both sides, in integer ns, rounded so that all parts sum to the step.

    known  whether both sides record it
    """

    name: str
    base_ns: int
    candidate_ns: int
    known: bool
    change: Change


def category_times(trace: Trace) -> PartTimes:
    """Return the overview's categories of the counted steps."""
    times = breakdown(trace).times
    return {name: times[name][counted_steps(trace).which] for name in CATEGORIES}


@derived
def phase_times(trace: Trace) -> PartTimes:
    """Return the phases of the host and `device`, the rest of the step after the host has finished.

    What follows the last backward pass or optimizer of a step, such as `loss.item()`, is no forward pass.
    """
    steps = counted_steps(trace)
    host_end = np.clip(steps.host_ends, steps.starts, steps.ends)
    parts: PartTimes = {}
    so_far: list[Intervals] = []
    counted = np.zeros(len(steps), np.int64)
    trained = union(_find_host_intervals(trace, "optimizer"), _find_host_intervals(trace, "backward"))
    for name in PHASE_ORDER:
        during = _find_host_intervals(trace, name)
        if name == "forward":
            during = subtract(during, _find_rest_after(trained, steps.starts, host_end))
        so_far = [union(*so_far, during)]
        reached = covered_time(so_far[0], steps.starts, host_end)
        parts[name] = reached - counted
        counted = reached
    parts["other"] = host_end - steps.starts - counted
    parts["device"] = steps.ends - host_end
    return parts


def _find_rest_after(during: Intervals, starts: Int64, ends: Int64) -> Intervals:
    """Return the rest of each window after the last of these intervals that ends in it; of those with any."""
    last = np.searchsorted(during.ends, ends, "right") - 1
    known = last >= 0
    known[known] = during.ends[last[known]] > starts[known]
    return merge(during.ends[last[known]], ends[known])


def _find_host_intervals(trace: Trace, phase: str) -> Intervals:
    if not has_host_events(trace):  # the trace has the phases of a trainer only
        rows = trainer_phases(trace)[phase]
        return event_intervals(trace, rows)
    rows = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER)
    rows = rows[~name_mask(trace.strings, is_step)[trace.events.name[rows]]]
    if phase == "forward":
        rows = np.concatenate([rows, module_calls(trace)])
    phase_of = event_phases(trace)[rows]
    autograd = np.isin(trace.events.thread[rows], autograd_threads(trace))
    phase_of[(phase_of == 0) & autograd] = PHASES.index("backward")
    rows = rows[phase_of == PHASES.index(phase)]
    return event_intervals(trace, rows)


def communication_times(trace: Trace) -> tuple[Int64, Int64]:
    """Return (all communication, exposed communication), int64[steps] ns each."""
    steps = counted_steps(trace)
    communicating = role_intervals(trace)["communication"]
    return covered_time(communicating, steps.starts, steps.ends), category_times(trace)["communication"]


def busy_times(trace: Trace, device: int) -> Int64:
    """Return the ns in which a device runs a kernel, a memcpy or a memset, int64[steps]."""
    steps = counted_steps(trace)
    rows: Int32 = rows_of_kind(trace, *DEVICE_KINDS)
    rows = rows[device_ids(trace)[rows] == device]
    return covered_time(event_intervals(trace, rows), steps.starts, steps.ends)


def unknown_categories(pair: TracePair) -> dict[str, str]:
    """Return the categories that at least one side doesn't record, each with the reason."""
    base, candidate = unknown_by_side(pair)
    return {**candidate, **base}


def unknown_by_side(pair: TracePair) -> tuple[dict[str, str], dict[str, str]]:
    """Return the categories that the base and the candidate don't record, each with the reason.

    A file without calls doesn't show whether a device worked. Alone, it is one of a CPU; beside a file with device
    work, whether that work was gone or only not recorded is unknown. So it is with calls of the runtime.
    """
    traces = *pair.base, *pair.candidate
    unknown = _unknown_of(pair.base), _unknown_of(pair.candidate)
    idle, silent = ([trace for trace in traces if not has(trace)] for has in (_has_device_work, _has_calls))
    if 0 < len(idle) < len(traces):
        # Only kernels show communication, unless the host itself communicates on both sides.
        by_kernels = any(is_communication_kernel(trace).any() for trace in traces)
        by_kernels |= any(len(host_communication_calls(trace)) == 0 for trace in idle)
        names = ("kernel", "memcpy", "memset", *(("communication",) if by_kernels else ()))
        _add_reason(unknown, pair, idle, names, no_device_work_reason)
    if 0 < len(silent) < len(traces):
        _add_reason(unknown, pair, silent, ("runtime",), _no_calls_reason)
    return unknown


def _unknown_of(recordings: Recordings) -> dict[str, str]:
    return {name: reason for trace in recordings for name, reason in breakdown(trace).unknown.items()}


def _add_reason(
    unknown: tuple[dict[str, str], dict[str, str]],
    pair: TracePair,
    without: Sequence[Trace],
    categories: Sequence[str],
    reason: Callable[[Sequence[str]], str],
) -> None:
    """Add a reason for these categories to the sides that have a trace of those `without` them."""
    lacking = {id(trace) for trace in without}
    sides = [
        (name, of_side)
        for name, side, of_side in zip(("base", "candidate"), (pair.base, pair.candidate), unknown, strict=True)
        if any(id(trace) in lacking for trace in side)
    ]
    for _, of_side in sides:
        for category in categories:
            of_side.setdefault(category, reason([name for name, _ in sides]))


def no_device_work_reason(sides: Sequence[str]) -> str:
    """Return why the device times of these sides are unknown beside a recording with device work."""
    names = " and ".join(f"the {name}" for name in sides)
    it = "it" if len(sides) == 1 else "they"
    return f"{names} recorded no device work: {it} ran on the CPU, or the profiler didn't record the device"


def _no_calls_reason(sides: Sequence[str]) -> str:
    names = " and ".join(f"the {name}" for name in sides)
    it = "it" if len(sides) == 1 else "they"
    return f"{names} recorded no runtime calls: {it} made none, or the profiler didn't record them"


def _has_device_work(trace: Trace) -> bool:
    return len(rows_of_kind(trace, *DEVICE_KINDS)) > 0


def _has_calls(trace: Trace) -> bool:
    return len(rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)) > 0


def join_parts(recordings: Recordings, times_of: Callable[[Trace], PartTimes]) -> PartTimes:
    """Return the parts of the steps of all recordings of a side, recording after recording."""
    times = [times_of(trace) for trace in recordings]
    return {name: np.concatenate([parts[name] for parts in times]) for name in times[0]}


def comparable_categories(pair: TracePair) -> tuple[PartTimes, PartTimes]:
    """Return the categories of both sides, as if both had recorded only what both did.

    Else a host that works beside kernels would seem to do more on the side whose kernels weren't recorded.
    """
    unknown = unknown_categories(pair)

    def times_of(trace: Trace) -> PartTimes:
        times = times_by_category(trace, unknown) if unknown else breakdown(trace).times
        return {name: times[name][counted_steps(trace).which] for name in CATEGORIES}

    return join_parts(pair.base, times_of), join_parts(pair.candidate, times_of)


def part_values(base: PartTimes, candidate: PartTimes) -> SideValues:
    """Return a row of values per part."""
    first, second = (np.stack([side[name] for name in base]).astype(np.float64) for side in (base, candidate))
    return first, second


def build_step_parts(
    base: PartTimes, candidate: PartTimes, judged: Sequence[Change], unknown: Collection[str] = ()
) -> tuple[StepPart, ...]:
    """Build the parts with their changes."""
    rows = zip(base, _round_means(base), _round_means(candidate), judged, strict=True)
    return tuple(StepPart(name, old, new, name not in unknown, change) for name, old, new, change in rows)


def _round_means(parts: PartTimes) -> list[int]:
    """Return the mean of each part in integer ns; running sums are rounded, so that all sum to the step's mean."""
    count = max(len(next(iter(parts.values()))), 1)
    sums = np.cumsum([int(values.sum()) for values in parts.values()]).tolist()
    rounded = [(2 * total + count) // (2 * count) for total in sums]
    return [total - before for total, before in zip(rounded, [0, *rounded], strict=False)]
