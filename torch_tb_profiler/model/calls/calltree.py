"""The host's call tree: per thread, by time nesting.

Order: start, longer first, file order. An event is the child of the innermost one that contains it; one of
length 0 is the child of what contains its instant.

    |-- aten::linear ---------------|
      |-- aten::t --|  |-- addmm --|        parent(addmm) = linear, depth 1
                           |-- late --|     outlasts addmm: side lane 1 of the same thread

Events that overlap without nesting go to a side lane, where they nest only among themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.base.markers import is_profiler_frame
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.nesting import active_functions, nest, nesting_order, place_on_one_axis
from torch_tb_profiler.model.kinds import HOST_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, name_mask

_MAX_UNSORTED_THREADS = 8
"""Threads whose events are found one thread after the other; those of more threads are sorted."""


class CallTree(msgspec.Struct, frozen=True):
    """Host slices of all threads.

    rows    int32[k]  their rows in the trace, ordered by lane, thread, start, longer first
    parent  int32[n]  row of the parent; NO_CODE for roots and for events outside the tree
    depth   int32[n]  0 for roots; -1 for events outside the tree
    lane    int32[n]  0 is the thread's own stack, 1.. are side lanes; -1 for events outside the tree
    """

    rows: Int32
    parent: Int32
    depth: Int32
    lane: Int32

    @property
    def stacks(self) -> Int32:
        """Return the rows of the threads' own stacks, ordered by thread, start, longer first."""
        return self.rows[: bisect_left(self.rows, 1, key=self.lane.__getitem__)]

    @property
    def overlaps(self) -> int:
        """Return how many events don't nest in their thread."""
        return int((self.lane > 0).sum())


@stored
def call_tree(trace: Trace) -> CallTree:
    """Return the call tree of every thread."""
    return build_call_tree(trace, rows_of_kind(trace, *HOST_KINDS))


def build_call_tree(trace: Trace, rows: Int32) -> CallTree:
    """Return the call tree of these slices alone, such as module calls, ignoring all others."""
    events, count = trace.events, len(trace)
    if compiled := active_functions():
        return CallTree(*compiled.tree(rows, events.start, event_ends(trace), events.thread, len(trace.threads)))
    parent = np.full(count, NO_CODE, np.int32)
    depth = np.full(count, -1, np.int32)
    lane = np.full(count, -1, np.int32)
    finish = event_ends(trace)
    rows_by_lane: list[Int32] = []
    side = 0
    while len(rows):
        begin, end = place_on_one_axis(events.start[rows], finish[rows], events.thread[rows])
        order = nesting_order(begin, end)
        rows = rows[order]
        above, level, fits = nest(begin[order], end[order])
        nested = rows[fits]
        parent[nested] = np.where(above[fits] >= 0, rows[above[fits]], NO_CODE)
        depth[nested], lane[nested] = level[fits], side
        rows_by_lane.append(nested)
        rows, side = rows[~fits], side + 1
    return CallTree(np.concatenate(rows_by_lane) if rows_by_lane else rows, parent, depth, lane)


def stack_of_thread(trace: Trace, tree: CallTree, thread: int) -> Int32:
    """Return the rows of a thread's own stack, ordered by start, longer first."""
    stacks, threads = tree.stacks, trace.events.thread
    low, high = (bisect_left(stacks, code, key=threads.__getitem__) for code in (thread, thread + 1))
    return stacks[low:high]


@stored
def enclosing_operators(trace: Trace) -> Int32:
    """Return the row of the innermost operator around each event of the tree (not the event itself), int32[n]."""
    return enclosing_rows(trace, event_kinds(trace) == Kind.CPU_OP)


def enclosing_rows(trace: Trace, is_wanted: Bool) -> Int32:
    """Return the row of the innermost wanted slice around each event of the tree, int32[n]; NO_CODE if none.

    is_wanted  bool[n]
    """
    tree = call_tree(trace)
    if compiled := active_functions():
        return compiled.enclosing(tree.rows, tree.parent, is_wanted)
    enclosing = np.full(len(trace), NO_CODE, np.int32)
    # Level by level, as a child's result depends on its parent's.
    rows = tree.rows
    order = rows[np.argsort(tree.depth[rows].astype(np.int16), kind="stable")]
    bounds = np.searchsorted(tree.depth[order], np.arange(int(tree.depth.max(initial=0)) + 2))
    for low, high in zip(bounds[1:-1], bounds[2:], strict=True):
        members = order[low:high]
        above = tree.parent[members]
        enclosing[members] = np.where(is_wanted[above], above, enclosing[above])
    return enclosing


