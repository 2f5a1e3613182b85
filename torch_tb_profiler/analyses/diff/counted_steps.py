"""The steps that count in a comparison, and which of them each event belongs to."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.step_means import is_warm_up
from torch_tb_profiler.model.calls.links import launches
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.pair import Recordings
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Float64, Int32, Int64, Trace, derived

Values = tuple[Float64, Float64]
"""Values of the base and of the candidate, float64[rows, counted steps of that side]."""


class CountedSteps(msgspec.Struct, frozen=True):
    """The complete steps, without a first one that is warm-up.

    which       int64[s]  positions in `steps(trace)`
    names       of each
    left_out    how many steps are not counted because their device work is missing
    warm_up     position in `steps(trace)` of the first step if it is not counted for being warm-up, else None
    starts, ends            int64[s] ns, device work included
    host_starts, host_ends  int64[s] ns
    of_event    int32[n]  the counted step of every event, NO_CODE if none: of a host event by its start, of device
                          work by its launch (by its own start where none is recorded)
    """

    which: Int64
    names: tuple[str, ...]
    left_out: int
    warm_up: int | None
    starts: Int64
    ends: Int64
    host_starts: Int64
    host_ends: Int64
    of_event: Int32

    def __len__(self) -> int:
        return len(self.which)

    @property
    def durations(self) -> Int64:
        """int64[s] ns."""
        return self.ends - self.starts


@derived
def counted_steps(trace: Trace) -> CountedSteps:
    """The steps of a trace that count."""
    recorded = steps(trace)
    complete = np.flatnonzero(recorded.complete)
    warm_up = is_warm_up((recorded.ends - recorded.starts)[complete].tolist())
    which = complete[1:] if warm_up else complete
    numbers = np.full(len(recorded.names) + 1, NO_CODE, np.int32)
    numbers[which] = np.arange(len(which), dtype=np.int32)
    start = trace.events.start
    of_event = numbers[_inside(start, recorded.host_starts, recorded.host_ends)]
    work, launch = launches(trace)
    by_own_start = numbers[_inside(start[work], recorded.starts, recorded.ends)]
    of_event[work] = np.where(launch >= 0, of_event[launch], by_own_start)
    return CountedSteps(
        which,
        tuple(recorded.names[i] for i in which.tolist()),
        len(recorded.names) - len(complete),
        int(complete[0]) if warm_up else None,
        recorded.starts[which],
        recorded.ends[which],
        recorded.host_starts[which],
        recorded.host_ends[which],
        of_event,
    )


def step_durations(recordings: Recordings) -> Float64:
    """float64[1, steps]: the durations of the counted steps, recording after recording."""
    durations = [counted_steps(trace).durations for trace in recordings]
    return np.concatenate(durations)[None, :].astype(np.float64)


def step_counts(recordings: Recordings) -> list[int]:
    """How many steps of each recording count."""
    return [len(counted_steps(trace)) for trace in recordings]


def outside_calls(trace: Trace) -> int:
    """How many calls of operators are in no counted step."""
    return int((counted_steps(trace).of_event[operators(trace).rows] < 0).sum())


def _inside(times: Int64, begins: Int64, ends: Int64) -> Int64:
    """int64[k]: which window each time lies in, NO_CODE if none; begins ascending, an instant may be a window."""
    at = np.searchsorted(begins, times, "right") - 1
    last = np.append(np.maximum(ends, begins + 1), 0)
    return np.where((at >= 0) & (times < last[at]), at, NO_CODE)


def per_step(rows: Int64 | Int32, step: Int32, values: Int64 | None, shape: tuple[int, int]) -> Float64:
    """float64[rows, steps]: sums of values (None: counts) by row and step; NO_CODE in either leaves one out."""
    kept = (rows >= 0) & (step >= 0)
    cells = rows[kept].astype(np.int64) * shape[1] + step[kept]
    weights = None if values is None else values[kept]
    sums = np.bincount(cells, weights, minlength=shape[0] * shape[1])
    return sums.reshape(shape).astype(np.float64)
