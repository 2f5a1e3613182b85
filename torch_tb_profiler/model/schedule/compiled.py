"""Functions in C that a session may load for the loops of a schedule: the same results, many times as fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from torch_tb_profiler.model.trace import Bool, Int8, Int32, Int64

if TYPE_CHECKING:
    from torch_tb_profiler.model.schedule.schedule import Schedule


class ScheduleFunctions(NamedTuple):
    """Functions in C with the results of those in Python.

    plan    `replay.computation_order`: graph -> its runs, (chain, low, high) each, where the chains are the
            threads and then the streams; None if nodes wait for each other
    replay  `replay.replay`: (graph, runs, steps, durations, removed edges or None) -> (points, ends)
    latest  `slack`: (graph, runs, latest time of each point, latest end of each item), which it lowers in place
    split   `causes.split_by_state`: (number, begin, end, first state, last state of each window; times, row and
            cause of the states) -> (window, begin, end, row, cause) of each part
    """

    plan: Callable[[Schedule], Int64 | None]
    replay: Callable[[Schedule, Int64, Int64, Int64, Bool | None], tuple[Int64, Int64]]
    latest: Callable[[Schedule, Int64, Int64, Int64], None]
    split: Callable[
        [Int64, Int64, Int64, Int64, Int64, Int64, Int32, Int8], tuple[Int64, Int64, Int64, Int32, Int8]
    ]


_functions: ScheduleFunctions | None = None


def use_schedule_functions(functions: ScheduleFunctions | None) -> None:
    """Use these functions from now on, or those in Python if None."""
    global _functions
    _functions = functions


def schedule_functions() -> ScheduleFunctions | None:
    """Return the functions in C that are in use, or None."""
    return _functions
