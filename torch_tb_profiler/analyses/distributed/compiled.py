"""Functions in C that a session may load to replay jobs: the same results, many times as fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch_tb_profiler.model.trace import Bool, Int32, Int64


class RecordedOperations(NamedTuple):
    """What is to be replayed: the m operations with a time, by rank, then by start.

    ranks, collectives  how many there are
    member    int32[m]  the rank
    instance  int64[m]  the collective, 0..collectives-1, of one that is `compared`, bool[m]
    start, end, waiting, slack, stall  int64[m] ns; `waiting` counts only where it is compared
    previous  int64[m]  the group's previous operation on the rank, NO_CODE for none
    """

    ranks: int
    collectives: int
    member: Int32
    instance: Int64
    compared: Bool
    start: Int64
    end: Int64
    waiting: Int64
    previous: Int64
    slack: Int64
    stall: Int64


class ReplayColumns(NamedTuple):
    """What `replay.JobReplay` replays: operations in the order of replay, runs of them, stalls, and last moments.

    ranks          how many there are
    bounds, stall_bounds  int64[levels + 1]  where each level begins among the operations, and among the stalls
    run_begins     int64[r]  where each run begins; number: the row of what its collective saves
    previous       int32[m]  the run of the group's previous operation, r for none
    slack, gap, waited  int64[m] ns; last_arrival: bool[m]
    stall_run, stall_length  int64[n]  of stalls
    member, stalls  int32: rank and last stall (n for none) before operations, stalls, and the end of each rank
    until, since    int32: the last operation before these moments, and before that stall, NO_CODE for none
    """

    ranks: int
    bounds: Int64
    stall_bounds: Int64
    run_begins: Int64
    number: Int64
    previous: Int32
    slack: Int64
    gap: Int64
    waited: Int64
    last_arrival: Bool
    stall_run: Int64
    stall_length: Int64
    member: tuple[Int32, Int32, Int32]
    stalls: tuple[Int32, Int32, Int32]
    until: tuple[Int32, Int32, Int32]
    since: tuple[Int32, Int32, Int32]


Replay = Callable[[Bool, Int64 | None, Sequence[Int64]], tuple[Int64, Int64]]
"""(whether ranks are typical, what collectives save or None, work saved before the three kinds of moments) -> (how
much earlier each rank ends, and arrives)."""


class ReplayFunctions(NamedTuple):
    """Functions in C with the results of those in Python.

    network  `network.build_network`
    saved    (work of each operation, what is typical, operations of each rank, columns) -> what is saved before
             moments
    prepare  checks columns once -> the function that replays them
    """

    network: Callable[[RecordedOperations], ReplayColumns]
    saved: Callable[[Int64, Int64, Int64, ReplayColumns], list[Int64]]
    prepare: Callable[[ReplayColumns], Replay]


_functions: ReplayFunctions | None = None


def use_replay_functions(functions: ReplayFunctions | None) -> None:
    """Use these functions from now on, or those in Python if None."""
    global _functions
    _functions = functions


def replay_functions() -> ReplayFunctions | None:
    """Return the functions in C that are in use, or None."""
    return _functions
