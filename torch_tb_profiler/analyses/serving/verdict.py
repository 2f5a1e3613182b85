"""What holds a serving engine back: the one thing that costs most, by measured time."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.serving.idle import (
    LAUNCH,
    NETWORK,
    SAMPLING,
    SCHEDULER,
    UNRECORDED,
    WAITING,
    ServingTimes,
    serving_times,
)
from torch_tb_profiler.analyses.serving.stalls import PREFILL_BLOCKS, serving_stalls
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.serving.iterations import ServingIterations, serving_iterations
from torch_tb_profiler.model.trace import Bool, Int64, Trace

Bottleneck = Literal[
    "host_scheduler",
    "sampling_on_host",
    "launch",
    "network",
    "prefill_blocks_decode",
    "kv_cache_full",
    "no_requests",
    "device",
]

MIN_LOST_SHARE = 0.15
"""Host work that keeps the device idle for less than this share of the time is usual in a healthy engine."""

MAX_FEW_SHARE, MIN_FEW_LOSS_SHARE = 0.05, 0.5
"""What costs little without this share of the iterations, in which it costs at least this share of its time, is
said of these few iterations."""

MIN_BLOCKED_SHARE = 0.08
"""Prefills that hold up decodes for less than this share of the time are no bottleneck."""

MIN_RECOMPUTED = 3
MIN_RECOMPUTED_SHARE = 0.005
"""Fewest iterations that recompute a preempted request, and their share, for the KV cache to be too small."""

MAX_WAITING_SHARE = 0.5
"""An engine without requests for more of the time than this has nothing to do."""

MIN_ITERATIONS = 8
"""Fewer iterations don't tell what is usual."""


class LostOnce(msgspec.Struct, frozen=True):
    """Few iterations in which the device is idle for what costs little in all others.

    rows        their positions, in order
    iterations  their numbers as they are shown: handling tokens is of the iteration that sampled them
    lost_ns     how long the device is idle for that, in all of them
    likely      as in ServingVerdict
    """

    bottleneck: Bottleneck
    rows: tuple[int, ...]
    iterations: tuple[int, ...]
    lost_ns: int
    likely: bool


class ServingVerdict(msgspec.Struct, frozen=True):
    """What holds the engine back.

    bottleneck   None where `reason` says why it is unknown
    lost_share   share of the time, without waits for requests, that it costs
    likely       True where the host recorded nothing, so that the scheduler is likely but not seen
    recomputed   iterations that recompute a preempted request
    once         what costs much in few iterations only, most first; all other figures leave these iterations out
    """

    bottleneck: Bottleneck | None
    lost_share: float = 0.0
    likely: bool = False
    recomputed: int = 0
    reason: str | None = None
    once: tuple[LostOnce, ...] = ()

    @property
    def left_out(self) -> list[int]:
        """Return the positions of the iterations that the figures leave out, in order."""
        return sorted({row for each in self.once for row in each.rows})


def _too_few(count: int) -> str:
    return (
        f"{plural(count, 'iteration')} {agree(count, 'is', 'are')} too few to tell what holds the engine back; "
        f"record at least {MIN_ITERATIONS}"
    )


@derived
def serving_verdict(trace: Trace) -> ServingVerdict | None:
    """Return what holds the engine back, or None if the trace has no iterations."""
    found, times = serving_iterations(trace), serving_times(trace)
    if found is None or times is None:
        return None
    if len(found) < MIN_ITERATIONS:
        return ServingVerdict(None, reason=_too_few(len(found)))
    if int(times.duration.sum()) <= 0:
        return ServingVerdict(None, reason="the iterations take no time")
    once = _find_lost_once(times)
    counted = np.ones(len(found), np.bool_)
    counted[[row for each in once for row in each.rows]] = False
    if not times.duration[counted].any():  # nothing but them takes time
        counted[:] = True
    verdict = _judge(trace, found, times, counted)
    return msgspec.structs.replace(verdict, once=once)


def _sum_lost_time(times: ServingTimes) -> dict[Bottleneck, Int64]:
    """Return the ns of each iteration that the host costs, by what it does: int64[k] each."""
    return {
        "host_scheduler": times.idle[:, SCHEDULER] + _unrecorded(times),
        "sampling_on_host": times.idle[:, SAMPLING],
        "launch": times.idle[:, LAUNCH],
        "network": times.idle[:, NETWORK],
    }


def _unrecorded(times: ServingTimes) -> Int64:
    unrecorded: Int64 = np.where(times.running, times.idle[:, UNRECORDED], 0)
    return unrecorded


def _find_lost_once(times: ServingTimes) -> tuple[LostOnce, ...]:
    """Return what costs much in few iterations only, most first."""
    duration, few = times.duration, max(1, int(MAX_FEW_SHARE * len(times.end)))
    found = []
    for name, lost in _sum_lost_time(times).items():
        total = int(lost.sum())
        largest = np.argsort(-lost, kind="stable")[:few]
        in_few = int(lost[largest].sum())
        rest = int(duration.sum()) - int(duration[largest].sum())
        if (
            total < MIN_LOST_SHARE * int(duration.sum())
            or total - in_few >= MIN_LOST_SHARE * rest
            or in_few < MIN_FEW_LOSS_SHARE * total
        ):
            continue
        rows = np.sort(largest[2 * lost[largest] >= lost[largest[0]]])
        likely = name == "host_scheduler" and 2 * int(_unrecorded(times)[rows].sum()) > int(lost[rows].sum())
        numbers = np.maximum(rows - 1, 0) if name == "sampling_on_host" else rows
        found.append(
            LostOnce(name, tuple(rows.tolist()), tuple(numbers.tolist()), int(lost[rows].sum()), bool(likely))
        )
    return tuple(sorted(found, key=lambda each: -each.lost_ns))


def _judge(trace: Trace, found: ServingIterations, times: ServingTimes, counted: Bool) -> ServingVerdict:
    """Return what costs most in the iterations that count."""
    active = int(times.duration[counted].sum())
    stalls = [stall for stall in serving_stalls(trace) if counted[stall.iteration]]
    blocked = sum(stall.extra_ns for stall in stalls if stall.cause == PREFILL_BLOCKS)
    lost = {name: int(each[counted].sum()) / active for name, each in _sum_lost_time(times).items()}
    lost["prefill_blocks_decode"] = blocked / active
    limits = dict.fromkeys(lost, MIN_LOST_SHARE) | {"prefill_blocks_decode": MIN_BLOCKED_SHARE}
    recomputed = int((found.recomputed > 0).sum())
    over = {name: share for name, share in lost.items() if share >= limits[name]}
    if over:
        worst = max(over, key=lambda name: over[name])
        unrecorded, scheduler = int(_unrecorded(times)[counted].sum()), int(times.idle[counted, SCHEDULER].sum())
        likely = worst == "host_scheduler" and unrecorded > scheduler
        return ServingVerdict(worst, over[worst], likely, recomputed)
    if recomputed >= max(MIN_RECOMPUTED, MIN_RECOMPUTED_SHARE * len(found)):
        share = float(times.work[found.recomputed > 0].sum()) / int(times.duration.sum())
        return ServingVerdict("kv_cache_full", share, recomputed=recomputed)
    waiting = int(times.idle[:, WAITING].sum())
    if waiting > MAX_WAITING_SHARE * (active + waiting):
        return ServingVerdict("no_requests", waiting / (active + waiting), bool((~times.certain).any()))
    share = float(np.minimum(times.work[counted].sum() / active, 1.0))
    return ServingVerdict("device", share, recomputed=recomputed)
