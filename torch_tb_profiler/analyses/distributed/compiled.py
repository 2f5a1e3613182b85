"""A function in C that a session may load to replay jobs: the same results, many times as fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch_tb_profiler.model.trace import Bool, Int32, Int64


class ReplayColumns(NamedTuple):
    """What `replay.JobReplay` replays: operations in the order of replay, runs of them, stalls, and last moments.

    ranks          how many there are
    bounds, stall_bounds  int64[levels + 1]  where each level begins among the operations, and among the stalls
    run_begins     int64[r]  where each run begins; number: the row of what its collective saves
    previous       int32[m]  the run of the group's previous operation, r for none
    slack, gap, waited  int64[m] ns; last_arrival: bool[m]
    stall_run, stall_length  int64[n]  of stalls
    member, stalls  int32: rank and last stall (n for none) before operations, stalls, and the end of each rank
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


Replay = Callable[[Bool, Int64 | None, Sequence[Int64]], tuple[Int64, Int64]]
"""(whether ranks are typical, what collectives save or None, work saved before the three kinds of moments) -> (how
much earlier each rank ends, and arrives)."""

_prepare: Callable[[ReplayColumns], Replay] | None = None


def use_replay_function(prepare: Callable[[ReplayColumns], Replay] | None) -> None:
    """Use this function from now on, or the one in Python if None."""
    global _prepare
    _prepare = prepare


def replay_function() -> Callable[[ReplayColumns], Replay] | None:
    """Return the function in C that is in use, or None."""
    return _prepare
