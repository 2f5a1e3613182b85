"""Rules about sentences on calls and copies that the host waits for, and on what a device could do."""

from __future__ import annotations

import re

from tests.support.random_jobs.rules import BASE, NUMBER, SHARE, Check, Context, first_reason, ratio, us


def _idle(context: Context) -> float:
    return context.typical - context.truth.busy(context.rank, context.odd)


def _count(context: Context, kind: str) -> int:
    return sum(span.kind == kind for span in context.truth.recorded.spans[context.rank])


def _judge_allocations(match: re.Match[str], context: Context) -> str | None:
    """Check for how long a device idles during calls that allocate or free, their number and the longest."""
    calls = [span for span in context.truth.recorded.spans[context.rank] if span.kind == "call"]
    if not calls:
        return "no call allocates or frees memory"
    longest = max(calls, key=lambda span: span.end - span.start)
    return first_reason(
        context.close(
            us(match["time"]), context.truth.idle_while(context.rank, ("call",), context.odd), "that time"
        ),
        None if int(match["count"]) == len(calls) else f"there are {len(calls)}",
        None if match["name"] == longest.name else f"it is {longest.name}",
    )


def _judge_allocator_advice(match: re.Match[str], context: Context) -> str | None:
    """Check that the job without these calls saves what is said: in these jobs, nothing else becomes faster."""
    if context.plan.kind != "allocator":
        return f"what is planted is {context.plan.kind}"
    truth = context.truth
    alone = "on this rank alone" in match[0]
    true = truth.saved_alone_by_shared(context.rank, context.odd) if alone else truth.shared_cost
    gain = us(match["gain"])
    return first_reason(
        context.at_most(gain, min(true, _idle(context)), "the gain"),
        context.at_least(gain, true, "what can be saved"),
    )


def _bounded_gain(kind: str, most: float, match: re.Match[str], context: Context) -> str | None:
    """Check that a gain bounds what the job without the cause saves, and that `most` bounds it."""
    if context.plan.kind != kind:
        return f"what is planted is {context.plan.kind}"
    gain, truth = us(match["gain"]), context.truth
    alone = "on this rank alone" in match[0]
    true = truth.saved_alone_by_shared(context.rank, context.odd) if alone else truth.shared_cost
    return first_reason(
        context.at_most(gain, min(true, most), "the gain"),
        context.at_least(gain, most, "what can be saved"),
    )


def _judge_pageable(match: re.Match[str], context: Context) -> str | None:
    """Check how many copies there are, and for how long they run alone."""
    if context.plan.kind != "copies":
        return "nothing is copied"
    count = _count(context, "copy")
    return first_reason(
        context.close(us(match["time"]), context.truth.copies_alone(context.rank, context.odd), "that time"),
        None if int(match["count"]) == count else f"there are {count}",
    )


def _judge_copy_advice(match: re.Match[str], context: Context) -> str | None:
    most = _idle(context) + context.truth.copies_alone(context.rank, context.odd)
    return _bounded_gain("copies", most, match, context)


def _judge_overlap_advice(match: re.Match[str], context: Context) -> str | None:
    """Check the gain of copies that nothing waits for: they take as long as before, beside everything else."""
    truth, rank = context.truth, context.rank
    most = min(
        _idle(context) + truth.copies_alone(rank, context.odd),
        context.typical - truth.copying(rank, context.odd),
    )
    return _bounded_gain("copies", most, match, context)


def _judge_waiting_copies(match: re.Match[str], context: Context) -> str | None:
    if context.plan.kind != "copies":
        return "nothing is copied"
    if match["name"] != "aten::copy_":
        return "it is aten::copy_"
    most = _idle(context) + context.truth.copies_alone(context.rank, context.odd)
    return context.at_least(us(match["time"]), most, "idle or copying")


def _judge_copies_of_ranks(match: re.Match[str], context: Context) -> str | None:
    """Check what of the job's path is copies: no path has more than all ranks copy."""
    plan, truth, time = context.plan, context.truth, us(match["time"])
    everyone = sum(truth.copying(rank, context.odd_of(rank)) for rank in plan.present)
    return first_reason(
        None if plan.kind == "copies" else "nothing is copied",
        None if 1 < int(match["ranks"]) <= len(plan.present) else f"{len(plan.present)} ranks copy",
        context.at_least(time, everyone, "what all ranks copy"),
        context.close(ratio(match["share"]) * truth.step, time, "that share"),
    )


def _judge_drained_by(match: re.Match[str], context: Context) -> str | None:
    spans = context.truth.recorded.spans[context.rank]
    names = {span.name for span in spans if span.kind in ("sync", "call")}
    if match["name"] not in names:
        return f"it calls {names}"
    return None if _idle(context) > 0 else "the device is never idle"


DEVICE_RULES: tuple[tuple[str, Check], ...] = (
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, the GPU is idle during calls that allocate or free driver memory "
        r"\((?P<count>\d+) in the trace\), the longest being (?P<name>\w+)\.",
        _judge_allocations,
    ),
    (rf"Stop cudaMalloc/cudaFree during training: saves at least (?P<gain>{NUMBER}),.*", _judge_allocator_advice),
    (
        rf"{SHARE} of the idle time follows calls that drained the queue, mostly (?P<name>\w+)\.",
        _judge_drained_by,
    ),
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, copies from pageable memory to the GPU \((?P<count>\d+) in the "
        r"trace\) run without overlapping compute\.",
        _judge_pageable,
    ),
    (
        rf"Copies of (?P<ranks>\d+) ranks take (?P<time>{NUMBER}) of that path per step together, "
        rf"(?P<share>{SHARE})\.",
        _judge_copies_of_ranks,
    ),
    (rf"Copy from pinned memory: saves up to (?P<gain>{NUMBER}),.*", _judge_copy_advice),
    (rf"Use non-blocking copies: saves up to (?P<gain>{NUMBER}),.*", _judge_overlap_advice),
    (
        r"(?P<count>\d+) calls? in the trace waits? for copies between host and GPU\.",
        lambda match, context: (
            None if int(match["count"]) <= 2 * _count(context, "copy") else "it copies less often"
        ),
    ),
    (
        rf"Idle time until the next launch, and copies to the host that overlap no compute, cost "
        rf"(?P<time>{NUMBER}) of {BASE}, most of all in (?P<name>\S+)\.",
        _judge_waiting_copies,
    ),
)
"""(pattern of a whole sentence, what makes it false)."""
