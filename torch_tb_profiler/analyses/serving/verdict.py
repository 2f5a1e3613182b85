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
    serving_times,
)
from torch_tb_profiler.analyses.serving.stalls import PREFILL_BLOCKS, serving_stalls
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.trace import Trace

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

MIN_BLOCKED_SHARE = 0.08
"""Prefills that hold up decodes for less than this share of the time are no bottleneck."""

MIN_RECOMPUTED = 3
MIN_RECOMPUTED_SHARE = 0.005
"""Fewest iterations that recompute a preempted request, and their share, for the KV cache to be too small."""

MAX_WAITING_SHARE = 0.5
"""An engine without requests for more of the time than this has nothing to do."""

MIN_ITERATIONS = 8
"""Fewer iterations don't tell what is usual."""


class ServingVerdict(msgspec.Struct, frozen=True):
    """What holds the engine back.

    bottleneck   None where `reason` says why it is unknown
    lost_share   share of the time, without waits for requests, that it costs
    likely       True where the host recorded nothing, so that the scheduler is likely but not seen
    recomputed   iterations that recompute a preempted request
    """

    bottleneck: Bottleneck | None
    lost_share: float = 0.0
    likely: bool = False
    recomputed: int = 0
    reason: str | None = None


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
    idle, active = times.idle.sum(0), int(times.duration.sum())
    if active <= 0:
        return ServingVerdict(None, reason="the iterations take no time")
    unrecorded = int(times.idle[times.running, UNRECORDED].sum())
    blocked = sum(stall.extra_ns for stall in serving_stalls(trace) if stall.cause == PREFILL_BLOCKS)
    lost: dict[Bottleneck, float] = {
        "host_scheduler": (int(idle[SCHEDULER]) + unrecorded) / active,
        "sampling_on_host": int(idle[SAMPLING]) / active,
        "launch": int(idle[LAUNCH]) / active,
        "network": int(idle[NETWORK]) / active,
        "prefill_blocks_decode": blocked / active,
    }
    limits = dict.fromkeys(lost, MIN_LOST_SHARE) | {"prefill_blocks_decode": MIN_BLOCKED_SHARE}
    recomputed = int((found.recomputed > 0).sum())
    over = {name: share for name, share in lost.items() if share >= limits[name]}
    if over:
        worst = max(over, key=lambda name: over[name])
        likely = worst == "host_scheduler" and unrecorded > idle[SCHEDULER]
        return ServingVerdict(worst, over[worst], bool(likely), recomputed)
    if recomputed >= max(MIN_RECOMPUTED, MIN_RECOMPUTED_SHARE * len(found)):
        share = float(times.work[found.recomputed > 0].sum()) / active
        return ServingVerdict("kv_cache_full", share, recomputed=recomputed)
    waiting = int(idle[WAITING])
    if waiting > MAX_WAITING_SHARE * (active + waiting):
        return ServingVerdict("no_requests", waiting / (active + waiting), bool((~times.certain).any()))
    return ServingVerdict("device", float(np.minimum(times.work.sum() / active, 1.0)), recomputed=recomputed)
