"""The frame, annotation, operator or call in which most of some time passes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overview.finding import NO_ROWS
from torch_tb_profiler.analyses.overview.idle import long_stretches
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.analyses.shared.typical_steps import typical_windows
from torch_tb_profiler.base.arrays import distinct, search_sorted, sums_by_number
from torch_tb_profiler.base.intervals import Intervals, covered_time, intersect, merge, subtract, total, union
from torch_tb_profiler.base.markers import is_anonymous_frame, is_training_mark
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import (
    HOST_KINDS,
    Kind,
    event_intervals,
    event_kinds,
    event_spans,
    rows_of_kind,
    slice_mask,
)
from torch_tb_profiler.model.schedule.threads import main_thread
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes, name_mask

MAX_STRETCHES = 200
"""Stretches that are looked into, the longest ones."""

_CELLS_AT_ONCE = 1 << 22
"""Pairs of a stretch and a slice that are compared at once, which bounds the memory."""


class DominantFrame(msgspec.Struct, frozen=True):
    """A frame, annotation, operator or call that covers at least half of some time.

    during  the part of that time in which it runs; event: row of its longest occurrence
    """

    name: str
    during: Intervals
    event: int


def dominant_frames(trace: Trace, stretches: Intervals) -> list[DominantFrame]:
    """Find the deepest slice that covers half of each of the longest stretches; by name, most time first."""
    indices, rows = _find_deepest_slices(trace, stretches)
    names, frames = trace.events.name[rows], []
    for code in dict.fromkeys(names.tolist()):
        mine, where = rows[names == code], indices[names == code]
        longest = int(mine[np.argmax(trace.events.duration[mine])])
        inside = merge(stretches.starts[where], stretches.ends[where])
        during = intersect(inside, event_intervals(trace, distinct(mine)))
        frames.append(DominantFrame(trace.strings[code], during, longest))
    return sorted(frames, key=lambda frame: -int((frame.during.ends - frame.during.starts).sum()))


def _find_deepest_slices(trace: Trace, stretches: Intervals) -> tuple[Int64, Int32]:
    """Return (indices of stretches, row of the shortest slice of the launching threads that covers half of each).

    Stretches that no slice covers are left out.
    """
    lengths = stretches.ends - stretches.starts
    longest = np.argsort(-lengths, kind="stable")[:MAX_STRETCHES]
    if len(longest) == 0:
        return longest, NO_ROWS
    half = (lengths[longest] + 1) // 2
    rows = _find_long_launching_slices(trace, HOST_KINDS, int(half.min()))
    start, finish = event_spans(trace, rows)
    shortest_first = np.argsort(finish - start, kind="stable")
    rows, start, finish = rows[shortest_first], start[shortest_first], finish[shortest_first]
    # A slice covers half of a stretch if it is as long, begins before the last half, and ends after the first one.
    latest, earliest = stretches.ends[longest] - half, stretches.starts[longest] + half
    found = np.empty(len(longest), np.int64)
    at_once = max(1, _CELLS_AT_ONCE // max(len(rows), 1))
    for low in range(0, len(longest), at_once):
        some = slice(low, low + at_once)
        covers = finish - start >= half[some, None]
        covers &= start <= latest[some, None]
        covers &= finish >= earliest[some, None]
        found[some] = np.where(covers.any(axis=1), covers.argmax(axis=1), NO_CODE) if len(rows) else NO_CODE
    return longest[found >= 0], rows[found[found >= 0]]


def _find_long_launching_slices(trace: Trace, kinds: Sequence[Kind], least: int) -> Int32:
    """Return slices of `least` ns or more on threads that launch, without loop marks and unnamed frames."""
    rows = np.flatnonzero(trace.events.duration >= least).astype(np.int32)  # few, so that all else is asked of few
    rows = rows[np.isin(event_kinds(trace).take(rows), kinds) & slice_mask(trace).take(rows)]
    return _select_launching_slices(trace, rows)


def _select_launching_slices(trace: Trace, rows: Int32) -> Int32:
    """Return those of these slices that are on threads that launch, without loop marks and unnamed frames."""
    names = trace.events.name.take(rows)
    rows = rows[name_mask(trace.strings, _names_code, names).take(names)]
    launching = _find_launching_threads(trace)
    return rows[launching.take(trace.events.thread.take(rows))] if launching.any() else rows


@derived
def _find_launching_threads(trace: Trace) -> Bool:
    """Return which threads launch device work, bool[threads + 1]; the last cell is that of NO_CODE."""
    _, launch = device_launches(trace)
    launching = np.zeros(len(trace.threads) + 1, np.bool_)
    launching[distinct_codes(trace.events.thread[launch[launch >= 0]])] = True
    return launching


def _names_code(text: str) -> bool:
    return not (is_training_mark(text) or is_anonymous_frame(text))


def slices_without_launches(trace: Trace, least: float) -> Int32:
    """Return operators, annotations and functions of threads that launch, no call of which launches anything.

    least  those of names with less time than that are left out, in ns, which are most; inner calls count, too
    """
    rows = _select_launching_slices(trace, _find_rows_of_long_names(trace, least))
    calls = device_launches(trace)[1]
    calls = calls[calls >= 0]
    call_start, call_thread = trace.events.start.take(calls), trace.events.thread.take(calls)
    (start, finish), thread = event_spans(trace, rows), trace.events.thread.take(rows)
    names = trace.events.name.take(rows)
    launches = np.zeros(len(trace.strings), np.bool_)
    for code in distinct_codes(thread):
        times = np.append(np.sort(call_start[call_thread == code], kind="stable"), np.iinfo(np.int64).max)
        of_thread = np.flatnonzero(thread == code)
        next_launch = times.take(search_sorted(times, start.take(of_thread), "left"))
        launches[names.take(of_thread[next_launch < finish.take(of_thread)])] = True
    found: Int32 = rows[~launches.take(names)]
    return found


def _find_rows_of_long_names(trace: Trace, least: float) -> Int32:
    """Return operators, annotations and functions, in file order, whose names have `least` ns or more in all."""
    kinds, count = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON), len(trace.strings) + 1
    rows_of_kinds = [rows_of_kind(trace, kind) for kind in kinds]
    codes = [trace.events.name.take(rows) for rows in rows_of_kinds]
    times = np.zeros(count, np.int64)
    for rows, code in zip(rows_of_kinds, codes, strict=True):
        # NO_CODE, which is no name, is the first cell.
        times += sums_by_number(code + 1, np.maximum(trace.events.duration.take(rows), 0), count)
    is_long = np.append(times[1:] >= least, False)
    found = [rows[is_long.take(code)] for rows, code in zip(rows_of_kinds, codes, strict=True)]
    return np.sort(np.concatenate(found))


@derived
def main_operator(trace: Trace) -> DominantFrame | None:
    """Return the deepest operator of the main thread that covers most of the typical steps' time in operators.

    What the operator calls counts for it; None if no operator covers so much. Two threads at once would each have
    all of the time, so only the main thread counts.
    """
    roles = dict(role_intervals(trace))
    time = intersect(typical_windows(trace), roles.pop("cpu_exec"))
    rows = rows_of_kind(trace, Kind.CPU_OP)
    rows = rows[trace.events.thread[rows] == main_thread(trace)]
    return deepest_dominant_frame(trace, subtract(time, union(*roles.values())), rows)


@derived
def unrecorded_function(trace: Trace) -> DominantFrame | None:
    """Return the function in which most of the time without an operator, call or device work passes, or None."""
    return deepest_dominant_frame(trace, _find_unrecorded_time(trace), _find_function_calls(trace))


def function_without_operators(trace: Trace) -> DominantFrame | None:
    """Return the function in which most of the stretches without operators of over a millisecond pass.

    Shorter stretches pass between any two operators. None where the function runs operators for most of its time:
    then it is part of the program, not beside it.
    """
    rows = _find_function_calls(trace)
    frame = deepest_dominant_frame(trace, long_stretches(_find_unrecorded_time(trace)), rows)
    if frame is None:
        return None
    rows = rows[trace.events.name[rows] == trace.events.name[frame.event]]
    duration = total(intersect(typical_windows(trace), event_intervals(trace, rows)))
    return frame if 2 * total(frame.during) > duration else None


@derived
def _find_unrecorded_time(trace: Trace) -> Intervals:
    """Return the time of typical steps in which no operator, call or device work is recorded."""
    return subtract(typical_windows(trace), union(*role_intervals(trace).values()))


def deepest_dominant_frame(trace: Trace, time: Intervals, rows: Int32) -> DominantFrame | None:
    """Return the deepest of these slices under whose calls more than half of `time` passes.

    Calls of one name count together, so that a loop over many short ones is found.
    """
    if total(time) == 0 or len(rows) == 0:
        return None
    # Sums of calls exceed the time under a name that calls itself: they only say which names to look at.
    rows, _ = _find_frequent_names(trace, rows, trace.events.duration[rows], total(time))
    inside = covered_time(time, *event_spans(trace, rows))
    rows, codes = _find_frequent_names(trace, rows, inside, total(time))
    frames = [_build_frame(trace, time, rows[trace.events.name[rows] == code]) for code in codes]
    dominant = [frame for frame in frames if 2 * total(frame.during) > total(time)]
    return min(
        dominant,
        key=lambda frame: (total(frame.during), int(trace.events.duration[frame.event])),
        default=None,
    )


def _find_frequent_names(trace: Trace, rows: Int32, times: Int64, time: int) -> tuple[Int32, list[int]]:
    """Return (rows, codes) of the names whose times add up to half of `time` or more."""
    names = trace.events.name[rows]
    named = names != NO_CODE
    rows, times, names = rows[named], times[named], names[named]
    enough = 2 * np.bincount(names, times, minlength=len(trace.strings)) >= time
    selected: Int32 = rows[enough[names]]
    return selected, np.flatnonzero(enough).tolist()


def _build_frame(trace: Trace, time: Intervals, rows: Int32) -> DominantFrame:
    during = intersect(time, event_intervals(trace, rows))
    longest = int(rows[np.argmax(trace.events.duration[rows])])
    return DominantFrame(trace.strings[trace.events.name[longest]], during, longest)


@derived
def _find_function_calls(trace: Trace) -> Int32:
    """Return the calls of named Python functions on the main thread that hold no entire step.

    Other threads wait or work beside it, and a function around a step explains nothing in it.
    """
    rows = rows_of_kind(trace, Kind.PYTHON)
    rows = rows[trace.events.thread[rows] == main_thread(trace)]
    has_name = name_mask(
        trace.strings, lambda name: not is_anonymous_frame(name)
    )  # a frame may have no name at all
    rows = rows[has_name[trace.events.name[rows]]]
    spans = steps(trace)
    starts, ends = event_spans(trace, rows)
    next_step = search_sorted(spans.host_starts, starts, "left")
    until = np.append(spans.host_ends, np.iinfo(np.int64).max)[next_step]
    calls: Int32 = rows[ends < until]
    return calls
