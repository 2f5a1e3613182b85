"""What a rank did in the window before each of its communication operations.

These details are several times larger than the summary of a rank, so they are cached separately and read on
demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.operations import operation_windows
from torch_tb_profiler.analyses.distributed.rank_summary import StringTable, short_names_of
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, role_intervals
from torch_tb_profiler.base.intervals import Intervals, covered_time, union
from torch_tb_profiler.base.markers import is_step, is_user_frame
from torch_tb_profiler.model.calls.calltree import CallTree, build_call_tree, running_slices
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.communication.events import is_communication_call, is_communication_kernel
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes, name_mask

NAMES_PER_WINDOW = 5
"""Number of operators, of Python frames, and of kernels listed per window."""

_OVERLAPS_PER_CHUNK = 4_000_000
"""Number of overlaps of windows and events computed at once, which bounds the memory."""

OPERATION_DETAIL = np.dtype(
    [
        ("event", "<i4"), ("call", "<i4"), ("categories", "<i8", (len(CATEGORIES),)),
        ("host", "<i4", (NAMES_PER_WINDOW,)), ("host_ns", "<i8", (NAMES_PER_WINDOW,)),
        ("frames", "<i4", (NAMES_PER_WINDOW,)), ("frame_ns", "<i8", (NAMES_PER_WINDOW,)),
        ("kernels", "<i4", (NAMES_PER_WINDOW,)), ("kernel_ns", "<i8", (NAMES_PER_WINDOW,)),
    ]
)  # fmt: skip
"""Details of one operation:

event, call  rows of the rank's trace, as in `model.communication.collectives.Collectives`
categories, host, host_ns, frames, frame_ns, kernels, kernel_ns  what the rank did in the operation's window; names
             are codes
"""


class RankDetails(msgspec.Struct, frozen=True):
    """Details of one rank's operations, in the order of its summary.

    names        texts of the name codes in `operations`
    short_names  kernel name -> short name, which no other kernel of the rank has
    operations   memory of an array of OPERATION_DETAIL
    """

    names: tuple[str, ...]
    short_names: Mapping[str, str]
    operations: Annotated[memoryview, OPERATION_DETAIL]

    def table(self) -> npt.NDArray[np.void]:
        """Return the operations as a structured array (read-only)."""
        return np.frombuffer(self.operations, OPERATION_DETAIL)


def rank_details(trace: Trace) -> RankDetails:
    """Return the details of every operation; operations without a time have no window, and so none."""
    operations = collectives(trace)
    table = np.zeros(len(operations), OPERATION_DETAIL)
    table["event"], table["call"] = operations.event, operations.call
    rows, *windows = operation_windows(operations, steps(trace))
    table["categories"][rows] = _sum_category_times(trace, *windows)
    names = StringTable()
    tops = (
        ("host", "host_ns", _find_top_host_names(trace, *windows)),
        ("frames", "frame_ns", _find_top_frames(trace, *windows)),
        ("kernels", "kernel_ns", _find_top_kernels(trace, *windows)),
    )
    for name, times, top in tops:
        table[name] = NO_CODE
        table[name][rows] = names.add(trace, top.codes)
        table[times][rows] = top.times
    texts = tuple(names.texts)
    return RankDetails(texts, short_names_of(trace, texts), memoryview(table.tobytes()))


def _sum_category_times(trace: Trace, starts: Int64, stops: Int64) -> Int64:
    """Return int64[k, 8], the ns of each window by category of the overview; they sum to the window."""
    times = np.zeros((len(starts), len(CATEGORIES)), np.int64)
    assigned = np.zeros(len(starts), np.int64)
    covering: list[Intervals] = []
    roles = role_intervals(trace)
    for i, category in enumerate(CATEGORIES[:-1]):
        covering = [union(*covering, roles[category])]
        reach = covered_time(covering[0], starts, stops)
        times[:, i] = reach - assigned
        assigned = reach
    times[:, -1] = np.maximum(stops - starts, 0) - assigned
    return times


class _TopNames(msgspec.Struct, frozen=True):
    """The names with the most time in each window, largest first.

    codes  int32[k, NAMES_PER_WINDOW] into Trace.strings, NO_CODE where there are fewer names
    times  int64[k, NAMES_PER_WINDOW] ns
    """

    codes: Int32
    times: Int64


def _find_top_host_names(trace: Trace, starts: Int64, stops: Int64) -> _TopNames:
    """Return operators and annotations by self time on all threads, without steps and communication calls."""
    rows = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    rows = rows[~name_mask(trace.strings, is_step)[trace.events.name[rows]]]
    return _sum_self_times(trace, rows, ~is_communication_call(trace), starts, stops).top()


def _find_top_frames(trace: Trace, starts: Int64, stops: Int64) -> _TopNames:
    """Return Python frames of user code on all threads, less the time of the user frames that they call.

    Operators and library frames count for the user frame around them.
    """
    rows = rows_of_kind(trace, Kind.PYTHON)
    rows = rows[name_mask(trace.strings, is_user_frame)[trace.events.name[rows]]]
    return _sum_self_times(trace, rows, np.ones(len(trace), np.bool_), starts, stops).top()


def _find_top_kernels(trace: Trace, starts: Int64, stops: Int64) -> _TopNames:
    """Return device work without communication by name; concurrent work on several streams counts for each."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    rows = rows[~is_communication_kernel(trace)[rows]]
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    sums = _WindowNameSums(starts, stops)
    for stream in distinct_codes(trace.events.thread[rows]):
        on_stream = rows[trace.events.thread[rows] == stream]
        sums.add(trace.events.start[on_stream], event_ends(trace)[on_stream], trace.events.name[on_stream])
    return sums.top()


