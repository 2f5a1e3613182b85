"""Iterations of an inference engine: what they compute and when the host and the device work on them.

host    |- execute_context_0(0)_generation_8(8) -| sample |          |- execute_context_1(512)... -|
            graph launch                       launch                    launches ...
device           [ decode ..................][ sampling ]    idle             [ mixed ..............

An iteration owns the device work launched from the start of its label to the start of the next one, because
sampling is launched after the label ends, and with asynchronous scheduling the device runs an iteration behind.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.base.intervals import merge_by_owner
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.serving.kernels import infer_iterations, phase_of_kernels, serving_kernels
from torch_tb_profiler.model.serving.labeled import (
    DECODE,
    MIXED,
    PREFILL,
    EngineBatches,
    find_labeled,
    iteration_labels,
    unknown_labels,
)
from torch_tb_profiler.model.trace import (
    ABSENT,
    NO_CODE,
    Bool,
    Int8,
    Int32,
    Int64,
    Trace,
    distinct_codes,
    name_mask,
)

GRAPH_SHARE = 0.8
"""Minimum share of an iteration's device events in one graph replay for the graph to be the whole iteration."""

Source = Literal["annotations", "kernels"]


class ServingIterations(msgspec.Struct, frozen=True):
    """Columns of k iterations in order of their begin on the host; ABSENT where unknown.

    engine           as people call it, None where only kernels tell
    source           what the iterations are read from
    event            int32[k] row of the label, NO_CODE where inferred
    phase            int8[k] index into PHASES, or UNKNOWN_PHASE
    phase_inferred   bool[k] the phase is read from kernels, not from the label
    host_start, host_end      int64[k] ns of the label; where inferred, of its launches
    launch_end       int64[k] ns; end of its last launch on the host, at least `host_end`
    device_start, device_end  int64[k] ns; ABSENT without device work
    busy             int64[k] ns in which the device worked on it
    kernel_busy      int64[k] ns in which kernels ran, without copies
    attention        int64[k] ns of attention kernels
    requests, prompt_tokens, decode_requests, decode_tokens, kv_tokens, padded_requests  int64[k]
    context_requests int64[k]
    recomputed       int64[k] tokens of preempted requests that are computed again; part of prompt_tokens
    graph            int8[k] 1 one graph replay is nearly all of it, 0 it isn't, NO_CODE no device work
    owner            int32[n] iteration of each device event, NO_CODE for all others
    drafts           tokens go through the model per decoding request; 1.0 without speculative decoding, None where
                     the labels name drafts without counting them
    idle_labels      int32[j] rows of labels that say that no request is there
    thread           code of the thread that runs the engine's loop
    other_threads    codes of threads that run engines of their own, whose work isn't counted here
    """

    engine: str | None
    source: Source
    event: Int32
    phase: Int8
    phase_inferred: Bool
    host_start: Int64
    host_end: Int64
    launch_end: Int64
    device_start: Int64
    device_end: Int64
    busy: Int64
    kernel_busy: Int64
    attention: Int64
    requests: Int64
    context_requests: Int64
    prompt_tokens: Int64
    decode_requests: Int64
    decode_tokens: Int64
    kv_tokens: Int64
    padded_requests: Int64
    recomputed: Int64
    graph: Int8
    owner: Int32
    drafts: float | None
    idle_labels: Int32
    thread: int
    other_threads: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.phase)

    @property
    def speculative(self) -> bool:
        """Return whether requests put more than one token into an iteration."""
        return self.drafts is None or self.drafts > 1.0


@derived
def serving_iterations(trace: Trace) -> ServingIterations | None:
    """Return the iterations of an engine, from its labels, else from kernels; None if the trace shows none."""
    if (labeled := find_labeled(trace)) is not None:
        return _with_device_work(trace, labeled, "annotations")
    if (inferred := infer_iterations(trace)) is not None:
        return _with_device_work(trace, inferred, "kernels")
    return None


def no_iterations_reason(trace: Trace) -> str | None:
    """Return why a trace has no iterations, or None if it has."""
    if serving_iterations(trace) is not None:
        return None
    unknown = unknown_labels(trace)
    if unknown:
        return f"the iteration labels have an unknown format ({unknown[0]})"
    if iteration_labels(trace):
        return "its labels say that no request came while it was recorded; record while requests run"
    if not serving_kernels(trace).kv_cache.any():
        return "no label of an inference engine and no kernel that uses a paged KV cache was recorded"
    return (
        "iterations have no labels, and no sampling kernel marks where one ends; record annotations of the engine"
    )


def running_before(found: ServingIterations) -> Bool:
    """Return whether requests were already running before each iteration, bool[k].

    Those that decode were. A prefill alone says nothing, so the next decode tells: more requests in it than were
    prefilled since must have been running.
    """
    decodes = (found.phase == DECODE) | (found.phase == MIXED) | (found.decode_requests > 0)
    running: Bool = decodes.copy()
    prefilled = np.where(found.phase == PREFILL, np.maximum(found.context_requests, 0), 0)
    known = found.context_requests != ABSENT
    following, since = 0, 0
    for i in range(len(found) - 1, -1, -1):
        if decodes[i]:
            following, since = max(int(found.decode_requests[i]), 0), 0
        else:
            since += int(prefilled[i])
            running[i] = bool(known[i]) and following > since
    return running


