"""Iterations of an inference engine: what they compute and when the host and the device work on them.

host    |- execute_context_0(0)_generation_8(8) -| sample |          |- execute_context_1(512)... -|
            graph launch                       launch                    launches ...
device           [ decode ..................][ sampling ]    idle             [ mixed ..............

An iteration owns the device work launched from the begin of its label to the begin of the next one, because
sampling is launched after the label ends, and with asynchronous scheduling the device runs an iteration behind.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.base.intervals import merge_by_owner
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.serving.kernels import serving_kernels
from torch_tb_profiler.model.serving.labels import (
    PHASES,
    IterationLabel,
    is_unknown_label,
    parse_label,
)
from torch_tb_profiler.model.serving.recomputed import split_recomputed
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

UNKNOWN_PHASE = -1
PREFILL, DECODE, MIXED = (PHASES.index(phase) for phase in ("prefill", "decode", "mixed"))

GRAPH_SHARE = 0.8
"""Minimum share of an iteration's device events in one graph replay for the graph to be the whole iteration."""

MIN_INFERRED = 2
"""Fewest iterations that kernels alone must show: one may be anything."""

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
    drafts           tokens go through the model per decoding request; 1.0 without speculative decoding
    idle_labels      int32[j] rows of labels that say that no request is there
    thread           code of the thread that runs the engine's loop
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
    drafts: float
    idle_labels: Int32
    thread: int

    def __len__(self) -> int:
        return len(self.phase)

    @property
    def speculative(self) -> bool:
        """Return whether requests put more than one token into an iteration."""
        return self.drafts > 1.0


@derived
def serving_iterations(trace: Trace) -> ServingIterations | None:
    """Return the iterations of an engine, from its labels, else from kernels; None if the trace shows none."""
    return _find_labeled(trace) or _infer_iterations(trace)


def no_iterations_reason(trace: Trace) -> str | None:
    """Return why a trace has no iterations, or None if it has."""
    if serving_iterations(trace) is not None:
        return None
    unknown = unknown_labels(trace)
    if unknown:
        return f"the iteration labels have an unknown form ({unknown[0]})"
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


@derived
def unknown_labels(trace: Trace) -> tuple[str, ...]:
    """Return names that read like labels of iterations but have no known form, in order of their codes."""
    rows, known = rows_of_kind(trace, Kind.ANNOTATION), iteration_labels(trace)
    codes = (code for code in distinct_codes(trace.events.name[rows]) if code not in known)
    return tuple(trace.strings[code] for code in codes if is_unknown_label(trace.strings[code]))


@derived
def iteration_labels(trace: Trace) -> dict[int, IterationLabel]:
    """Return what annotations say of their iterations, by the code of their name."""
    rows = rows_of_kind(trace, Kind.ANNOTATION)
    return {
        code: label
        for code in distinct_codes(trace.events.name[rows])
        if (label := parse_label(trace.strings[code])) is not None
    }


def _find_labeled(trace: Trace) -> ServingIterations | None:
    host, parsed = rows_of_kind(trace, Kind.ANNOTATION), iteration_labels(trace)
    if not parsed:
        return None
    labels = list(parsed.values())
    number = np.full(len(trace.strings) + 1, NO_CODE, np.int64)
    number[list(parsed)] = np.arange(len(labels))
    rows = host[number[trace.events.name[host]] >= 0]
    threads, counts = np.unique(trace.events.thread[rows], return_counts=True)
    thread = int(threads[np.argmax(counts)])
    rows = rows[trace.events.thread[rows] == thread]
    start, end = trace.events.start[rows], event_ends(trace)[rows]
    order = np.lexsort((-end, start))
    rows, start, end = rows[order], start[order], end[order]
    groups = _group_twins(start, end)
    return _from_groups(trace, thread, rows, groups, labels, number[trace.events.name[rows]])


def _group_twins(start: Int64, end: Int64) -> Int64:
    """Return the iteration of each label, int64[m]: labels nested in one another are one iteration."""
    reach = np.maximum.accumulate(end)
    outermost = np.append(True, start[1:] >= reach[:-1])
    groups: Int64 = np.cumsum(outermost) - 1
    return groups


_COUNTS = (
    "requests",
    "context_requests",
    "prompt_tokens",
    "decode_requests",
    "decode_tokens",
    "decode_squares",
    "kv_tokens",
    "padded_requests",
)


