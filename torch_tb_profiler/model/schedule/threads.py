"""Host threads: which one runs the training loop, and where it and others wait for each other.

The backward pass is the usual case: the main thread waits for autograd's thread.

    forward -|                      |- optimizer     main thread: begins and ends nothing in between
              ^ m0                  ^ m1
               |- backward ------|                   the other thread: a burst of root slices [s0, e0)
               ^ s0              ^ e0

The burst starts because the main thread reached m0. The main thread goes on because the burst ended, if the burst
fills at least half of [m0, m1).
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import CallTree, call_tree, stack_of_thread
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import Kind, event_spans, rows_of_kind, step_marks
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace, distinct_codes

_MIN_BURST_SHARE = 0.5
"""Smallest share of the main thread's pause that a burst must fill to be what it waits for."""


@stored
def main_thread(trace: Trace) -> int:
    """Return the code of the thread of the steps, or NO_CODE if the host was not recorded.

    Without steps it is the thread that launches most among those without autograd tasks, then the one that
    launches most, then the one with most operators.
    """
    events = trace.events
    markers = step_marks(trace)
    if len(markers):
        return _most_common(events.thread[markers])
    calls = device_launches(trace)[1]
    launching = events.thread[calls[calls >= 0]]
    without_tasks = launching[~np.isin(launching, events.thread[backward_tasks(trace).rows])]
    operators = events.thread[rows_of_kind(trace, Kind.CPU_OP)]
    for threads in (without_tasks, launching, operators):
        if len(threads):
            return _most_common(threads)
    return NO_CODE


def _most_common(threads: Int32) -> int:
    return int(np.argmax(np.bincount(threads)))


class HandOffs(msgspec.Struct, frozen=True):
    """Points where one thread goes on because another reached a point. Columns of length h; times in ns.

    source, target            int32  threads
    source_time, target_time  int64  source_time < target_time; the target does nothing in between
    waiting_since             int64  since when the target waits, ABSENT where it had nothing left to do
    """

    source: Int32
    target: Int32
    source_time: Int64
    target_time: Int64
    waiting_since: Int64


@stored
def handoffs(trace: Trace) -> HandOffs:
    """Return the hand-offs between the main thread and each thread that launches or runs autograd tasks."""
    main, tree = main_thread(trace), call_tree(trace)
    main_times = np.concatenate(event_spans(trace, stack_of_thread(trace, tree, main)))
    main_times.sort(kind="stable")
    tasks = trace.events.thread[backward_tasks(trace).rows]
    others = distinct_codes(np.concatenate([device_items(trace).thread, tasks])) if len(main_times) else []
    parts = [
        _find_handoffs_with(trace, main, main_times, code, _find_roots_of_thread(trace, tree, code))
        for code in others
        if code != main
    ]
    if not parts:
        no_thread, no_time = np.empty(0, np.int32), np.empty(0, np.int64)
        return HandOffs(no_thread, no_thread, no_time, no_time, no_time)
    columns = zip(*map(msgspec.structs.astuple, parts), strict=True)
    return HandOffs(*map(np.concatenate, columns))


def _find_roots_of_thread(trace: Trace, tree: CallTree, thread: int) -> Int32:
    """Return the rows of a thread's stack that lie in no other slice."""
    rows = stack_of_thread(trace, tree, thread)
    roots: Int32 = rows[tree.depth.take(rows) == 0]
    return roots


def _find_handoffs_with(trace: Trace, main: int, main_times: Int64, other: int, roots: Int32) -> HandOffs:
    start, finish = event_spans(trace, roots)
    order = np.argsort(start, kind="stable")
    start, finish = start[order], finish[order]
    # Roots that begin between the same two times of the main thread are one burst.
    pause = search_sorted(main_times, start, "right")
    first = np.flatnonzero(np.append(True, pause[1:] != pause[:-1])) if len(start) else np.empty(0, np.int64)
    begin, end, pause = start[first], finish[first], pause[first]
    if len(first):
        end = np.maximum.reduceat(finish, first)
    earlier_end = np.append(ABSENT, np.maximum.accumulate(end)[:-1]) if len(first) else end
    inside = (pause > 0) & (pause < len(main_times))
    left = main_times[np.maximum(pause - 1, 0)]
    back = main_times[np.minimum(pause, len(main_times) - 1)]
    # Rounded clocks may let a burst begin or end at the very time of the call around it.
    before = search_sorted(main_times, begin, "left")
    started = main_times[np.maximum(before - 1, 0)]
    starts_burst = (before > 0) & (earlier_end <= started)
    after = search_sorted(main_times, end, "right")
    resumed = main_times[np.minimum(after, len(main_times) - 1)]
    ends_pause = inside & (end <= back) & (after < len(main_times))
    ends_pause &= end - begin >= _MIN_BURST_SHARE * (back - left)
    counts = int(starts_burst.sum()), int(ends_pause.sum())

    def codes(of_starts: int, of_ends: int) -> Int32:
        return np.repeat(np.array([of_starts, of_ends], np.int32), counts)

    return HandOffs(
        source=codes(main, other),
        target=codes(other, main),
        source_time=np.append(started[starts_burst], end[ends_pause]),
        target_time=np.append(begin[starts_burst], resumed[ends_pause]),
        waiting_since=np.append(np.full(counts[0], ABSENT), left[ends_pause]),
    )