def _with_device_work(trace: Trace, batches: EngineBatches, source: Source) -> ServingIterations:
    """Return the iterations with the device work that each launched."""
    starts, ends, counts = batches.starts, batches.ends, batches.counts
    count = len(starts)
    rows, launch = device_launches(trace)
    times, owner = trace.events.start, batches.owner
    elsewhere = _find_engines_apart(trace, launch, batches)
    if owner is None:
        owner = np.full(len(trace), NO_CODE, np.int32)
        launched = np.where(launch >= 0, times[np.maximum(launch, 0)], times[rows])
        number = np.searchsorted(starts, launched, "right") - 1
        foreign = np.isin(trace.events.thread[np.maximum(launch, 0)], elsewhere) & (launch >= 0)
        owner[rows] = np.where(foreign, NO_CODE, number)
    mine = rows[owner[rows] >= 0]
    number = owner[mine].astype(np.int64)
    begin, finish = times[mine], event_ends(trace)[mine]
    device_start, device_end = np.full(count, np.iinfo(np.int64).max), np.full(count, ABSENT)
    np.minimum.at(device_start, number, begin)
    np.maximum.at(device_end, number, finish)
    device_start[device_end == ABSENT] = ABSENT
    merged = merge_by_owner(number, begin, finish)
    kernels = serving_kernels(trace)
    is_kernel = event_kinds(trace)[mine] == Kind.KERNEL
    kernel_busy = merge_by_owner(number[is_kernel], begin[is_kernel], finish[is_kernel]).totals(count)
    is_attention = kernels.attention[mine]
    attention = merge_by_owner(number[is_attention], begin[is_attention], finish[is_attention]).totals(count)
    launch_end = ends.copy()
    calls = launch[(owner[rows] >= 0) & (launch >= 0)]
    if len(calls):
        np.maximum.at(launch_end, owner[rows][(owner[rows] >= 0) & (launch >= 0)], event_ends(trace)[calls])
    launch_end[:-1] = np.minimum(launch_end[:-1], np.maximum(starts[1:], ends[:-1]))
    graph = _find_graph_flags(trace, rows, launch, owner, count)
    inferred = phase_of_kernels(trace, mine, number, count, graph)
    known = batches.phase >= 0
    return ServingIterations(
        engine=batches.engine,
        source=source,
        event=batches.event,
        phase=np.where(known, batches.phase, inferred).astype(np.int8),
        phase_inferred=~known,
        host_start=starts,
        host_end=ends,
        launch_end=launch_end,
        device_start=device_start,
        device_end=device_end,
        busy=merged.totals(count),
        kernel_busy=kernel_busy,
        attention=attention,
        requests=counts["requests"],
        context_requests=counts["context_requests"],
        prompt_tokens=counts["prompt_tokens"],
        decode_requests=counts["decode_requests"],
        decode_tokens=counts["decode_tokens"],
        kv_tokens=counts["kv_tokens"],
        padded_requests=counts["padded_requests"],
        recomputed=batches.recomputed,
        graph=graph,
        owner=owner,
        drafts=batches.drafts,
        idle_labels=batches.idle_labels,
        thread=batches.thread,
        other_threads=elsewhere,
    )


def _find_engines_apart(trace: Trace, launch: Int32, batches: EngineBatches) -> tuple[int, ...]:
    """Return the further threads with labels that are other engines: those that launch work, as this one does."""
    launching = set(distinct_codes(trace.events.thread[launch[launch >= 0]]))
    if batches.thread not in launching:
        return ()
    return tuple(thread for thread in batches.others if thread in launching)


def is_graph_launch(trace: Trace) -> Bool:
    """Return whether each of `Trace.strings` is the name of a call that replays a graph, bool[strings + 1]."""
    return name_mask(trace.strings, lambda name: "graphlaunch" in name.lower())


def _find_graph_flags(trace: Trace, rows: Int32, launch: Int32, owner: Int32, count: int) -> Int8:
    """Return whether one graph replay holds at least GRAPH_SHARE of each iteration's device events, int8[k]."""
    number = owner[rows]
    mine = number >= 0
    total = np.bincount(number[mine], minlength=count)
    replayed = mine & (launch >= 0)
    replayed[replayed] &= is_graph_launch(trace)[trace.events.name[launch[replayed]]]
    largest = np.zeros(count, np.int64)
    if replayed.any():
        calls, inverse, sizes = np.unique(launch[replayed], return_inverse=True, return_counts=True)
        of_call = np.zeros(len(calls), np.int64)
        of_call[inverse] = number[replayed]
        np.maximum.at(largest, of_call, sizes)
    flags = (largest >= GRAPH_SHARE * total).astype(np.int8)
    flags[total == 0] = NO_CODE
    return flags