def _from_groups(
    trace: Trace, thread: int, rows: Int32, groups: Int64, labels: list[IterationLabel], number: Int64
) -> ServingIterations | None:
    """Merge the labels of each group; of two that count the same thing the one with more fields decides."""
    count = int(groups[-1]) + 1
    richness = np.array([sum(getattr(each, name) is not None for name in _COUNTS) for each in labels])
    table = {
        name: np.array([ABSENT if (value := getattr(each, name)) is None else value for each in labels], np.int64)
        for name in _COUNTS
    }
    phases = np.array(
        [UNKNOWN_PHASE if each.phase is None else PHASES.index(each.phase) for each in labels], np.int8
    )
    parts = np.array([0 if each.part is None else 1 if each.part == "draft" else 2 for each in labels], np.int8)
    # Poorest first, so that the richest overwrites; fields that it lacks stay.
    order = np.argsort(richness[number], kind="stable")
    columns = {name: np.full(count, ABSENT, np.int64) for name in _COUNTS}
    phase = np.full(count, UNKNOWN_PHASE, np.int8)
    for name, values in table.items():
        found = values[number[order]]
        known = found != ABSENT
        columns[name][groups[order][known]] = found[known]
    found_phase = phases[number[order]]
    phase[groups[order][found_phase >= 0]] = found_phase[found_phase >= 0]
    first = np.searchsorted(groups, np.arange(count))
    start = trace.events.start[rows][first]
    end = np.maximum.reduceat(event_ends(trace)[rows], first)
    event = rows[first].copy()
    event[groups[order]] = rows[order]
    engine = _engine(labels)
    part = parts[number[first]]
    keep, start, end = _join_drafts(part, start, end)
    idle = PHASES.index("idle")
    is_idle = phase == idle
    keep &= ~is_idle
    if not keep.any():
        return None
    return _finish(
        trace,
        engine=engine,
        source="annotations",
        thread=thread,
        event=event[keep],
        phase=phase[keep],
        starts=start[keep],
        ends=end[keep],
        counts={name: values[keep] for name, values in columns.items()},
        idle_labels=event[is_idle],
        owner=None,
    )


def _engine(labels: list[IterationLabel]) -> str:
    """Return the engine that wrote the labels; SGLang may repeat its own in the form of vLLM."""
    names = [label.engine for label in labels]
    return "SGLang" if "SGLang" in names else max(sorted(set(names)), key=names.count)


def _join_drafts(part: Int8, start: Int64, end: Int64) -> tuple[Bool, Int64, Int64]:
    """Join the draft labels around a verification to its iteration; return which labels stay, and their times."""
    keep = part != 1
    if keep.all():
        return keep, start, end
    if not (part == 2).any():  # drafts alone: each is an iteration
        return np.ones(len(part), np.bool_), start, end
    start, end = start.copy(), end.copy()
    verify = np.flatnonzero(keep)
    for i in np.flatnonzero(part == 1).tolist():
        following = verify[np.searchsorted(verify, i)] if verify[-1] > i else None
        previous = verify[np.searchsorted(verify, i) - 1] if verify[0] < i else None
        # A draft before its verification opens the iteration; DRAFT_EXTEND after it closes it.
        if previous is not None and (following is None or start[i] - end[previous] < start[following] - end[i]):
            end[previous] = max(end[previous], end[i])
        elif following is not None:
            start[following] = min(start[following], start[i])
    return keep, start, end


def _infer_iterations(trace: Trace) -> ServingIterations | None:
    """Return iterations that end with a sampling kernel, if the device uses a paged KV cache."""
    kernels = serving_kernels(trace)
    if not kernels.kv_cache.any() or not kernels.sampler.any():
        return None
    rows, launch = device_launches(trace)
    devices = device_ids(trace)[rows]
    if len(rows) == 0:
        return None
    mine = devices == devices[0]
    rows, launch = rows[mine], launch[mine]
    order = np.argsort(trace.events.start[rows], kind="stable")
    rows, launch = rows[order], launch[order]
    sampler = kernels.sampler[rows]
    is_kernel = event_kinds(trace)[rows] == Kind.KERNEL
    # An iteration begins with the first kernel after a sampler; copies between them still belong to the sampler.
    sampled = np.cumsum(sampler)
    previous_kernel = _previous_kernel(is_kernel)
    opens = is_kernel & ~sampler & (previous_kernel >= 0) & sampler[np.maximum(previous_kernel, 0)]
    group = np.cumsum(opens)
    # Sampling of several kernels makes fragments without attention: they belong to the iteration before.
    count = int(group[-1]) + 1
    has_attention = np.bincount(group, kernels.attention[rows], count) > 0
    number = np.maximum(np.cumsum(has_attention) - 1, 0)[group]
    count = int(number[-1]) + 1
    if count < MIN_INFERRED or sampled[-1] == 0:
        return None
    owner = np.full(len(trace), NO_CODE, np.int32)
    owner[rows] = number
    linked = launch >= 0
    starts, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, ABSENT)
    np.minimum.at(starts, number[linked], trace.events.start[launch[linked]])
    np.maximum.at(ends, number[linked], event_ends(trace)[launch[linked]])
    lonely = ends == ABSENT
    if lonely.any():
        first = np.searchsorted(number, np.flatnonzero(lonely))
        starts[lonely], ends[lonely] = trace.events.start[rows][first], trace.events.start[rows][first]
    calls = launch[linked]
    threads, counts = np.unique(trace.events.thread[calls], return_counts=True)
    return _finish(
        trace,
        engine=None,
        source="kernels",
        thread=int(threads[np.argmax(counts)]) if len(threads) else NO_CODE,
        event=np.full(count, NO_CODE, np.int32),
        phase=np.full(count, UNKNOWN_PHASE, np.int8),
        starts=starts,
        ends=ends,
        counts={name: np.full(count, ABSENT, np.int64) for name in _COUNTS},
        idle_labels=np.empty(0, np.int32),
        owner=owner,
    )


