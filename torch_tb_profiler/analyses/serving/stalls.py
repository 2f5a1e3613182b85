"""Iterations that made requests wait longer than is typical, with the cause."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.serving.cost import iteration_cost, outlier_mask
from torch_tb_profiler.analyses.serving.idle import (
    CAUSES,
    LAUNCH,
    NETWORK,
    SAMPLING,
    SCHEDULER,
    UNRECORDED,
    ServingTimes,
    serving_times,
)
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.serving.iterations import ServingIterations, serving_iterations
from torch_tb_profiler.model.serving.labeled import DECODE, MIXED, PREFILL
from torch_tb_profiler.model.trace import ABSENT, Float64, Int64, Trace

PREFILL_BLOCKS, PREEMPTION, SLOW_DEVICE = "prefill_blocks_decode", "preemption", "slow_device"

BLOCK_RATIO = 3.0
"""A prefill that takes this many times a median decode iteration holds up the requests that decode."""

MIN_STALL_SHARE = 0.05
"""Extra idle time below this share of a median iteration is no stall."""

SPREAD_RATIO = 5.0
"""Extra idle time within this many times its typical spread is no stall."""

MIN_SAMPLES = 8
"""Fewest iterations of a phase that make their typical idle time meaningful."""


class Stall(msgspec.Struct, frozen=True):
    """An iteration that made requests wait.

    iteration  its number; for time after the sampled tokens the iteration that sampled them
    start_ns   begin of the extra time, as far as it is known
    extra_ns   beyond what is typical
    cause      one of CAUSES, PREFILL_BLOCKS, PREEMPTION, or SLOW_DEVICE
    requests   how many waited; None where the labels don't count them
    """

    iteration: int
    start_ns: int
    extra_ns: int
    cause: str
    requests: int | None


@derived
def serving_stalls(trace: Trace) -> tuple[Stall, ...]:
    """Return the stalls of a serving trace, in order of time."""
    found, times = serving_iterations(trace), serving_times(trace)
    if found is None or times is None or len(found) < MIN_SAMPLES:
        return ()
    waiting = waiting_requests(found)
    stalls = [*_find_host_stalls(found, times, waiting), *_find_work_stalls(trace, found, times, waiting)]
    return tuple(sorted(stalls, key=lambda stall: (stall.iteration, stall.start_ns)))


def waiting_requests(found: ServingIterations) -> Int64:
    """Return how many requests that decode wait for each iteration, int64[k]; ABSENT where unknown.

    A prefill alone holds up those that the next decode has beyond the ones prefilled since.
    """
    waiting = np.where(found.decode_requests > 0, found.decode_requests, 0)
    following, since, known = 0, 0, False
    for i in range(len(found) - 1, -1, -1):
        if found.decode_requests[i] == ABSENT:
            waiting[i] = ABSENT
        elif found.decode_requests[i] > 0:
            following, since, known = int(found.decode_requests[i]), 0, True
        elif known and found.context_requests[i] != ABSENT:
            since += int(found.context_requests[i])
            waiting[i] = max(0, following - since)
    return waiting


def _find_host_stalls(found: ServingIterations, times: ServingTimes, waiting: Int64) -> list[Stall]:
    """Return iterations before which the host took longer than is typical, each with the cause that took most."""
    limit = MIN_STALL_SHARE * float(np.median(times.duration))
    causes = [SCHEDULER, LAUNCH, SAMPLING, NETWORK, UNRECORDED]
    excess = np.zeros((len(found), len(causes)))
    for column, cause in enumerate(causes):
        spent = times.idle[:, cause].astype(np.float64)
        expected, spread = _estimate_typical_gap(spent, found)
        over = spent - expected
        excess[:, column] = np.where(over > np.maximum(limit, SPREAD_RATIO * spread), over, 0.0)
    # What no request waited for costs nothing, unless the host was seen to be at work for one that was queued.
    excess[~times.running, causes.index(UNRECORDED)] = 0.0
    largest = excess.argmax(1)
    stalls = []
    for i in np.flatnonzero(excess.max(1) > 0).tolist():
        if i == 0:
            continue
        cause = causes[largest[i]]
        requests = int(waiting[i]) or int(max(found.requests[i], 0))
        stalls.append(
            Stall(
                iteration=i - 1 if cause == SAMPLING else i,
                start_ns=int(times.end[i - 1]),
                extra_ns=round(excess[i, largest[i]]),
                cause=CAUSES[cause],
                requests=None if waiting[i] == ABSENT else requests,
            )
        )
    return stalls


def _estimate_typical_gap(spent: Float64, found: ServingIterations) -> tuple[Float64, Float64]:
    """Return the typical time before an iteration of its phase, and its spread, float64[k] each.

    The lower quartile: up to three quarters of the iterations may be slow.
    """
    expected, spread = np.zeros(len(spent)), np.zeros(len(spent))
    for phase in np.unique(found.phase).tolist():
        mine = found.phase == phase
        among = spent[mine] if mine.sum() >= MIN_SAMPLES else spent
        low, quartile = np.percentile(among, [5, 25])
        expected[mine], spread[mine] = quartile, quartile - low
    return expected, spread


def _find_work_stalls(trace: Trace, found: ServingIterations, times: ServingTimes, waiting: Int64) -> list[Stall]:
    """Return iterations whose own work was long: prefills, recomputed prompts, and slow kernels."""
    decodes = found.phase == DECODE
    if not decodes.any():
        return []
    typical = float(np.median(times.work[decodes]))
    has_prompt = (found.prompt_tokens > 0) | (found.phase == PREFILL) | (found.phase == MIXED)
    held_up = times.running & (waiting != 0)
    again = found.recomputed > 0
    blocks = has_prompt & held_up & ~again & (times.work > BLOCK_RATIO * typical)
    cost = iteration_cost(trace)
    late = np.zeros(len(found), np.bool_) if cost is None else outlier_mask(cost, times.work)
    late &= ~again & (found.busy > 0)
    stalls = []
    for i in np.flatnonzero(blocks | again | late).tolist():
        extra, cause = float(times.work[i]) - typical, PREEMPTION if again[i] else PREFILL_BLOCKS
        if late[i] and not blocks[i] and cost is not None and cost.predicted is not None:
            extra, cause = float(times.work[i] - cost.predicted[i]), SLOW_DEVICE
        start = int(found.device_start[i]) if found.device_start[i] != ABSENT else int(found.host_start[i])
        requests = None if waiting[i] == ABSENT else int(waiting[i])
        stalls.append(Stall(i, start, max(0, round(extra)), cause, requests))
    return stalls
