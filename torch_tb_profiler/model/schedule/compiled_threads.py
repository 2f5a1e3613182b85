"""Functions in C that a session may load for what a thread does over time: same results, several times as fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from torch_tb_profiler.model.trace import Bool, Int8, Int32, Int64


class ThreadSlices(msgspec.Struct, frozen=True):
    """The slices of a thread over time (k times), and what else says why a device would wait for the thread.

    times     int64[k]      ascending
    row       int32[k + 1]  which slice runs before each time and after the last, NO_CODE for none
    edges     int64[e]      further times, ascending
    causes    int8[n]       of the events
    overlays  (cause, starts, ends, causes that stay) of times with another cause, whose borders are among the
              edges; a later overlay overrides an earlier one
    unrecorded  cause of a state without a slice
    """

    times: Int64
    row: Int32
    edges: Int64
    causes: Int8
    overlays: Sequence[tuple[int, Int64, Int64, Sequence[int]]]
    unrecorded: int


class ThreadFunctions(msgspec.Struct, frozen=True):
    """Functions in C with the results of those in Python.

    states    `causes.thread_states`: slices -> (times, row, cause)
    silences  `unrecorded_waits.find_silences`: (rows of a thread's stack; start, duration and name of all events;
              whether events with a name are left out; the shortest ns) -> (since, resume), None if they don't nest
    """

    states: Callable[[ThreadSlices], tuple[Int64, Int32, Int8]]
    silences: Callable[[Int32, Int64, Int64, Int32, Bool, int], tuple[Int64, Int64] | None]


_functions: ThreadFunctions | None = None


def use_thread_functions(functions: ThreadFunctions | None) -> None:
    """Use these functions from now on, or those in Python if None."""
    global _functions
    _functions = functions


def thread_functions() -> ThreadFunctions | None:
    """Return the functions in C that are in use, or None."""
    return _functions
