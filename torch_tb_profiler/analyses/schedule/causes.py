"""Why a device is idle: the causes, and which of them a host thread stands for at every instant.

enumerate(DataLoader) --------------|
   aten::stack -----|                     innermost slice: aten::stack; cause: data loading
                              late --|    data loading and compilation also count where they don't nest
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct_numbers, search_sorted, sums_by_number
from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals, union
from torch_tb_profiler.base.markers import STEP_PREFIX, is_data_loading
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.base.patterns import Words
from torch_tb_profiler.model.calls.calltree import call_tree, running_slices, stack_of_thread
from torch_tb_profiler.model.communication.events import is_communication_call
from torch_tb_profiler.model.kinds import (
    HOST_KINDS,
    Kind,
    event_intervals,
    event_kinds,
    events_of_kind,
    rows_of_kind,
)
from torch_tb_profiler.model.schedule.compiled import schedule_functions
from torch_tb_profiler.model.schedule.compiled_threads import ThreadSlices, thread_functions
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64, Trace, distinct_codes, name_mask


class Cause(IntEnum):
    """Why a device has nothing to run. Up to UNRECORDED: the host has not submitted the next work yet."""

    DATA_LOADING = 0
    COMPILE = 1
    SYNC = 2
    ALLOCATOR = 3
    COPY_STAGING = 4
    LAUNCH_CALL = 5
    RUNTIME = 6
    HOST_COMMUNICATION = 7
    WAIT = 8
    PROFILER = 9
    OPERATOR = 10
    PYTHON = 11
    ANNOTATION = 12
    UNRECORDED = 13
    LAUNCH_LATENCY = 14
    KERNEL_GAP = 15
    GRAPH_GAP = 16
    WAITS_FOR_STREAM = 17
    DEVICE_WAIT = 18
    UNLINKED = 19
    BEFORE_RECORDING = 20
    TAIL = 21


CAUSE_NAMES = tuple(cause.name.lower() for cause in Cause)
"""The names of the causes in payloads, indexed by Cause."""

UNSPECIFIC_CAUSES = (Cause.UNRECORDED, Cause.PYTHON, Cause.ANNOTATION)
"""Causes that a thread may show while it waits for another thread, whose operator or call then counts instead."""

LAUNCH_BOUND_CAUSES = (
    Cause.LAUNCH_CALL, Cause.RUNTIME, Cause.OPERATOR, Cause.PYTHON, Cause.ANNOTATION, Cause.UNRECORDED,
)  # fmt: skip
"""A trace is launch-bound if most idle time has one of these causes and no call drained the queue before it."""

_ENCLOSING_CAUSES = (Cause.HOST_COMMUNICATION, Cause.COMPILE, Cause.DATA_LOADING)
"""Causes that hold for everything inside their slices; a later one overrides an earlier one."""

_CALLS_IN_COMMUNICATION = (Cause.SYNC, Cause.LAUNCH_CALL, Cause.COPY_STAGING, Cause.ALLOCATOR)
"""Calls that keep their own cause inside host communication."""

_NameRule: TypeAlias = tuple[Cause, Callable[[str], object]]
"""A cause, and of which names it is that."""

_MEMORY_CALLS = "Malloc Free HostAlloc MemAlloc HostRegister HostUnregister MemCreate MemMap MemUnmap MemRelease"
# What runtime and driver calls of all vendors do; the first rule that is true of a name decides.
_CALL_RULES: tuple[_NameRule, ...] = (
    (
        Cause.SYNC,
        Words("Synchronize synchronizeStream EventsWait QueueFinish", ("eventWait", r"eventWait$")).search,
    ),
    (
        Cause.COMPILE,
        Words(
            "ModuleLoad ModuleUnload LibraryLoad GetFuncBySymbol ModuleGetFunction FuncGetAttributes",
            ("Lazy Function", "Lazy Function"),
        ).search,
    ),
    (
        Cause.ALLOCATOR,
        Words("", *((word, rf"^(?:cuda|hip|cu|ze|ur|urUSM)\w*{word}") for word in _MEMORY_CALLS.split())).search,
    ),
    (Cause.COPY_STAGING, Words("Memcpy memcpy").search),
    (Cause.LAUNCH_CALL, Words("Launch Memset enqueueCommand submit").search),
)

_COMPILES: _NameRule = (
    Cause.COMPILE,
    Words("_compile.compile compile_fx torch/_dynamo/convert_frame CachingAutotuner").search,
)
_WAITS: _NameRule = (
    Cause.WAIT,
    Words(
        "_thread.lock _thread.RLock multiprocessing/connection.py multiprocessing/queues.py",
        ("built-in ", r"built-in (?:function|method) (?:sleep|select|poll|acquire|wait)\b"),
        ("threading.py(", r"threading\.py\(\d+\): (?:wait|join|acquire)"),
        ("queue.py(", r"queue\.py\(\d+\): get"),
        ("selectors.py(", r"selectors\.py\(\d+\): select"),
    ).search,
)


class ThreadStates(msgspec.Struct, frozen=True):
    """The states of one thread over time: state i holds between times[i - 1] and times[i].

    times  int64[k]      ascending, may repeat
    row    int32[k + 1]  innermost slice, NO_CODE for none
    cause  int8[k + 1]   a Cause
    """

    times: Int64
    row: Int32
    cause: Int8


_UNKNOWN_STATES = ThreadStates(
    np.empty(0, np.int64), np.array([NO_CODE], np.int32), np.array([Cause.UNRECORDED], np.int8)
)
"""The states of no thread: one, in which nothing is recorded."""

_WINDOWS_AT_ONCE = 1 << 7
"""Windows that are cut at once for a sum, which bounds the memory."""


class StateIntervals(msgspec.Struct, frozen=True):
    """Parts of windows in which a thread has one state; columns of equal length. `window`: index of the window."""

    window: Int64
    begin: Int64
    end: Int64
    row: Int32
    cause: Int8


@stored
def slice_causes(trace: Trace) -> Int8:
    """Return the cause of each host slice, for the time outside its inner slices: int8[n], -1 for other events.

    The annotation of a step says nothing of what the host does: in it alone, nothing is recorded.
    """
    kind = event_kinds(trace)
    cause = _cause_of_kinds().take(kind)
    functions, calls = events_of_kind(trace, Kind.PYTHON), events_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    marks = events_of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    _set_by_name(trace, cause, calls, _CALL_RULES)
    _set_by_name(trace, cause, functions, [_COMPILES, _WAITS])
    begins_step: _NameRule = Cause.UNRECORDED, lambda text: text.startswith(STEP_PREFIX)
    _set_by_name(trace, cause, marks, [(Cause.DATA_LOADING, is_data_loading), begins_step, _COMPILES])
    communicates = np.flatnonzero(is_communication_call(trace))
    names = trace.events.name.take(communicates)
    loads = name_mask(trace.strings, is_data_loading, names).take(names)
    cause[communicates[~loads]] = Cause.HOST_COMMUNICATION
    return cause


def _cause_of_kinds() -> Int8:
    """Return the cause of slices whose name says nothing, by Kind; -1 for those that are none of the host's."""
    table = np.full(len(Kind), -1, np.int8)
    table[[Kind.ANNOTATION, Kind.CPU_OP, Kind.PYTHON]] = Cause.ANNOTATION, Cause.OPERATOR, Cause.PYTHON
    table[[Kind.RUNTIME, Kind.DRIVER]] = Cause.RUNTIME
    return table


