"""Why a step takes far longer than the others: the code, the kernel, or the kind of time that makes it longer."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, breakdown
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.intervals import covered_time
from torch_tb_profiler.base.markers import is_anonymous_frame, is_step, is_user_frame
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_ends,
    event_intervals,
    rows_of_kind,
)
from torch_tb_profiler.model.schedule.threads import main_thread
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, name_mask

MIN_CAUSE_SHARE = 0.5
"""A cause makes up at least this share of what an odd step takes more."""

MAX_LOOP_SHARE = 0.5
"""Code that takes more than this share of a typical step is the training loop, which explains no odd step."""


class OddStep(msgspec.Struct, frozen=True):
    """A complete step that is far longer or shorter than the typical ones.

    extra_ns  what it takes more than a typical step, negative if less
    name      the annotation, frame, operator, call or kernel that makes it longer, "" if no single one does
    event     row of its longest call in the step, NO_CODE without a name
    category  the category of the Overview that makes it longer, None where no category is most of it
    communicates  communication makes it longer, which may be waiting for another rank
    """

    step: str
    extra_ns: float
    name: str
    event: int
    category: str | None
    communicates: bool = False


@derived
def odd_steps(trace: Trace) -> tuple[OddStep, ...]:
    """Return the odd steps in order of time."""
    kinds, times = step_kinds(trace), breakdown(trace)
    if not kinds.odd.any():
        return ()
    typical = float(times.durations[kinds.typical].mean())
    found = []
    for number in np.flatnonzero(kinds.odd).tolist():
        extra = float(times.durations[number]) - typical
        if extra <= 0:
            found.append(OddStep(times.steps.names[number], extra, "", NO_CODE, None))
            continue
        category = _find_category(trace, number, extra)
        communicates = category == "communication"
        name, event = _find_cause(trace, number, extra, typical, device_first=communicates)
        communicates |= event != NO_CODE and bool(is_communication_kernel(trace)[event])
        found.append(OddStep(times.steps.names[number], extra, name, event, category, communicates))
    return tuple(found)


def _find_category(trace: Trace, number: int, extra: float) -> str | None:
    """Return the category with more than MIN_CAUSE_SHARE of the extra time."""
    times, typical = breakdown(trace), step_kinds(trace).typical
    if any(category in times.unknown for category in CATEGORIES):
        return None
    excess = {name: times.times[name][number] - float(times.times[name][typical].mean()) for name in CATEGORIES}
    largest = max(excess, key=lambda name: excess[name])
    return largest if excess[largest] > MIN_CAUSE_SHARE * extra else None


def _find_cause(trace: Trace, number: int, extra: float, typical: float, *, device_first: bool) -> tuple[str, int]:
    """Return (name, row) of what takes more than MIN_CAUSE_SHARE of the extra time more than in a typical step.

    device_first  name what runs on the device rather than the operator or call that waits for it
    """
    groups = _build_candidate_groups(trace)
    order = [0, 1, len(groups) - 1, *range(2, len(groups) - 1)] if device_first else range(len(groups))
    for group in order:
        candidates, found = groups[group], []
        for code in _find_long_names(trace, candidates, number, MIN_CAUSE_SHARE * extra):
            typical_ns = _measure_typical_time(trace, group, code)
            mine = candidates.rows[trace.events.name[candidates.rows] == code]
            within = float(_sum_time_in_steps(trace, mine, number, number + 1)[0])
            if within - typical_ns > MIN_CAUSE_SHARE * extra and typical_ns <= MAX_LOOP_SHARE * typical:
                found.append((within, mine))
        if found:
            _, mine = min(found, key=lambda each: each[0])
            spans = steps(trace)
            inside = (event_ends(trace)[mine] > spans.starts[number]) & (
                trace.events.start[mine] < spans.ends[number]
            )
            mine = mine[inside]
            event = int(mine[np.argmax(trace.events.duration[mine])])
            return trace.strings[trace.events.name[event]], event
    return "", NO_CODE


def named_slices(trace: Trace) -> tuple[Int32, ...]:
    """Return the rows of slices by what says most: code as its author names it, operators, calls, device work."""
    return tuple(candidates.rows for candidates in _build_candidate_groups(trace))


class _Candidates(msgspec.Struct, frozen=True):
    """Named slices in order of their begin.

    rows   int32[k]
    reach  int64[k] ns; latest end of the slices up to each
    """

    rows: Int32
    reach: Int64


@derived
def _build_candidate_groups(trace: Trace) -> tuple[_Candidates, ...]:
    """Return slices by what says most: code as its author names it, operators, calls, profiler, device work.

    A built-in function says less than its caller, and more than nothing: Python's garbage collector has no caller.
    """
    thread = main_thread(trace)

    def of_main_thread(*kinds: Kind, anonymous: bool = False) -> Int32:
        rows = rows_of_kind(trace, *kinds)
        rows = rows[(trace.events.thread[rows] == thread) & (trace.events.name[rows] >= 0)]
        names = trace.events.name[rows]
        named = name_mask(
            trace.strings, lambda name: not is_step(name) and is_anonymous_frame(name) == anonymous, names
        )
        selected: Int32 = rows[named[names]]
        return selected

    annotations, frames = of_main_thread(Kind.ANNOTATION), of_main_thread(Kind.PYTHON)
    built_ins = of_main_thread(Kind.PYTHON, anonymous=True)
    names = trace.events.name[frames]
    by_user = frames[name_mask(trace.strings, is_user_frame, names)[names]]
    device, overhead = rows_of_kind(trace, *DEVICE_KINDS), rows_of_kind(trace, Kind.OVERHEAD)
    groups = (
        np.append(annotations, by_user),
        frames,
        of_main_thread(Kind.CPU_OP),
        of_main_thread(Kind.RUNTIME, Kind.DRIVER),
        built_ins,
        overhead[trace.events.name[overhead] >= 0],
        device[trace.events.name[device] >= 0],
    )
    ordered = [rows[np.argsort(trace.events.start[rows], kind="stable")] for rows in groups]
    return tuple(_Candidates(rows, np.maximum.accumulate(event_ends(trace)[rows])) for rows in ordered)


def _find_long_names(trace: Trace, candidates: _Candidates, number: int, least: float) -> list[int]:
    """Return the names whose calls in a step add up to `least` ns or more, ascending."""
    start, end = int(steps(trace).starts[number]), int(steps(trace).ends[number])
    first = np.searchsorted(candidates.reach, start, "right")
    last = np.searchsorted(trace.events.start[candidates.rows], end, "left")
    rows = candidates.rows[first:last]
    inside = np.minimum(event_ends(trace)[rows], end) - np.maximum(trace.events.start[rows], start)
    codes, owner = np.unique(trace.events.name[rows], return_inverse=True)
    long: list[int] = codes[np.bincount(owner, np.maximum(inside, 0), len(codes)) >= least].tolist()
    return long


@derived
def _measure_typical_time(trace: Trace, group: int, code: int) -> float:
    """Return how long slices of this name in a candidate group run in a typical step, in ns."""
    rows = _build_candidate_groups(trace)[group].rows
    within = _sum_time_in_steps(trace, rows[trace.events.name[rows] == code], 0, len(steps(trace).starts))
    return float(within[step_kinds(trace).typical].mean())


def _sum_time_in_steps(trace: Trace, rows: Int32, first: int, last: int) -> Int64:
    """Return int64[last - first], the ns of each step from `first` up to `last` in which these slices run."""
    spans, merged = steps(trace), event_intervals(trace, rows)
    times = np.zeros(last - first, np.int64)
    if len(merged.starts):
        # Most names occur in a few steps only.
        begin = max(first, int(np.searchsorted(spans.ends, merged.starts[0], "right")))
        end = min(last, int(np.searchsorted(spans.starts, merged.ends[-1], "left")))
        if begin < end:
            times[begin - first : end - first] = covered_time(
                merged, spans.starts[begin:end], spans.ends[begin:end]
            )
    return times