def _sum_self_times(trace: Trace, rows: Int32, included: Bool, starts: Int64, stops: Int64) -> _WindowNameSums:
    """Sum self time by window and name over the slices in `rows`, of those with `included` (bool[n])."""
    forest = build_call_tree(trace, rows)
    sums = _WindowNameSums(starts, stops)
    for thread in distinct_codes(trace.events.thread[forest.rows]):
        on_thread = forest.rows[trace.events.thread[forest.rows] == thread]
        times, running = _find_latest_running(trace, forest, on_thread)
        if len(times):
            inside = running[1:-1]  # before the first and after the last change nothing runs
            known = (inside >= 0) & included[inside]
            sums.add(times[:-1][known], times[1:][known], trace.events.name[inside[known]])
    return sums


def _find_latest_running(trace: Trace, forest: CallTree, rows: Int32) -> tuple[Int64, Int32]:
    """Return `running_slices` of a thread with all of its lanes: what began last runs.

    Clocks are read one after the other, so that a call may seem to begin before the one before it ends.
    """
    lane = forest.lane[rows]
    parts = [running_slices(trace, forest, rows[lane == each]) for each in distinct_codes(lane)]
    while len(parts) > 1:  # in pairs, so that many lanes don't take time by the square of their number
        pairs = [_merge_running(trace, *pair) for pair in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _merge_running(trace: Trace, one: tuple[Int64, Int32], other: tuple[Int64, Int32]) -> tuple[Int64, Int32]:
    """Return what runs of two lanes: where both do, the slice that began last."""
    times = np.union1d(one[0], other[0])
    first, second = (running[np.append(0, np.searchsorted(at, times, "right"))] for at, running in (one, other))
    last_start = [np.where(row >= 0, trace.events.start[row], np.iinfo(np.int64).min) for row in (first, second)]
    return times, np.where(last_start[1] > last_start[0], second, first)


class _WindowNameSums:
    """Sums of time by window and name."""

    def __init__(self, starts: Int64, stops: Int64) -> None:
        self._starts, self._stops = starts, stops
        self._window: list[Int64] = []
        self._name: list[Int64] = []
        self._time: list[Int64] = []

    def add(self, starts: Int64, stops: Int64, names: Int32) -> None:
        """Add named intervals in order of start."""
        if len(starts) == 0:
            return
        reach = np.maximum.accumulate(stops)
        low = np.searchsorted(reach, self._starts, "right")
        counts = np.maximum(np.searchsorted(starts, self._stops, "left") - low, 0)
        total = np.cumsum(counts)
        first = 0
        while first < len(counts):
            done = int(total[first - 1]) if first else 0
            last = max(int(np.searchsorted(total, done + _OVERLAPS_PER_CHUNK, "right")), first + 1)
            self._add_chunk(np.arange(first, last), low[first:last], counts[first:last], starts, stops, names)
            first = last

    def _add_chunk(
        self, windows: Int64, low: Int64, counts: Int64, starts: Int64, stops: Int64, names: Int32
    ) -> None:
        window = np.repeat(windows, counts)
        index = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
        time = np.minimum(stops[index], self._stops[window]) - np.maximum(starts[index], self._starts[window])
        overlaps: Bool = time > 0
        self._merge(window[overlaps], names[index[overlaps]].astype(np.int64), time[overlaps])

    def _merge(self, window: Int64, name: Int64, time: Int64) -> None:
        """Sum the times that share window and name."""
        if len(time) == 0:
            return
        names = int(name.max()) + 2  # a damaged event has none: NO_CODE, which is -1
        key = window * names + name + 1
        order = np.argsort(key, kind="stable")
        key, time = key[order], time[order]
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        self._window.append(key[first] // names)
        self._name.append(key[first] % names - 1)
        self._time.append(np.add.reduceat(time, first))

    def top(self) -> _TopNames:
        """Return the NAMES_PER_WINDOW largest sums of each window."""
        shape = len(self._starts), NAMES_PER_WINDOW
        codes, times = np.full(shape, NO_CODE, np.int32), np.zeros(shape, np.int64)
        if self._time:
            parts = [np.concatenate(column) for column in (self._window, self._name, self._time)]
            self._window, self._name, self._time = [], [], []
            self._merge(*parts)
            window, name, time = self._window[0], self._name[0], self._time[0]
            order = np.lexsort((name, -time, window))
            window, name, time = window[order], name[order], time[order]
            place = np.arange(len(window)) - np.searchsorted(window, window, "left")
            in_top = place < NAMES_PER_WINDOW
            codes[window[in_top], place[in_top]] = name[in_top]
            times[window[in_top], place[in_top]] = time[in_top]
        return _TopNames(codes, times)
