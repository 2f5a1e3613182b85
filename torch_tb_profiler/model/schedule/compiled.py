"""Functions in C that a session may load for the loops of a schedule: the same results, many times as fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from torch_tb_profiler.model.trace import Bool, Int8, Int32, Int64

if TYPE_CHECKING:
    from torch_tb_profiler.model.schedule.schedule import Schedule

GapParts: TypeAlias = tuple[Int64, Int64, Int64, Int32, Int8]
"""Columns gap, begin, end, row, and cause of parts of gaps."""


class IdleGaps(NamedTuple):
    """Gaps of a device that ascend and don't overlap (k gaps, t threads), and what each waits for.

    begin, late  int64[k]  until `late` it waits for a thread, on the host's clock, which is `shift` ahead
    thread       int32[k]  which one, NO_CODE for none
    partner      int32[t]  the thread that each waits for where its cause is `unspecific`, NO_CODE for none
    states       (times, row, cause) of each thread as in `causes.ThreadStates`, None if it isn't needed
    parts        (gap, begin, end, row, cause) of what waits for other streams, and for devices
    borders      int64  where steps begin
    unspecific   causes; `unrecorded` is that of a state in which nothing is recorded
    """

    begin: Int64
    late: Int64
    shift: int
    thread: Int32
    partner: Int32
    states: Sequence[tuple[Int64, Int32, Int8] | None]
    parts: tuple[GapParts, GapParts]
    borders: Int64
    unspecific: tuple[int, ...]
    unrecorded: int


class ThreadTimes(NamedTuple):
    """Times of threads; those of one ascend.

    chain   int32[threads]   which times a thread has, NO_CODE for none
    times   int64[k]
    bounds  int64[c + 1]     chain i has times[bounds[i]:bounds[i + 1]]
    """

    chain: Int32
    times: Int64
    bounds: Int64


class ScheduleFunctions(msgspec.Struct, frozen=True):
    """Functions in C with the results of those in Python.

    plan    `replay.computation_order`: graph -> its runs, (chain, low, high) each, where the chains are the
            threads and then the streams; None if nodes wait for each other
    replay  `replay.replay`: (graph, runs, steps, durations, removed edges or None) -> (points, ends)
    latest  `slack`: (graph, runs, latest time of each point, latest end of each item), which it lowers in place
    split   `causes.split_by_state`: (number, begin, end, first state, last state of each window; times, row and
            cause of the states) -> (window, begin, end, row, cause) of each part
    tally   `causes.add_times_by_cause`: (number, begin, end, first state, last state of each window; times and
            cause of the states; sums), to which it adds, in the row of each number, how long each cause holds
    idle    `segments.idle_segments`: gaps -> (begin, end, row, gap, step, cause) of each piece, by begin
    during  `what_if.host_time_targets`: (times of points that ascend; starts, ends and numbers of intervals;
            sums), to which it adds, in the row of each number, what lies between each point and the one before
    cover   `what_if.covered_between`: (rows of slices; start, duration and thread of all events; times) -> what
            the slices cover between each time and the one before, None if they don't ascend by start
    """

    plan: Callable[[Schedule], Int64 | None]
    replay: Callable[[Schedule, Int64, Int64, Int64, Bool | None], tuple[Int64, Int64]]
    latest: Callable[[Schedule, Int64, Int64, Int64], None]
    split: Callable[
        [Int64, Int64, Int64, Int64, Int64, Int64, Int32, Int8], tuple[Int64, Int64, Int64, Int32, Int8]
    ]
    tally: Callable[[Int64, Int64, Int64, Int64, Int64, Int64, Int8, Int64], None]
    idle: Callable[[IdleGaps], tuple[Int64, Int64, Int32, Int32, Int32, Int8]]
    during: Callable[[Int64, Int64, Int64, Int32, Int64], None]
    cover: Callable[[Int32, Int64, Int64, Int32, ThreadTimes], Int64 | None]


_functions: ScheduleFunctions | None = None


def use_schedule_functions(functions: ScheduleFunctions | None) -> None:
    """Use these functions from now on, or those in Python if None."""
    global _functions
    _functions = functions


def schedule_functions() -> ScheduleFunctions | None:
    """Return the functions in C that are in use, or None."""
    return _functions
