"""What the host does while no operator, call or work of a device is recorded."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.overview.idle import Covering, long_stretches, step_windows
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.base.intervals import Intervals, covered_time, intersect, merge, subtract, total, union
from torch_tb_profiler.base.markers import is_anonymous_frame
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.schedule.threads import main_thread
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Int32, Int64, Trace, name_mask


@derived
def unrecorded(trace: Trace) -> Covering | None:
    """The frame under which half of that time or more passes, None if there is none."""
    return deepest(trace, _rest(trace), _functions(trace))


def host_alone(trace: Trace) -> Covering | None:
    """The same of stretches of more than a millisecond: what passes between two operators anyway is shorter. None
    where the frame runs operators for most of its time: it is then a part of the program, not beside it."""
    rows = _functions(trace)
    found = deepest(trace, long_stretches(_rest(trace)), rows)
    if found is None:
        return None
    rows = rows[trace.events.name[rows] == trace.events.name[found.event]]
    lasts = total(intersect(step_windows(trace), merge(trace.events.start[rows], event_ends(trace)[rows])))
    return found if 2 * total(found.during) >= lasts else None


@derived
def _rest(trace: Trace) -> Intervals:
    return subtract(step_windows(trace), union(*role_intervals(trace).values()))


def deepest(trace: Trace, rest: Intervals, rows: Int32) -> Covering | None:
    """The deepest of these slices under whose calls half of the stretches or more passes.

    Calls of one name count together, so that a loop over many short ones is found.
    """
    if total(rest) == 0 or len(rows) == 0:
        return None
    # Sums of calls are more than the time under a name, which may call itself: they say for which names to look.
    rows, _ = _often(trace, rows, trace.events.duration[rows], total(rest))
    rows, often = _often(
        trace, rows, covered_time(rest, trace.events.start[rows], event_ends(trace)[rows]), total(rest)
    )
    stretches = [_covering(trace, rest, rows[trace.events.name[rows] == code]) for code in often]
    half = [each for each in stretches if 2 * total(each.during) >= total(rest)]
    return min(half, key=lambda each: (total(each.during), int(trace.events.duration[each.event])), default=None)


def _often(trace: Trace, rows: Int32, times: Int64, whole: int) -> tuple[Int32, list[int]]:
    """(rows, codes) of the names whose times add up to half of the whole or more."""
    names = trace.events.name[rows]
    enough = 2 * np.bincount(names, times, minlength=len(trace.strings)) >= whole
    kept: Int32 = rows[enough[names]]
    return kept, np.flatnonzero(enough).tolist()


def _covering(trace: Trace, rest: Intervals, rows: Int32) -> Covering:
    during = intersect(rest, merge(trace.events.start[rows], event_ends(trace)[rows]))
    longest = int(rows[np.argmax(trace.events.duration[rows])])
    return Covering(trace.strings[trace.events.name[longest]], during, longest)


@derived
def _functions(trace: Trace) -> Int32:
    """Calls of named Python functions on the main thread (others wait, or work beside) that hold no whole step:
    these explain nothing in it."""
    rows = rows_of_kind(trace, Kind.PYTHON)
    rows = rows[trace.events.thread[rows] == main_thread(trace)]
    named = name_mask(trace.strings, lambda name: not is_anonymous_frame(name))  # a frame may have no name at all
    rows = rows[named[trace.events.name[rows]]]
    spans = steps(trace)
    next_step = np.searchsorted(spans.host_starts, trace.events.start[rows], "left")
    until = np.append(spans.host_ends, np.iinfo(np.int64).max)[next_step]
    kept: Int32 = rows[event_ends(trace)[rows] < until]
    return kept
