"""What to set, with a bound on what it gains: from the measured idle time, and from the cost of an iteration."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.serving.cost import IterationCost, iteration_cost
from torch_tb_profiler.analyses.serving.idle import (
    KERNEL_GAPS,
    LAUNCH,
    NETWORK,
    SAMPLING,
    SCHEDULER,
    UNRECORDED,
    ServingTimes,
    launched_for_sampling,
    serving_gaps,
    serving_times,
)
from torch_tb_profiler.analyses.serving.stalls import PREFILL_BLOCKS, serving_stalls
from torch_tb_profiler.analyses.serving.summary import decodes_mask, serving_rates
from torch_tb_profiler.analyses.serving.verdict import Bottleneck, ServingVerdict, serving_verdict
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.serving.iterations import ServingIterations, is_graph_launch, serving_iterations
from torch_tb_profiler.model.serving.kernels import serving_kernels
from torch_tb_profiler.model.serving.labeled import DECODE
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int64, Trace

AdviceKind = Literal[
    "overlap_host", "chunk_prefill", "larger_batch", "more_kv_cache", "cuda_graphs", "graph_sizes", "network"
]

MIN_GAIN_SHARE = 0.05
"""Advice that saves less than this share of the iterations' time isn't given."""

MIN_BATCH_GAIN = 1.1
"""Twice the requests must give at least this many times the tokens per second."""

CHUNK_STEP = 64
"""Chunk sizes are multiples of this many tokens."""

TARGET_RATIO = 2.0
"""A prefill chunk should keep an iteration below this many times a median decode iteration."""


_ANSWERS: dict[Bottleneck, AdviceKind] = {
    "host_scheduler": "overlap_host",
    "sampling_on_host": "overlap_host",
    "launch": "cuda_graphs",
    "network": "network",
    "prefill_blocks_decode": "chunk_prefill",
    "kv_cache_full": "more_kv_cache",
    "device": "larger_batch",
}
"""Bottleneck -> the advice that removes it."""


class ServingAdvice(msgspec.Struct, frozen=True):
    """A setting to change.

    gain_ns      most that an average iteration gets shorter; None where the gain is none of time
    gain_share   the same as a share of an average iteration
    factor       tokens per second relative to now, for a larger batch
    chunk        largest prefill chunk in tokens that keeps an iteration below `limit_ns`; 0 if none does
    limit_ns     such an iteration
    size         batch size that isn't captured, or the present batch
    eager        share of the kernel time of the forward passes of decode iterations that no graph replays
    """

    kind: AdviceKind
    gain_ns: float | None = None
    gain_share: float | None = None
    factor: float | None = None
    chunk: int | None = None
    limit_ns: float | None = None
    size: int | None = None
    eager: float | None = None


@derived
def serving_advice(trace: Trace) -> tuple[ServingAdvice, ...]:
    """Return advice: first what answers the bottleneck, then by gain."""
    found, times, verdict = serving_iterations(trace), serving_times(trace), serving_verdict(trace)
    cost = iteration_cost(trace)
    if found is None or times is None or verdict is None or cost is None or verdict.bottleneck is None:
        return ()
    counted = np.ones(len(found), np.bool_)
    counted[verdict.left_out] = False
    advice = [
        _advise_host_overlap(times, counted),
        _advise_network(times, counted),
        _advise_cuda_graphs(trace, found, times, counted),
        _advise_graph_sizes(found, times, counted),
        _advise_prefill_chunks(trace, found, times, cost),
        _advise_kv_cache(found, times, verdict.recomputed),
        _advise_batch_size(found, cost) if _may_batch_more(trace, verdict) else None,
    ]
    answer = _ANSWERS.get(verdict.bottleneck)
    return tuple(sorted(filter(None, advice), key=lambda each: (each.kind != answer, -(each.gain_share or 0.0))))


def _build_if_worthwhile(
    kind: AdviceKind, gains: Float64 | Int64, times: ServingTimes, counted: Bool
) -> ServingAdvice | None:
    """Return the advice with its gain, in ns of each iteration, or None if those that count gain too little."""
    total, gain = int(times.duration[counted].sum()), float(gains[counted].sum())
    if total <= 0 or gain < MIN_GAIN_SHARE * total:
        return None
    return ServingAdvice(kind, gain_ns=gain / int(counted.sum()), gain_share=gain / total)


def _advise_host_overlap(times: ServingTimes, counted: Bool) -> ServingAdvice | None:
    """Prepare the next batch while the device works: at most as much as the device works hides.

    What launches that batch is done ahead then, too. But an engine that overlaps already may still wait for it, so
    that alone is no reason for the advice.
    """
    if not times.on_device:
        return None
    host = times.idle[:, [SCHEDULER, SAMPLING]].sum(1) + np.where(times.running, times.idle[:, UNRECORDED], 0)
    if _build_if_worthwhile("overlap_host", np.minimum(host, times.work), times, counted) is None:
        return None
    hidden = np.minimum(host + times.idle[:, LAUNCH], times.work)
    return _build_if_worthwhile("overlap_host", hidden, times, counted)


def _advise_network(times: ServingTimes, counted: Bool) -> ServingAdvice | None:
    return _build_if_worthwhile("network", times.idle[:, NETWORK], times, counted)


def _advise_cuda_graphs(
    trace: Trace, found: ServingIterations, times: ServingTimes, counted: Bool
) -> ServingAdvice | None:
    """Replay what decode iterations launch kernel by kernel: that saves the pauses between these kernels."""
    eager, replayed = _forward_kernels(trace, found)
    length, gaps = trace.events.duration, serving_gaps(trace)
    time = int(length[eager].sum())
    if gaps is None or time == 0:
        return None
    forward = eager | replayed
    within = found.owner[gaps.before] == gaps.number
    within &= forward[gaps.before] & forward[gaps.after] & (eager[gaps.before] | eager[gaps.after])
    paused = gaps.parts[within][:, [LAUNCH, KERNEL_GAPS]].sum(1)
    gains = np.bincount(gaps.number[within], paused, len(found))
    worth = _build_if_worthwhile("cuda_graphs", gains, times, counted)
    return worth and msgspec.structs.replace(worth, eager=time / (time + int(length[replayed].sum())))


def _forward_kernels(trace: Trace, found: ServingIterations) -> tuple[Bool, Bool]:
    """Return which events are kernels of decodes' forward passes, bool[n]: launched alone, and replayed.

    Engines sample after the forward pass and launch that on its own, since it depends on the requests: after the
    label, in host work of that name, and after what a graph replays, if no attention follows.
    """
    rows, calls = device_launches(trace)
    mine = (found.owner[rows] >= 0) & (calls >= 0) & (event_kinds(trace)[rows] == Kind.KERNEL)
    mine[mine] &= found.phase[found.owner[rows[mine]]] == DECODE
    rows, calls = rows[mine], calls[mine]
    number, start = found.owner[rows], trace.events.start[rows]
    in_graph = is_graph_launch(trace)[trace.events.name[calls]]
    kernels = serving_kernels(trace)
    samples = kernels.sampler[rows] | launched_for_sampling(trace, found, calls)
    samples |= trace.events.start[calls] >= found.host_end[number]
    last, last_replayed = np.full(len(found), ABSENT), np.full(len(found), ABSENT)
    np.maximum.at(last_replayed, number[in_graph], start[in_graph])
    np.maximum.at(last, number, np.where(in_graph | kernels.attention[rows], start, ABSENT))
    samples |= (last_replayed != ABSENT)[number] & (start > last[number])
    eager, replayed = np.zeros(len(trace), np.bool_), np.zeros(len(trace), np.bool_)
    eager[rows[~in_graph & ~samples]] = True
    replayed[rows[in_graph]] = True
    return eager, replayed


def _advise_graph_sizes(found: ServingIterations, times: ServingTimes, counted: Bool) -> ServingAdvice | None:
    """Capture a graph for the batch sizes that are padded most."""
    padded = (found.padded_requests != ABSENT) & (found.decode_requests > 0)
    padded &= found.padded_requests > found.decode_requests
    if not padded.any():
        return None
    gains = np.zeros(len(found))
    # Attention does not pay for padding: its cost follows the KV tokens.
    share = 1 - found.decode_requests[padded] / found.padded_requests[padded]
    gains[padded] = share * (times.work - found.attention)[padded]
    worth = _build_if_worthwhile("graph_sizes", gains, times, counted)
    sizes, counts = np.unique(found.decode_requests[padded], return_counts=True)
    return worth and msgspec.structs.replace(worth, size=int(sizes[np.argmax(counts)]))


def _advise_prefill_chunks(
    trace: Trace, found: ServingIterations, times: ServingTimes, cost: IterationCost
) -> ServingAdvice | None:
    """Return the largest chunk that keeps an iteration short, where prefills hold up requests that decode."""
    if not any(stall.cause == PREFILL_BLOCKS for stall in serving_stalls(trace)):
        return None
    decodes = found.phase == DECODE
    typical = float(np.median(times.work[decodes]))
    limit, per_token = TARGET_RATIO * typical, cost.per_prompt_token.value
    if per_token is None:
        return ServingAdvice("chunk_prefill")
    chunk = int((limit - typical) / per_token) // CHUNK_STEP * CHUNK_STEP
    return ServingAdvice("chunk_prefill", chunk=chunk, limit_ns=limit)


def _advise_kv_cache(found: ServingIterations, times: ServingTimes, recomputed: int) -> ServingAdvice | None:
    if recomputed == 0:
        return None
    again = found.recomputed > 0
    typical = float(np.median(times.work[~again])) if (~again).any() else 0.0
    gain = float(np.maximum(times.work[again] - typical, 0).sum())
    total = int(times.duration.sum())
    return ServingAdvice("more_kv_cache", gain_ns=gain / len(times.end), gain_share=gain / total)


def _may_batch_more(trace: Trace, verdict: ServingVerdict) -> bool:
    """Tell whether more requests may wait, and whether those that run have room."""
    rates = serving_rates(trace)
    empty = rates is not None and rates.queued is not None and rates.queued[1] == 0
    return verdict.bottleneck != "no_requests" and verdict.recomputed == 0 and not empty


def _advise_batch_size(found: ServingIterations, cost: IterationCost) -> ServingAdvice | None:
    """Return how many times the tokens per second twice the requests would give, by the cost of an iteration."""
    fixed, request, kv = cost.fixed.value, cost.per_request.value, cost.per_kv_token.value
    rows = np.flatnonzero(decodes_mask(found) & (found.decode_requests > 0) & (found.kv_tokens != ABSENT))
    if fixed is None or request is None or kv is None or len(rows) == 0:
        return None
    requests = float(found.decode_requests[rows].mean())
    tokens = float(found.kv_tokens[rows].mean())
    now = fixed + request * requests + kv * tokens
    factor = 2 * now / (fixed + 2 * request * requests + 2 * kv * tokens)
    return ServingAdvice("larger_batch", factor=factor, size=round(requests)) if factor >= MIN_BATCH_GAIN else None
