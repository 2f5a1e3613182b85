"""What a rank did within windows of time: by the categories of the overview, operator, Python frame, kernel."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, role_intervals
from torch_tb_profiler.base.intervals import Intervals, covered_time, union
from torch_tb_profiler.base.markers import is_step, is_user_frame
from torch_tb_profiler.model.calls.calltree import build_call_tree
from torch_tb_profiler.model.calls.enclosing import running_slices
from torch_tb_profiler.model.communication.events import communication_calls, communication_kernels
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes, name_mask

_CHUNK = 4_000_000
"""How many overlaps of windows and events are handled at once; bounds the memory."""


def window_categories(trace: Trace, begins: Int64, finishes: Int64) -> Int64:
    """int64[k, 8] ns: each window by the categories of the overview, which sum to the window."""
    times = np.zeros((len(begins), len(CATEGORIES)), np.int64)
    counted = np.zeros(len(begins), np.int64)
    covering: list[Intervals] = []
    roles = role_intervals(trace)
    for i, category in enumerate(CATEGORIES[:-1]):
        covering = [union(*covering, roles[category])]
        reach = covered_time(covering[0], begins, finishes)
        times[:, i] = reach - counted
        counted = reach
    times[:, -1] = np.maximum(finishes - begins, 0) - counted
    return times


class Top(msgspec.Struct, frozen=True):
    """The names with the most time in each window, largest first: `codes` int32[k, width] into Trace.strings,
    NO_CODE where there are fewer; `times` int64[k, width] ns."""

    codes: Int32
    times: Int64


def top_host(trace: Trace, begins: Int64, finishes: Int64, width: int) -> Top:
    """Operators and annotations by self time, on all threads; steps and communication calls do not count."""
    rows = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    rows = rows[~name_mask(trace.strings, is_step)[trace.events.name[rows]]]
    return _innermost(trace, rows, ~communication_calls(trace), begins, finishes).top(width)


def top_frames(trace: Trace, begins: Int64, finishes: Int64, width: int) -> Top:
    """Python frames of the user's code, less what the frames of the user's code in them take; on all threads.

    Operators, and frames of libraries, count for the user's frame around them.
    """
    rows = rows_of_kind(trace, Kind.PYTHON)
    rows = rows[name_mask(trace.strings, is_user_frame)[trace.events.name[rows]]]
    return _innermost(trace, rows, np.ones(len(trace), np.bool_), begins, finishes).top(width)


def _innermost(trace: Trace, rows: Int32, counts: Bool, begins: Int64, finishes: Int64) -> _Sums:
    """The time of each of these slices in which no other of them runs inside it; `counts`, bool[n]: as it does."""
    forest = build_call_tree(trace, rows)
    rows = forest.rows[forest.lane[forest.rows] == 0]
    sums = _Sums(begins, finishes)
    for thread in distinct_codes(trace.events.thread[rows]):
        times, running = running_slices(trace, forest, rows[trace.events.thread[rows] == thread])
        if len(times):
            inside = running[1:-1]  # before the first and after the last nothing runs
            known = (inside >= 0) & counts[inside]
            names = trace.events.name[inside[known]]
            sums.add(times[:-1][known], times[1:][known], names)
    return sums


def top_kernels(trace: Trace, begins: Int64, finishes: Int64, width: int) -> Top:
    """Device work other than communication, by name; what runs on several streams at once counts for each."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    rows = rows[~communication_kernels(trace)[rows]]
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    sums = _Sums(begins, finishes)
    for stream in distinct_codes(trace.events.thread[rows]):
        own = rows[trace.events.thread[rows] == stream]
        sums.add(trace.events.start[own], event_ends(trace)[own], trace.events.name[own])
    return sums.top(width)


class _Sums:
    """Time by window and name."""

    def __init__(self, begins: Int64, finishes: Int64) -> None:
        self._begins, self._finishes = begins, finishes
        self._window: list[Int64] = []
        self._name: list[Int64] = []
        self._time: list[Int64] = []

    def add(self, starts: Int64, ends_: Int64, names: Int32) -> None:
        """Add intervals in order of start."""
        if len(starts) == 0:
            return
        reach = np.maximum.accumulate(ends_)
        low = np.searchsorted(reach, self._begins, "right")
        counts = np.maximum(np.searchsorted(starts, self._finishes, "left") - low, 0)
        total = np.cumsum(counts)
        first = 0
        while first < len(counts):
            done = int(total[first - 1]) if first else 0
            last = max(int(np.searchsorted(total, done + _CHUNK, "right")), first + 1)
            self._add(np.arange(first, last), low[first:last], counts[first:last], starts, ends_, names)
            first = last

    def _add(self, windows: Int64, low: Int64, counts: Int64, starts: Int64, ends_: Int64, names: Int32) -> None:
        window = np.repeat(windows, counts)
        at = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
        time = np.minimum(ends_[at], self._finishes[window]) - np.maximum(starts[at], self._begins[window])
        overlaps: Bool = time > 0
        self._merge(window[overlaps], names[at[overlaps]].astype(np.int64), time[overlaps])

    def _merge(self, window: Int64, name: Int64, time: Int64) -> None:
        """Add up the times that share window and name."""
        if len(time) == 0:
            return
        order = np.lexsort((name, window))
        window, name, time = window[order], name[order], time[order]
        new = np.append(True, (np.diff(window) != 0) | (np.diff(name) != 0))
        begin = np.flatnonzero(new)
        self._window.append(window[begin])
        self._name.append(name[begin])
        self._time.append(np.add.reduceat(time, begin))

    def top(self, width: int) -> Top:
        """The `width` largest sums of each window."""
        codes = np.full((len(self._begins), width), NO_CODE, np.int32)
        times = np.zeros((len(self._begins), width), np.int64)
        if self._time:
            parts = [np.concatenate(each) for each in (self._window, self._name, self._time)]
            self._window, self._name, self._time = [], [], []
            self._merge(*parts)
            window, name, time = self._window[0], self._name[0], self._time[0]
            order = np.lexsort((name, -time, window))
            window, name, time = window[order], name[order], time[order]
            place = np.arange(len(window)) - np.searchsorted(window, window, "left")
            kept = place < width
            codes[window[kept], place[kept]] = name[kept]
            times[window[kept], place[kept]] = time[kept]
        return Top(codes, times)
