"""FLOPs per step of both sides and the time that they take, in total and by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import SideValues, counted_steps
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import Bool, Float64, Int64, Recordings, Trace, TracePair, distinct_codes
from torch_tb_profiler.model.work.operator_work import operator_work


class FlopsPerStep(msgspec.Struct, frozen=True):
    """FLOPs of calls with known, nonzero FLOPs, and ns in which these calls run on a device, per counted step."""

    flops: float
    busy_ns: float


class StepFlops(msgspec.Struct, frozen=True):
    """The FLOPs of a side's matrix operators.

    coverage  share 0..1 of all device time whose FLOPs or bytes are known, None without device time
    """

    matrix: FlopsPerStep
    coverage: float | None


def step_flops(recordings: Recordings) -> StepFlops:
    """Return the mean over the counted steps of all recordings of a side."""
    steps = sum(len(counted_steps(trace)) for trace in recordings)
    flops = busy = 0.0
    known_ns = device_ns = 0
    for trace in recordings:
        call_work, call_step = operator_work(trace), _step_of_calls(trace)
        in_steps = (call_step >= 0) & call_work.matrix & (call_work.flops > 0)
        flops += float(call_work.flops[in_steps].sum())
        busy += float(call_work.busy[in_steps].sum())
        rows = call_work.owners.events
        counted = counted_steps(trace).of_event[rows] >= 0
        known = np.append(~np.isnan(call_work.flops) | ~np.isnan(call_work.bytes), False)[call_work.owners.call]
        length = event_ends(trace)[rows] - trace.events.start[rows]
        known_ns += int(length[counted & known].sum())
        device_ns += int(length[counted].sum())
    coverage = known_ns / device_ns if device_ns else None
    return StepFlops(FlopsPerStep(flops / max(steps, 1), busy / max(steps, 1)), coverage)


def matrix_operator_times(pair: TracePair) -> SideValues:
    """Return one row: ns per counted step in which matrix operators with known FLOPs run."""
    base, candidate = (
        np.concatenate([_sum_matrix_operator_time(trace) for trace in side])[None, :]
        for side in (pair.base, pair.candidate)
    )
    return base, candidate


def _sum_matrix_operator_time(trace: Trace) -> Float64:
    call_work, step = operator_work(trace), _step_of_calls(trace)
    in_steps = (step >= 0) & call_work.matrix & (call_work.flops > 0)
    times = np.bincount(step[in_steps], call_work.busy[in_steps], minlength=len(counted_steps(trace)))
    return times.astype(np.float64)


def flops_by_operator(recordings: Recordings, inside: Sequence[Bool | None]) -> Mapping[str, FlopsPerStep]:
    """Return the FLOPs of each operator by its name; `inside` (bool[n] per recording) selects some rows."""
    steps = sum(len(counted_steps(trace)) for trace in recordings)
    flops: dict[str, float] = {}
    busy: dict[str, float] = {}
    for trace, selected in zip(recordings, inside, strict=True):
        call_work = operator_work(trace)
        mask = (_step_of_calls(trace) >= 0) & (call_work.flops > 0)
        if selected is not None:
            mask &= selected[call_work.owners.calls]
        name = call_work.owners.name[mask]
        sums = [np.bincount(name, values[mask], minlength=1) for values in (call_work.flops, call_work.busy)]
        for code in distinct_codes(name):
            text = call_work.owners.names[code]
            flops[text] = flops.get(text, 0.0) + float(sums[0][code])
            busy[text] = busy.get(text, 0.0) + float(sums[1][code])
    return {name: FlopsPerStep(flops[name] / max(steps, 1), busy[name] / max(steps, 1)) for name in flops}


def _step_of_calls(trace: Trace) -> Int64:
    """Return the counted step of each call that owns device work, negative if none."""
    return counted_steps(trace).of_event[operator_work(trace).owners.calls].astype(np.int64)