def compiling_times(trace: Trace, thread: int) -> Intervals:
    """Return when a thread of the host compiles code."""
    rows = np.flatnonzero(slice_causes(trace) == Cause.COMPILE).astype(np.int32)
    return event_intervals(trace, rows[trace.events.thread.take(rows) == thread])


def _set_by_name(trace: Trace, cause: Int8, rows: Int32, rules: Sequence[_NameRule]) -> None:
    """Set the cause of those of these rows whose name a rule is true of; the first such rule decides."""
    names = trace.events.name.take(rows)
    by_name = np.full(len(trace.strings) + 1, -1, np.int8)  # the last cell is that of NO_CODE
    for code in distinct_codes(names):
        text = trace.strings[code]
        by_name[code] = next((each for each, is_true_of in rules if is_true_of(text)), -1)
    if (by_name >= 0).any():
        found = by_name.take(names)
        named = np.flatnonzero(found >= 0)
        cause[rows.take(named)] = found.take(named)


@stored
def thread_states(trace: Trace, thread: int) -> ThreadStates:
    """Return the states of a thread, on the host's clock."""
    tree = call_tree(trace)
    stack, side = stack_of_thread(trace, tree, thread), tree.rows[len(tree.stacks) :]
    times, row = running_slices(trace, tree, stack)
    slices = np.append(stack, side[trace.events.thread[side] == thread])
    causes = slice_causes(trace).take(slices)
    overlays = [(cause, event_intervals(trace, slices[causes == cause])) for cause in _ENCLOSING_CAUSES]
    overlays.append((Cause.PROFILER, _profiler_overhead(trace, thread)))
    edges = np.sort(np.concatenate([np.concatenate(inside) for _, inside in overlays]), kind="stable")
    if functions := thread_functions():
        kept = {Cause.HOST_COMMUNICATION: _CALLS_IN_COMMUNICATION}
        within = [(cause, *inside, kept.get(cause, ())) for cause, inside in overlays if len(inside.starts)]
        slices_in_c = ThreadSlices(times, row, edges, slice_causes(trace), within, Cause.UNRECORDED)
        return ThreadStates(*functions.states(slices_in_c))
    at = search_sorted(times, edges, "left")
    times, row = np.insert(times, at, edges), np.insert(row, at, row[at])
    cause = np.append(slice_causes(trace), np.int8(Cause.UNRECORDED)).take(row)
    for overlay_cause, inside in overlays:
        if len(inside.starts) == 0:
            continue
        covered = np.append(_lies_within(inside, times), False)
        if overlay_cause == Cause.HOST_COMMUNICATION:
            keeps_cause = np.zeros(len(Cause), np.bool_)
            keeps_cause[list(_CALLS_IN_COMMUNICATION)] = True
            covered &= ~keeps_cause.take(cause)
        cause[covered] = overlay_cause
    return ThreadStates(times, row, cause)


