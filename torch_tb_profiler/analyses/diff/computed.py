"""What the sides compute: FLOPs per step and the time that they take, in total and by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import Values, counted_steps
from torch_tb_profiler.model.kinds import ends
from torch_tb_profiler.model.pair import Pair, Recordings
from torch_tb_profiler.model.trace import Bool, Float64, Int64, Trace, distinct
from torch_tb_profiler.model.work.calls import work


class Computed(msgspec.Struct, frozen=True):
    """Per counted step: FLOPs of calls of which they are known and not 0, and ns in which they ran on a device."""

    flops: float
    busy_ns: float


class ComputedStep(msgspec.Struct, frozen=True):
    """Of matrix operators; `coverage`: share 0..1 of all device time whose FLOPs or bytes are known, None without
    device time."""

    matrix: Computed
    coverage: float | None


def computed_step(recordings: Recordings) -> ComputedStep:
    """The mean of the counted steps of all recordings of a side."""
    steps = sum(len(counted_steps(trace)) for trace in recordings)
    flops = busy = 0.0
    known_ns = device_ns = 0
    for trace in recordings:
        done, call = work(trace), _step_of_calls(trace)
        mine = (call >= 0) & done.matrix & (done.flops > 0)
        flops += float(done.flops[mine].sum())
        busy += float(done.busy[mine].sum())
        rows = done.owners.events
        counted = counted_steps(trace).of_event[rows] >= 0
        known = np.append(~np.isnan(done.flops) | ~np.isnan(done.bytes), False)[done.owners.call]
        length = ends(trace)[rows] - trace.events.start[rows]
        known_ns += int(length[counted & known].sum())
        device_ns += int(length[counted].sum())
    coverage = known_ns / device_ns if device_ns else None
    return ComputedStep(Computed(flops / max(steps, 1), busy / max(steps, 1)), coverage)


def matrix_times(pair: Pair) -> Values:
    """A row: ns per counted step in which matrix operators with known FLOPs run."""
    base, candidate = (
        np.concatenate([_matrix_time(trace) for trace in side])[None, :] for side in (pair.base, pair.candidate)
    )
    return base, candidate


def _matrix_time(trace: Trace) -> Float64:
    done, step = work(trace), _step_of_calls(trace)
    mine = (step >= 0) & done.matrix & (done.flops > 0)
    return np.bincount(step[mine], done.busy[mine], minlength=len(counted_steps(trace))).astype(np.float64)


def computed_by_operator(recordings: Recordings, inside: Sequence[Bool | None]) -> Mapping[str, Computed]:
    """Name -> what its calls compute per counted step; `inside`: bool[n] of each recording keeps some rows."""
    steps = sum(len(counted_steps(trace)) for trace in recordings)
    flops: dict[str, float] = {}
    busy: dict[str, float] = {}
    for trace, kept in zip(recordings, inside, strict=True):
        done = work(trace)
        mine = (_step_of_calls(trace) >= 0) & (done.flops > 0)
        if kept is not None:
            mine &= kept[done.owners.calls]
        name = trace.events.name[done.owners.calls[mine]]
        sums = [np.bincount(name, values[mine], minlength=1) for values in (done.flops, done.busy)]
        for code in distinct(name):
            text = trace.strings[code]
            flops[text] = flops.get(text, 0.0) + float(sums[0][code])
            busy[text] = busy.get(text, 0.0) + float(sums[1][code])
    return {name: Computed(flops[name] / max(steps, 1), busy[name] / max(steps, 1)) for name in flops}


def _step_of_calls(trace: Trace) -> Int64:
    """The counted step of each call that owns device work, negative if none."""
    return counted_steps(trace).of_event[work(trace).owners.calls].astype(np.int64)