def _previous_kernel(is_kernel: Bool) -> Int64:
    """Return the position of the last kernel before each event, int64[m], NO_CODE if there is none."""
    positions = np.where(is_kernel, np.arange(len(is_kernel)), NO_CODE)
    return np.append(NO_CODE, np.maximum.accumulate(positions)[:-1])


def _finish(
    trace: Trace,
    *,
    engine: str | None,
    source: Source,
    thread: int,
    event: Int32,
    phase: Int8,
    starts: Int64,
    ends: Int64,
    counts: dict[str, Int64],
    idle_labels: Int32,
    owner: Int32 | None,
) -> ServingIterations:
    count = len(starts)
    rows, launch = device_launches(trace)
    times = trace.events.start
    if owner is None:
        owner = np.full(len(trace), NO_CODE, np.int32)
        launched = np.where(launch >= 0, times[np.maximum(launch, 0)], times[rows])
        number = np.searchsorted(starts, launched, "right") - 1
        owner[rows] = number
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
    graph = _graph_flags(trace, rows, launch, owner, count)
    inferred = _phase_of_kernels(trace, mine, number, count, graph)
    known = phase >= 0
    drafts, recomputed, decodes = split_recomputed(counts)
    prompt = counts["prompt_tokens"].copy()
    again = recomputed > 0
    prompt[again] = np.maximum(prompt[again], 0) + recomputed[again]
    phase = np.where(known, phase, inferred).astype(np.int8)
    phase[again] = np.where(decodes[again] > 0, MIXED, PREFILL)
    decode_tokens = counts["decode_tokens"].copy()
    decode_tokens[again] -= recomputed[again]
    return ServingIterations(
        engine=engine,
        source=source,
        event=event,
        phase=phase,
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
        prompt_tokens=prompt,
        decode_requests=decodes,
        decode_tokens=decode_tokens,
        kv_tokens=counts["kv_tokens"],
        padded_requests=counts["padded_requests"],
        recomputed=recomputed,
        graph=graph,
        owner=owner,
        drafts=drafts,
        idle_labels=idle_labels,
        thread=thread,
    )


def _graph_flags(trace: Trace, rows: Int32, launch: Int32, owner: Int32, count: int) -> Int8:
    """Return whether one graph replay holds at least GRAPH_SHARE of each iteration's device events, int8[k]."""
    number = owner[rows]
    mine = number >= 0
    total = np.bincount(number[mine], minlength=count)
    is_graph = name_mask(trace.strings, lambda name: "graphlaunch" in name.lower())
    replayed = mine & (launch >= 0)
    replayed[replayed] &= is_graph[trace.events.name[launch[replayed]]]
    largest = np.zeros(count, np.int64)
    if replayed.any():
        calls, inverse, sizes = np.unique(launch[replayed], return_inverse=True, return_counts=True)
        of_call = np.zeros(len(calls), np.int64)
        of_call[inverse] = number[replayed]
        np.maximum.at(largest, of_call, sizes)
    flags = (largest >= GRAPH_SHARE * total).astype(np.int8)
    flags[total == 0] = NO_CODE
    return flags


def _phase_of_kernels(trace: Trace, rows: Int32, number: Int64, count: int, graph: Int8) -> Int8:
    """Return the phase that attention kernels and graphs tell, int8[k], or UNKNOWN_PHASE.

    One graph that covers the iteration is decode: prompts have too many lengths to be captured as a whole.
    """
    kernels = serving_kernels(trace)
    decode = np.bincount(number, kernels.decode[rows], count) > 0
    prefill = np.bincount(number, kernels.prefill[rows], count) > 0
    phase = np.full(count, UNKNOWN_PHASE, np.int8)
    phase[decode] = DECODE
    phase[prefill] = PREFILL
    phase[decode & prefill] = MIXED
    phase[graph == 1] = DECODE
    return phase
