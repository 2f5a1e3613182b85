"""Iterations by their labels: twins, drafts of speculative decoding, and recomputed prompts.

host   |- step[DECODE bs=2] ------------------------|      a label of SGLang, and inside of it its twin in the
         |- execute_2_context_0(...)_generation_2 -|       form of vLLM: one iteration
host   |- step[DRAFT bs=2] -||- step[VERIFY bs=2] -|       one iteration of speculative decoding

Prompts that are computed again after their request was preempted, and drafts, both put more tokens than requests
into what a label calls generation.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.serving.labels import PHASES, IterationLabel, is_unknown_label, parse_label
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, Trace, distinct_codes

UNKNOWN_PHASE = -1
PREFILL, DECODE, MIXED = (PHASES.index(phase) for phase in ("prefill", "decode", "mixed"))

COUNTS = (
    "requests",
    "context_requests",
    "prompt_tokens",
    "decode_requests",
    "decode_tokens",
    "decode_squares",
    "kv_tokens",
    "padded_requests",
)
"""What labels count, each an int64[k] with ABSENT where unknown."""

MAX_DRAFT_TOKENS = 16
"""More tokens than this per request that decodes are a recomputed prompt, not drafts."""

MIN_DRAFT_SHARE = 0.25
"""Minimum share of the iterations with more decode tokens than requests for the engine to be speculating."""


class EngineBatches(msgspec.Struct, frozen=True):
    """Columns of k iterations before device work is assigned to them, in order of their begin on the host.

    engine        as people call it, None where only kernels tell
    thread        code of the thread that runs the engine's loop
    event         int32[k] row of the label, NO_CODE where inferred
    phase         int8[k] index into PHASES, or UNKNOWN_PHASE
    starts, ends  int64[k] ns on the host
    counts        int64[k] by each of COUNTS
    recomputed    int64[k] tokens of preempted requests that are computed again; part of prompt_tokens
    drafts        tokens go through the model per decoding request; None where labels name drafts, but count none
    idle_labels   int32[j] rows of labels that say that no request is there
    others        codes of further threads with labels: other engines of this process, or views of this one
    owner         int32[n] iteration of each device event, NO_CODE for others; None: by the time of its launch
    """

    engine: str | None
    thread: int
    event: Int32
    phase: Int8
    starts: Int64
    ends: Int64
    counts: dict[str, Int64]
    recomputed: Int64
    drafts: float | None
    idle_labels: Int32
    owner: Int32 | None
    others: tuple[int, ...] = ()


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


def find_labeled(trace: Trace) -> EngineBatches | None:
    """Return what the labels of the thread with most of them say, or None without any."""
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
    batches = _merge_groups(trace, thread, rows, groups, labels, number[trace.events.name[rows]])
    others = tuple(threads[threads != thread].tolist())
    return batches and msgspec.structs.replace(batches, others=others)


def _group_twins(start: Int64, end: Int64) -> Int64:
    """Return the iteration of each label, int64[m]: labels nested in one another are one iteration."""
    reach = np.maximum.accumulate(end)
    outermost = np.append(True, start[1:] >= reach[:-1])
    groups: Int64 = np.cumsum(outermost) - 1
    return groups


def _merge_groups(
    trace: Trace, thread: int, rows: Int32, groups: Int64, labels: list[IterationLabel], number: Int64
) -> EngineBatches | None:
    """Merge the labels of each group; of two that count the same thing the one with more fields decides."""
    count = int(groups[-1]) + 1
    richness = np.array([sum(getattr(each, name) is not None for name in COUNTS) for each in labels])
    table = {
        name: np.array([ABSENT if (value := getattr(each, name)) is None else value for each in labels], np.int64)
        for name in COUNTS
    }
    phases = np.array(
        [UNKNOWN_PHASE if each.phase is None else PHASES.index(each.phase) for each in labels], np.int8
    )
    parts = np.array([0 if each.part is None else 1 if each.part == "draft" else 2 for each in labels], np.int8)
    # Poorest first, so that the richest overwrites; fields that it lacks stay.
    order = np.argsort(richness[number], kind="stable")
    columns = {name: np.full(count, ABSENT, np.int64) for name in COUNTS}
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
    part = parts[number[first]]
    keep, start, end = _join_drafts(part, start, end)
    idle = PHASES.index("idle")
    is_idle = phase == idle
    keep &= ~is_idle
    if not keep.any():
        return None
    counts = {name: values[keep] for name, values in columns.items()}
    phase = phase[keep]
    drafts, recomputed = _move_recomputed(counts, phase)
    return EngineBatches(
        engine=_engine(labels),
        thread=thread,
        event=event[keep],
        phase=phase,
        starts=start[keep],
        ends=end[keep],
        counts=counts,
        recomputed=recomputed,
        drafts=None if drafts == 1.0 and (part > 0).any() else drafts,
        idle_labels=event[is_idle],
        owner=None,
    )


def _move_recomputed(counts: dict[str, Int64], phase: Int8) -> tuple[float, Int64]:
    """Count recomputed prompts as prompts, in place; return (tokens per decoding request, recomputed int64[k])."""
    drafts, recomputed, decodes = split_recomputed(counts)
    again = recomputed > 0
    counts["prompt_tokens"][again] = np.maximum(counts["prompt_tokens"][again], 0) + recomputed[again]
    counts["decode_tokens"][again] -= recomputed[again]
    counts["decode_requests"] = decodes
    phase[again] = np.where(decodes[again] > 0, MIXED, PREFILL)
    return drafts, recomputed


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


def split_recomputed(counts: Mapping[str, Int64]) -> tuple[float, Int64, Int64]:
    """Return (tokens per decoding request, recomputed tokens int64[k], requests that decode int64[k]).

    vLLM counts a request that resumes after preemption as generating, with all tokens of its prompt and output.
    Of r such requests among g, the others have one token each: their squares tell how many r is.
    """
    requests, tokens = counts["decode_requests"].copy(), counts["decode_tokens"]
    recomputed = np.zeros(len(requests), np.int64)
    known = (requests > 0) & (tokens > 0)
    excess = known & (tokens > requests)
    if not excess.any():
        return 1.0, recomputed, requests
    ratio = tokens[known] / requests[known]
    many = excess & (tokens > MAX_DRAFT_TOKENS * requests)
    if excess.sum() - many.sum() > MIN_DRAFT_SHARE * known.sum():
        drafts, again = float(np.median(ratio)), many
    else:
        drafts, again = 1.0, excess
    squares = counts["decode_squares"]
    for i in np.flatnonzero(again).tolist():
        resumed = _count_resumed_requests(int(requests[i]), int(tokens[i]), int(squares[i]))
        recomputed[i] = tokens[i] - (requests[i] - resumed)
        requests[i] -= resumed
    return drafts, recomputed, requests


def _count_resumed_requests(requests: int, tokens: int, squares: int) -> int:
    """Return the fewest resumed requests among `requests` that agree with the sums; 1 without squares."""
    if squares == ABSENT:
        return 1
    for resumed in range(1, requests + 1):
        rest = requests - resumed
        tokens_left, squares_left = tokens - rest, squares - rest
        # r numbers with this sum have squares between sum^2 / r and sum^2.
        if tokens_left**2 <= squares_left * resumed and squares_left <= tokens_left**2:
            return resumed
    return 1