def unrecorded_host_times(trace: Trace, min_ns: int) -> Intervals:
    """Return the times of over `min_ns` in which nothing is recorded on any of the threads that launch work."""
    found = NO_INTERVALS
    for thread in distinct_numbers(device_items(trace).thread):
        if thread == NO_CODE:
            continue
        states = thread_states(trace, thread)
        begin, end = states.times[:-1], states.times[1:]
        mine = (states.cause[1:-1] == Cause.UNRECORDED) & (end - begin > min_ns)
        found = union(found, Intervals(begin[mine], end[mine]))
    return found


def split_by_state(trace: Trace, thread: Int32, begin: Int64, end: Int64) -> StateIntervals:
    """Split windows on threads (NO_CODE: on no thread) where the thread's state changes."""
    parts = [_split(*windows) for windows in _windows_by_thread(trace, thread, begin, end)]
    if len(parts) == 1:
        return StateIntervals(*parts[0])
    if not parts:
        none = np.empty(0, np.int64)
        return StateIntervals(none, none, none, none.astype(np.int32), none.astype(np.int8))
    return StateIntervals(*map(np.concatenate, zip(*parts, strict=True)))


def add_times_by_cause(trace: Trace, thread: Int32, begin: Int64, end: Int64, number: Int64, sums: Int64) -> None:
    """Add to `sums`, int64[numbers, causes], how long each cause holds in windows on threads, by their number."""
    functions = schedule_functions()
    for windows, states in _windows_by_thread(trace, thread, begin, end):
        if functions is not None:
            numbered = windows._replace(number=number[windows.number])
            functions.tally(*numbered, states.times, states.cause, sums)
            continue
        for first in range(0, len(windows.number), _WINDOWS_AT_ONCE):
            some = _Windows(*(each[first : first + _WINDOWS_AT_ONCE] for each in windows))
            parts = StateIntervals(*_split(some, states))
            place = number[parts.window] * sums.shape[1] + parts.cause
            sums += sums_by_number(place, parts.end - parts.begin, sums.size).reshape(sums.shape)


class _Windows(NamedTuple):
    """Windows [low, high) of one thread, none of them empty; the first and the last of its states in each."""

    number: Int64
    low: Int64
    high: Int64
    first: Int64
    last: Int64


def _windows_by_thread(
    trace: Trace, thread: Int32, begin: Int64, end: Int64
) -> Iterator[tuple[_Windows, ThreadStates]]:
    """Yield the windows of each thread, and its states."""
    for code in distinct_numbers(thread[end > begin]):
        mine = np.flatnonzero((thread == code) & (end > begin))
        low, high = begin[mine], end[mine]
        states = _UNKNOWN_STATES if code == NO_CODE else thread_states(trace, code)
        first, last = search_sorted(states.times, low, "right"), search_sorted(states.times, high, "left")
        yield _Windows(mine, low, high, first, last), states


def _split(windows: _Windows, states: ThreadStates) -> tuple[Int64, Int64, Int64, Int32, Int8]:
    """Return (window, begin, end, row, cause) of the parts of windows."""
    functions = schedule_functions()
    if functions is not None:
        return functions.split(*windows, states.times, states.row, states.cause)
    number, low, high, first, last = windows
    counts = last - first + 1
    window = np.repeat(np.arange(len(number)), counts)
    state = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + first[window]
    # The first part of a window begins with it, and the last one ends with it.
    starts, finish = low[window], high[window]
    later, sooner = state > first[window], state < last[window]
    starts[later] = states.times[state[later] - 1]
    finish[sooner] = states.times[state[sooner]]
    nonempty = finish > starts
    state = state[nonempty]
    return number[window[nonempty]], starts[nonempty], finish[nonempty], states.row[state], states.cause[state]


def _profiler_overhead(trace: Trace, thread: int) -> Intervals:
    """Return the profiler's overhead recorded on this thread, or on a thread without host events."""
    rows = rows_of_kind(trace, Kind.OVERHEAD)
    threads = trace.events.thread[rows]
    if len(rows) == 0:
        return NO_INTERVALS
    host_threads = distinct_codes(trace.events.thread[rows_of_kind(trace, *HOST_KINDS)])
    rows = rows[(threads == thread) | ~np.isin(threads, host_threads)]
    return union(event_intervals(trace, rows))


def _lies_within(inside: Intervals, times: Int64) -> Bool:
    """Return whether the state that ends at each time lies in `inside`, whose borders are among `times`."""
    # A set begins with the state after the one that ends at its start; each start and each end is another time.
    change = np.zeros(len(times) + 1, np.int8)
    change[np.searchsorted(times, inside.starts, "left") + 1] += 1
    change[np.searchsorted(times, inside.ends, "right")] -= 1
    within: Bool = np.cumsum(change[:-1], dtype=np.int8) > 0
    within[1:] &= times[1:] > times[:-1]
    return within
