"""What one rank's iterations contribute: the busy time of each stream, what overlaps, and what was recorded of it.

compute        [forward     ][backward        ]
allreduce                          [all_reduce       ]
                                   |- overlap ---|--|  exposed
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overlap.recorded import STREAM, recorded_times
from torch_tb_profiler.analyses.shared.packing import float64_bytes
from torch_tb_profiler.base.intervals import (
    NO_INTERVALS,
    Intervals,
    covered_time,
    intersect,
    merge,
    subtract,
    union,
)
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.iterations import Iterations, iterations, stream_ranges
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int32, Int64, Trace

COMPUTE = "compute"
"""The stream of the computation, as the recorder names it."""

_ALL_GATHER = "all_gather"
"""What the functions of gathers begin with; they run on a stream that also has other work."""


class RankOverlap(msgspec.Struct, frozen=True):
    """One rank. `columns` name -> float64[k] of its k iterations, as bytes; times in ns.

    step, begin, total   global step, when it begins in the trace, its length as recorded
    loss                 NaN where unknown
    compute, allreduce, reducescatter, allgather   how long the stream (or the gathers) is busy
    <collective>_overlap, <collective>_exposed     ... while the computation runs, and while it does not
    overlap              computation while an all-reduce or a reduce-scatter runs: what the recorder counts
    hidden, exposed      any of the three collectives while the computation runs, and while it does not
    idle                 no stream is busy, to the iteration's end
    idle_before_last     ... without the tail after the last range; all of it where there is no other
    folded               ranges that begin while an earlier one of their stream runs, or as it ends
    stream <name>        how long each stream is busy
    recorded ...         what the recorder made of it (`recorded_times`)
    """

    rank: int | None
    columns: Mapping[str, bytes]

    def table(self) -> dict[str, Float64]:
        """The columns as arrays (read-only)."""
        return {name: np.frombuffer(values, "<f8") for name, values in self.columns.items()}


COLLECTIVES = ("allreduce", "reducescatter", "allgather")


@derived
def summarize(trace: Trace) -> RankOverlap:
    """The iterations of a trace whose clock is theirs."""
    iteration, rows = iterations(trace), stream_ranges(trace)
    step = trace.arg_int("global_step", iteration.row)
    columns: dict[str, Int64 | Float64] = {
        "step": np.where(step == ABSENT, np.arange(len(step)), step),
        "begin": iteration.starts,
        "total": iteration.totals,
        "loss": trace.arg_float("loss", iteration.row),
        "folded": sum(
            (_folded(trace, each, iteration.begins) for each in rows.values()), np.zeros(len(step), np.int64)
        ),
        **_busy_times(trace, iteration, rows),
        **_idle_times(trace, iteration, rows),
        **{f"recorded {name}": values for name, values in recorded_times(trace, iteration.row).items()},
    }
    return RankOverlap(trace_rank(trace), {name: float64_bytes(values) for name, values in columns.items()})


def _busy_times(trace: Trace, iteration: Iterations, rows: Mapping[str, Int32]) -> dict[str, Int64]:
    bounds = np.append(iteration.begins[1:], np.iinfo(np.int64).max)

    def per_iteration(busy: Intervals) -> Int64:
        return covered_time(busy, iteration.begins, bounds)

    streams = {name: _busy(trace, each) for name, each in rows.items()}
    compute = streams.get(COMPUTE, NO_INTERVALS)
    communication = {
        "allreduce": streams.get("allreduce", NO_INTERVALS),
        "reducescatter": streams.get("reducescatter", NO_INTERVALS),
        "allgather": _busy(trace, _gathers(trace, rows)),
    }
    counted = union(communication["allreduce"], communication["reducescatter"])
    every = union(*communication.values())
    times = {f"{STREAM}{name}": per_iteration(busy) for name, busy in streams.items()}
    times[COMPUTE] = per_iteration(compute)
    for name, busy in communication.items():
        times[name] = per_iteration(busy)
        times[f"{name}_overlap"] = per_iteration(intersect(busy, compute))
        times[f"{name}_exposed"] = per_iteration(subtract(busy, compute))
    times["overlap"] = per_iteration(intersect(counted, compute))
    times["hidden"] = per_iteration(intersect(every, compute))
    times["exposed"] = per_iteration(subtract(every, compute))
    return times


def _idle_times(trace: Trace, iteration: Iterations, rows: Mapping[str, Int32]) -> dict[str, Int64]:
    active = union(*(_busy(trace, each) for each in rows.values()))
    last = _last_ends(trace, rows, iteration)
    gaps = last - iteration.starts - covered_time(active, iteration.starts, last)
    idle = iteration.totals - covered_time(active, iteration.starts, iteration.starts + iteration.totals)
    bounds = np.append(iteration.begins[1:], np.iinfo(np.int64).max)
    rest = np.maximum(iteration.totals - covered_time(active, iteration.begins, bounds), 0)
    return {"idle": idle, "idle_before_last": np.where(gaps > 0, gaps, rest)}


def _busy(trace: Trace, rows: Int32) -> Intervals:
    return merge(trace.events.start[rows], event_ends(trace)[rows])


def _gathers(trace: Trace, rows: Mapping[str, Int32]) -> Int32:
    """Ranges of any stream but the computation's whose function gathers."""
    chosen = np.concatenate([np.empty(0, np.int32), *(each for name, each in rows.items() if name != COMPUTE)])
    codes, texts = trace.arg_codes("function", chosen)
    gathers: Bool = np.array([*(text.startswith(_ALL_GATHER) for text in texts), False])
    gathering: Int32 = chosen[gathers[codes]].astype(np.int32)
    return gathering


def _last_ends(trace: Trace, rows: Mapping[str, Int32], iteration: Iterations) -> Int64:
    """int64[k]: when the last range of each iteration ends; its start where it has none."""
    last: Int64 = iteration.starts.copy()
    for each in rows.values():
        at = np.searchsorted(iteration.begins, trace.events.start[each], "right") - 1
        np.maximum.at(last, at, event_ends(trace)[each])
    return last


def _folded(trace: Trace, rows: Int32, begins: Int64) -> Int64:
    """int64[k]: ranges of one stream that begin while an earlier one runs, or in the moment in which it ends."""
    start, finish = trace.events.start[rows], event_ends(trace)[rows]
    order = np.lexsort((finish, start))
    start, finish = start[order], finish[order]
    reach = np.maximum.accumulate(finish)
    inside = start[1:] <= reach[:-1]
    at = np.searchsorted(begins, start[1:][inside], "right") - 1
    return np.bincount(at, minlength=len(begins)).astype(np.int64)