def innermost_enclosing(
    trace: Trace, tree: CallTree, thread: Int32 | None = None, among: Int32 | None = None
) -> Int32:
    """Return the row of the tree's innermost slice at the start of each of these events, on the event's thread.

    That is never the event itself, nor a shorter slice that starts with it (which lies inside the event). Slices
    in side lanes enclose nothing. NO_CODE if there is none.

    thread  int32[n]; the thread to search for each event, instead of its own
    among   rows of the events, int32[k]; by default all: int32[n]
    """
    events = trace.events
    rows = tree.stacks
    thread = events.thread if thread is None else thread
    among = np.arange(len(trace), dtype=np.int32) if among is None else among
    running_at = np.full(len(among), NO_CODE, np.int32)
    of_rows = events.thread.take(rows)
    bounds = np.concatenate([[0], np.flatnonzero(of_rows[1:] != of_rows[:-1]) + 1, [len(rows)]])
    threads = of_rows[bounds[:-1]] if len(rows) else of_rows
    for i, members in enumerate(_group_positions_by_thread(thread.take(among), threads, len(trace.threads))):
        start = events.start.take(among.take(members))
        if (missing := start == ABSENT).any():
            members, start = members[~missing], start[~missing]
        times, running = running_slices(trace, tree, rows[bounds[i] : bounds[i + 1]])
        running_at[members] = running[search_sorted(times, start, "right")]
    return _drop_shorter(trace, tree, among, running_at)


def _group_positions_by_thread(codes: Int32, threads: Int32, count: int) -> Iterator[Int64]:
    """Yield the positions of each of these threads in a column of codes below `count`."""
    if count < 2**15:
        codes = codes.astype(np.int16)  # compared and sorted several times faster
    if len(threads) <= _MAX_UNSORTED_THREADS:
        yield from (np.flatnonzero(codes == code) for code in threads.tolist())
        return
    by_thread = np.argsort(codes, kind="stable")
    low, high = np.searchsorted(codes[by_thread], [threads, threads + 1])
    yield from (by_thread[begin:end] for begin, end in zip(low.tolist(), high.tolist(), strict=True))


def running_slices(trace: Trace, tree: CallTree, rows: Int32) -> tuple[Int64, Int32]:
    """Return (times, row of the slice that runs before each of them and after the last) of one thread's slices."""
    if compiled := active_functions():
        return compiled.changes(rows, trace.events.start, event_ends(trace), tree.parent)
    start, end = trace.events.start[rows], event_ends(trace)[rows]
    rows = rows[end > start]
    depth = tree.depth[rows]
    times = np.concatenate([event_ends(trace)[rows], trace.events.start[rows]])
    running = np.concatenate([tree.parent[rows], rows])
    # At one instant, ends come first, inner before outer, then begins, outer before inner.
    turn = np.concatenate([-1 - depth, depth]).astype(np.int64)
    turns = 2 * int(depth.max(initial=0)) + 2
    if int(times.max(initial=0)) < 2**62 // turns:
        order = np.argsort(times * turns + turn, kind="stable")  # one key is several times faster than two
    else:
        order = np.lexsort((turn, times))
    return times[order], np.append(NO_CODE, running[order]).astype(np.int32)


def _drop_shorter(trace: Trace, tree: CallTree, among: Int32, running_at: Int32) -> Int32:
    """Replace slices that start with one of these events but lie inside it by what encloses both."""
    events, finish = trace.events, event_ends(trace)
    places = np.flatnonzero(running_at >= 0)
    places = places[events.start.take(running_at.take(places)) == events.start.take(among.take(places))]
    if len(places) == 0:
        return running_at
    turn = np.full(len(trace), len(tree.rows), np.int64)
    turn[tree.rows] = np.arange(len(tree.rows))
    while len(places):
        rows, inner = among[places], running_at[places]
        outside = (events.start[inner] == events.start[rows]) & (
            (finish[rows] > finish[inner]) | (turn[rows] <= turn[inner])
        )
        places = places[outside]
        running_at[places] = tree.parent[running_at[places]]
        places = places[running_at[places] >= 0]
    return running_at


def count_unexplained_overlaps(trace: Trace) -> int:
    """Return how many host events don't nest in their thread, except where PyTorch's own frames cause it.

    With stacks, PyTorch records its functions that begin and end an annotation: the annotation begins within the
    one and outlasts it, and ends within the other.

        |- _record_function_enter_new -|
               |- ProfilerStep#2 ---------------------------------|
    """
    side = np.flatnonzero(call_tree(trace).lane > 0)
    if len(side) == 0:
        return 0
    is_frame = name_mask(trace.strings, is_profiler_frame)[trace.events.name]
    side = side[~is_frame[side]]
    frames = np.flatnonzero(is_frame)
    rows = np.concatenate((frames, side))
    begin, end = place_on_one_axis(trace.events.start[rows], event_ends(trace)[rows], trace.events.thread[rows])
    profiler_frames = merge(begin[: len(frames)], end[: len(frames)])
    starts = begin[len(frames) :]
    return int((covered_time(profiler_frames, starts, starts + 1) == 0).sum())
