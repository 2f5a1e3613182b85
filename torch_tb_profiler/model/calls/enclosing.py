"""Which of some nested slices (module calls, backward tasks, hooks) runs where an event starts."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.calls.calltree import CallTree
from torch_tb_profiler.model.calls.compiled import active_functions
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace


def innermost_enclosing(
    trace: Trace, forest: CallTree, thread: Int32 | None = None, asked: Int32 | None = None
) -> Int32:
    """int32[n]: row of the innermost slice of the forest on each event's thread at the event's start.

    `thread`, int32[n]: another thread to look on than the event's own. `asked`: rows to answer for, not all.

    Never the event itself, nor a slice that starts with the event and is shorter (that one lies inside the
    event). What overlaps without nesting (side lanes) encloses nothing. NO_CODE where there is none.
    """
    events = trace.events
    running_at = np.full(len(trace), NO_CODE, np.int32)
    rows = forest.rows[forest.lane[forest.rows] == 0]
    thread = events.thread if thread is None else thread
    asked = np.arange(len(trace), dtype=np.int32) if asked is None else asked
    codes = thread[asked]
    if len(trace.threads) < 2**15:
        codes = codes.astype(np.int16)  # sorted by digits, in a tenth of the time
    by_thread = asked[np.argsort(codes, kind="stable")]
    threads, first = np.unique(events.thread[rows], return_index=True)
    bounds = np.append(first, len(rows))
    low, high = np.searchsorted(thread[by_thread], [threads, threads + 1])
    for i in range(len(threads)):
        members = by_thread[low[i] : high[i]]
        members = members[events.start[members] != ABSENT]
        times, running = running_slices(trace, forest, rows[bounds[i] : bounds[i + 1]])
        running_at[members] = running[np.searchsorted(times, events.start[members], "right")]
    return _outside_of_shorter(trace, forest, running_at)


def running_slices(trace: Trace, forest: CallTree, rows: Int32) -> tuple[Int64, Int32]:
    """(times, what runs before each of them and after the last) for the slices of one thread."""
    if in_c := active_functions():
        return in_c.changes(rows, trace.events.start, event_ends(trace), forest.parent)
    start, end = trace.events.start[rows], event_ends(trace)[rows]
    rows = rows[end > start]
    depth = forest.depth[rows]
    times = np.concatenate([event_ends(trace)[rows], trace.events.start[rows]])
    running = np.concatenate([forest.parent[rows], rows])
    # At one instant: the ends, inner before outer, then the begins, outer before inner.
    turn = np.concatenate([-1 - depth, depth]).astype(np.int64)
    turns = 2 * int(depth.max(initial=0)) + 2
    if int(times.max(initial=0)) < 2**62 // turns:
        order = np.argsort(times * turns + turn, kind="stable")  # one key is several times faster than two
    else:
        order = np.lexsort((turn, times))
    return times[order], np.append(NO_CODE, running[order]).astype(np.int32)


def _outside_of_shorter(trace: Trace, forest: CallTree, running_at: Int32) -> Int32:
    """Where an event starts together with what was found but encloses it: what runs around both."""
    events, finish = trace.events, event_ends(trace)
    turn = np.full(len(trace), len(forest.rows), np.int64)
    turn[forest.rows] = np.arange(len(forest.rows))
    asked = np.flatnonzero(running_at >= 0)
    asked = asked[events.start[running_at[asked]] == events.start[asked]]
    while len(asked):
        inner = running_at[asked]
        outside = (events.start[inner] == events.start[asked]) & (
            (finish[asked] > finish[inner]) | (turn[asked] <= turn[inner])
        )
        asked = asked[outside]
        running_at[asked] = forest.parent[running_at[asked]]
        asked = asked[running_at[asked] >= 0]
    return running_at
