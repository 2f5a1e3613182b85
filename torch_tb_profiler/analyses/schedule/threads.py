"""What a host thread is in, at every instant: its innermost slice, and the cause that it stands for.

enumerate(DataLoader) --------------|
   aten::stack -----|                     innermost: aten::stack; cause: data loading
                              late --|    data loading and compilation count where they do not nest, too
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import Cause, slice_causes
from torch_tb_profiler.base.intervals import Intervals, merge, union
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.enclosing import running_slices
from torch_tb_profiler.model.kinds import HOST_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64, Trace, derived, distinct_codes

_AROUND = (Cause.HOST_COMMUNICATION, Cause.COMPILE, Cause.DATA_LOADING)
"""Causes that hold for all inside, the last of these first."""

_STILL = (Cause.SYNC, Cause.LAUNCH_CALL, Cause.COPY_STAGING, Cause.ALLOCATOR)
"""Calls that mean themselves inside communication."""


class ThreadStates(msgspec.Struct, frozen=True):
    """One thread as a line of stretches: stretch i lies between times[i - 1] and times[i].

    times  int64[k]      ascending, may repeat
    row    int32[k + 1]  innermost slice, NO_CODE for none
    cause  int8[k + 1]   a Cause
    """

    times: Int64
    row: Int32
    cause: Int8


class Pieces(msgspec.Struct, frozen=True):
    """Parts of some windows; columns of equal length. `window`: index of the window of each."""

    window: Int64
    begin: Int64
    end: Int64
    row: Int32
    cause: Int8


@derived
def thread_states(trace: Trace, thread: int) -> ThreadStates:
    """The states of a thread, on the host's clock."""
    tree = call_tree(trace)
    rows = tree.rows[(trace.events.thread[tree.rows] == thread) & (tree.lane[tree.rows] == 0)]
    times, row = running_slices(trace, tree, rows)
    overlays = [*((cause, _intervals(trace, thread, cause)) for cause in _AROUND)]
    overlays.append((Cause.PROFILER, _profiler(trace, thread)))
    edges = np.concatenate([np.concatenate(inside) for _, inside in overlays])
    at = np.searchsorted(times, edges)
    order = np.argsort(edges, kind="stable")
    times, row = np.insert(times, at[order], edges[order]), np.insert(row, at[order], row[at[order]])
    cause = np.where(row >= 0, slice_causes(trace)[row], Cause.UNRECORDED).astype(np.int8)
    for meaning, inside in overlays:
        covered = np.append(_covers(inside, times), False)
        if meaning == Cause.HOST_COMMUNICATION:
            covered &= ~np.isin(cause, _STILL)
        cause[covered] = meaning
    return ThreadStates(times, row, cause)


def _intervals(trace: Trace, thread: int, cause: Cause) -> Intervals:
    rows = np.flatnonzero((slice_causes(trace) == cause) & (trace.events.thread == thread))
    rows = rows[np.isin(event_kinds(trace)[rows], HOST_KINDS)]
    return merge(trace.events.start[rows], event_ends(trace)[rows])


def _profiler(trace: Trace, thread: int) -> Intervals:
    """Overhead that the profiler recorded of this thread, or of none."""
    rows = rows_of_kind(trace, Kind.OVERHEAD)
    whose = trace.events.thread[rows]
    host = distinct_codes(trace.events.thread[rows_of_kind(trace, *HOST_KINDS)])
    rows = rows[(whose == thread) | ~np.isin(whose, host)]
    return union(merge(trace.events.start[rows], event_ends(trace)[rows]))


def _covers(inside: Intervals, times: Int64) -> Bool:
    """bool[k]: stretch i, which ends at times[i], lies in the intervals, whose borders are among the times."""
    begin = np.append(times[:1], times[:-1])
    at = np.searchsorted(inside.starts, begin, "right") - 1
    within: Bool = (at >= 0) & (times > begin)
    within[within] &= inside.ends[at[within]] >= times[within]
    return within


def cut(trace: Trace, thread: Int32, begin: Int64, end: Int64) -> Pieces:
    """Windows on threads (NO_CODE: on none) in pieces of one state each; empty windows have none."""
    parts: list[tuple[Int64, Int64, Int64, Int32, Int8]] = []
    for code in np.unique(thread[end > begin]).tolist():
        mine = np.flatnonzero((thread == code) & (end > begin))
        low, high = begin[mine], end[mine]
        if code == NO_CODE:
            nothing = np.full(len(mine), NO_CODE, np.int32), np.full(len(mine), Cause.UNRECORDED, np.int8)
            parts.append((mine, low, high, *nothing))
            continue
        states = thread_states(trace, code)
        first = np.searchsorted(states.times, low, "right")
        last = np.searchsorted(states.times, high, "left")
        counts = last - first + 1
        window = np.repeat(np.arange(len(mine)), counts)
        stretch = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + first[window]
        starts = np.append(low.min(), states.times)[stretch]
        finish = np.append(states.times, high.max())[stretch]
        starts, finish = np.maximum(starts, low[window]), np.minimum(finish, high[window])
        kept = finish > starts
        stretch = stretch[kept]
        parts.append((mine[window[kept]], starts[kept], finish[kept], states.row[stretch], states.cause[stretch]))
    if not parts:
        none = np.empty(0, np.int64)
        return Pieces(none, none, none, none.astype(np.int32), none.astype(np.int8))
    return Pieces(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
