"""Where the main thread waits for another one, as the backward pass waits for autograd's thread.

    forward -|                      |- optimizer     main thread: begins and ends nothing in between
              ^ m0                  ^ m1
               |- backward ------|                   the other thread: a burst of root slices [s0, e0)
               ^ s0              ^ e0

The burst starts because the main thread came to m0; the main thread goes on because the burst came to its end, if
it fills at least half of [m0, m1).
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import ends
from torch_tb_profiler.model.schedule.items import items
from torch_tb_profiler.model.schedule.threads import main_thread
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace, derived, distinct

_LEAST_SHARE = 0.5


class HandOffs(msgspec.Struct, frozen=True):
    """One thread goes on because another came to a point. Columns of length h; times in ns.

    source, target            int32  threads
    source_time, target_time  int64  source_time < target_time; the target does nothing for this
    held_since                int64  since when the target waits, ABSENT where it had no more to do
    """

    source: Int32
    target: Int32
    source_time: Int64
    target_time: Int64
    held_since: Int64


@derived
def handoffs(trace: Trace) -> HandOffs:
    """Hand-offs between the main thread and each thread that launches or runs autograd tasks."""
    main, tree = main_thread(trace), call_tree(trace)
    rows = tree.rows[tree.lane[tree.rows] == 0]
    thread = trace.events.thread[rows]
    of_main = rows[thread == main]
    marks = np.concatenate([trace.events.start[of_main], ends(trace)[of_main]])
    marks.sort(kind="stable")
    roots = rows[tree.depth[rows] == 0]
    tasks = trace.events.thread[backward_tasks(trace).rows]
    others = distinct(np.concatenate([items(trace).thread, tasks])) if len(marks) else []
    of_thread = trace.events.thread[roots]
    parts = [_between(trace, main, marks, code, roots[of_thread == code]) for code in others if code != main]
    if not parts:
        no_thread, no_time = np.empty(0, np.int32), np.empty(0, np.int64)
        return HandOffs(no_thread, no_thread, no_time, no_time, no_time)
    columns = zip(*map(msgspec.structs.astuple, parts), strict=True)
    return HandOffs(*map(np.concatenate, columns))


def _between(trace: Trace, main: int, marks: Int64, other: int, roots: Int32) -> HandOffs:
    start, finish = trace.events.start[roots], ends(trace)[roots]
    order = np.argsort(start, kind="stable")
    start, finish = start[order], finish[order]
    between = np.searchsorted(marks, start, "right")
    first = np.flatnonzero(np.append(True, between[1:] != between[:-1])) if len(start) else np.empty(0, np.int64)
    begin, end, between = start[first], finish[first], between[first]
    if len(first):
        end = np.maximum.reduceat(finish, first)
    before = np.append(ABSENT, np.maximum.accumulate(end)[:-1]) if len(first) else end
    inside = (between > 0) & (between < len(marks))
    left = marks[np.maximum(between - 1, 0)]
    back = marks[np.minimum(between, len(marks) - 1)]
    to = (between > 0) & (before <= left) & (left < begin)
    returns = inside & (end < back) & (end - begin >= _LEAST_SHARE * (back - left))
    counts = int(to.sum()), int(returns.sum())

    def codes(of_to: int, of_back: int) -> Int32:
        return np.repeat(np.array([of_to, of_back], np.int32), counts)

    return HandOffs(
        source=codes(main, other),
        target=codes(other, main),
        source_time=np.append(left[to], end[returns]),
        target_time=np.append(begin[to], back[returns]),
        held_since=np.append(np.full(counts[0], ABSENT), left[returns]),
    )
