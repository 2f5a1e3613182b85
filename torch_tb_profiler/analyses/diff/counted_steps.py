"""The steps that count in a comparison, and which of them each event belongs to."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Float64, Int32, Int64, Recordings, Trace

SideValues = tuple[Float64, Float64]
"""Values of the base and of the candidate, float64[rows, counted steps of that side]."""


class CountedSteps(msgspec.Struct, frozen=True):
    """The typical steps of a trace, see `step_kinds`.

    which       int64[s]  positions in `steps(trace)`
    names       name of each step
    left_out    number of steps left out because their device work is missing
    warm_up     position in `steps(trace)` of a first step that was left out as warm-up, else None
    odd         int64[m]  positions of other steps that were left out, as they are far longer or shorter
    starts, ends            int64[s] ns, device work included
    host_starts, host_ends  int64[s] ns
    of_event    int32[n]  the counted step of every event, NO_CODE if none; a host event belongs to the step in
                          which it starts, device work to that of its launch (or else in which it starts itself)
    """

    which: Int64
    names: tuple[str, ...]
    left_out: int
    warm_up: int | None
    odd: Int64
    starts: Int64
    ends: Int64
    host_starts: Int64
    host_ends: Int64
    of_event: Int32

    def __len__(self) -> int:
        return len(self.which)

    @property
    def durations(self) -> Int64:
        """Return the duration of each step, int64[s] ns."""
        return self.ends - self.starts


@derived
def counted_steps(trace: Trace) -> CountedSteps:
    """Return the steps of a trace that count."""
    recorded = steps(trace)
    complete = np.flatnonzero(recorded.complete)
    which = np.flatnonzero(step_kinds(trace).typical)
    left_out = np.setdiff1d(complete, which)
    durations = recorded.ends - recorded.starts
    first = int(complete[0]) if len(complete) else NO_CODE
    has_warm_up = first in left_out and bool(durations[first] > durations[which].mean())
    numbers = np.full(len(recorded.names) + 1, NO_CODE, np.int32)
    numbers[which] = np.arange(len(which), dtype=np.int32)
    start = trace.events.start
    of_event = numbers[_find_window(start, recorded.host_starts, recorded.host_ends)]
    device_rows, launch = device_launches(trace)
    by_own_start = numbers[_find_window(start[device_rows], recorded.starts, recorded.ends)]
    of_event[device_rows] = np.where(launch >= 0, of_event[launch], by_own_start)
    return CountedSteps(
        which,
        tuple(recorded.names[i] for i in which.tolist()),
        len(recorded.names) - len(complete),
        first if has_warm_up else None,
        left_out[1:] if has_warm_up else left_out,
        recorded.starts[which],
        recorded.ends[which],
        recorded.host_starts[which],
        recorded.host_ends[which],
        of_event,
    )


def step_durations(recordings: Recordings) -> Float64:
    """Return the durations of the counted steps, recording after recording, float64[1, steps] ns."""
    durations = [counted_steps(trace).durations for trace in recordings]
    return np.concatenate(durations)[None, :].astype(np.float64)


def step_counts(recordings: Recordings) -> list[int]:
    """Return how many steps of each recording count."""
    return [len(counted_steps(trace)) for trace in recordings]


def calls_outside_steps(trace: Trace) -> int:
    """Return how many operator calls are in no counted step."""
    return int((counted_steps(trace).of_event[operators(trace).rows] < 0).sum())


def _find_window(times: Int64, starts: Int64, ends: Int64) -> Int64:
    """Return the window that each time lies in, int64[k], NO_CODE if none.

    Windows are in ascending order of their starts; one may be a single instant.
    """
    window = np.searchsorted(starts, times, "right") - 1
    window_ends = np.append(np.maximum(ends, starts + 1), 0)
    return np.where((window >= 0) & (times < window_ends[window]), window, NO_CODE)


def sum_per_step(rows: Int64 | Int32, step: Int32, values: Int64 | None, shape: tuple[int, int]) -> Float64:
    """Return sums of `values` (counts if None) by row and step, float64[rows, steps].

    Values whose row or step is NO_CODE are left out.
    """
    mask = (rows >= 0) & (step >= 0)
    cells = rows[mask].astype(np.int64) * shape[1] + step[mask]
    weights = None if values is None else values[mask]
    sums = np.bincount(cells, weights, minlength=shape[0] * shape[1])
    return sums.reshape(shape).astype(np.float64)
