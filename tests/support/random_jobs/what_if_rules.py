"""Rules about sentences on the critical path, and on what faster or less work saves."""

from __future__ import annotations

import re

from tests.support.random_jobs.rules import (
    BASE,
    NUMBER,
    SHARE,
    Check,
    Context,
    first_reason,
    ratio,
    simulated_name,
    us,
)


def _judge_kernels_twice_as_fast(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_device_work(0.5)
    now = us(match["now"]) if match["now"] else context.typical
    return context.at_least(now - us(match["then"]), true, "what faster kernels save")


def _judge_kernels_save(match: re.Match[str], context: Context) -> str | None:
    """Check it against the job's kernels, "at most" against those of the rank if its messages take as long."""
    copies = "copies" in match["what"]
    if match["most"]:
        alone = context.truth.saved_alone_by_kernels(context.rank, copies, context.odd)
        return context.at_most(us(match["saved"]), alone, "what faster kernels save")
    faster = context.truth.with_device_work if copies else context.truth.with_kernels
    true = context.truth.step - faster(0.5)
    return context.at_least(us(match["saved"]), true, "what faster kernels save")


def _judge_host_twice_as_fast(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_host(0.5)
    now = us(match["now"]) if match["now"] else context.typical
    return context.at_least(now - us(match["then"]), true, "what faster host code saves")


def _judge_network_at_most(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_transfers(0.001)
    return context.at_most(us(match["saved"]), true, "what a faster network saves")


def _judge_network_twice(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_transfers(0.5)
    return context.at_least(us(match["now"]) - us(match["then"]), true, "what a faster network saves")


def _judge_network_saves_nothing(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_transfers(0.001)
    return context.at_most(0.0, true, "what a faster network saves")


def _judge_kernels_save_nothing(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_kernels(0.5)
    return context.at_most(0.0, true, "what faster kernels save")


def _judge_saves_nothing(match: re.Match[str], context: Context) -> str | None:
    truth = context.truth
    then = {"them": truth.with_device_work, "host code": truth.with_host, "communication": truth.with_transfers}
    true = truth.step - then[match["what"]](0.5)
    return context.at_most(0.0, true, f"what {match['what']} twice as fast saves")


def _judge_path_share(match: re.Match[str], context: Context) -> str | None:
    """Check that the path has no more of a part than the rank spends on it."""
    limits = {
        "kernels and copies": context.truth.device_work,
        "device work": context.truth.device_work,
        "communication": context.truth.communication,
    }
    part = match["part"].removesuffix(", including any waiting for other ranks")
    if part not in limits:
        return None
    true = limits[part](context.rank, context.odd)
    return context.at_least(ratio(match["share"]) * context.typical, true, f"{part} of this rank")


def _judge_removal(match: re.Match[str], context: Context) -> str | None:
    """Check what has a name: how long it takes, and what the rank saves without it.

    Its communication takes as long as it did, which the sentence says: others may become faster, or may not.
    """
    truth, name = context.truth, simulated_name(match["name"])
    saved = context.typical - us(match["then"])
    if name is None:
        return None
    if name == "communication":
        if "if communication takes" in match[0]:
            return "it is communication that is removed"
        spent, true = truth.communication(context.rank, context.odd), truth.step - truth.with_transfers(0.001)
        return first_reason(
            context.at_least(us(match["time"]), spent, "the communication"),
            context.at_least(saved, true, "what the job saves without communication"),
        )
    communicates = truth.communication(context.rank, context.odd) > 0
    if communicates != ("if communication time stays the same" in match[0]):
        return "other ranks may take longer"
    return first_reason(
        context.at_least(
            us(match["time"]), truth.host_time(context.rank, name, context.odd), f"the time of {name}"
        ),
        (context.at_most if match["best"] else context.close)(
            saved, truth.saved_alone(context.rank, name, context.odd), f"what the rank saves without {name}"
        ),
    )


def _judge_sync_waits(match: re.Match[str], context: Context) -> str | None:
    """Check that it is no less than the rank saves with waits in no step, in a row of those that aren't odd."""
    saved, idle = (
        context.typical - us(match["then"]),
        context.typical - context.truth.busy(context.rank, context.odd),
    )
    true = min(context.truth.saved_by_no_syncs(context.rank, context.odd), idle)
    return first_reason(
        context.at_least(saved, idle, "the idle time"), context.at_most(saved, true, "what the rank saves")
    )


def _judge_allocator_removal(match: re.Match[str], context: Context) -> str | None:
    """Check what a rank saves without what all ranks do, which is to free and allocate memory of the driver."""
    if context.plan.kind != "allocator":
        return "nothing is allocated"
    truth = context.truth
    communicates = truth.communication(context.rank, context.odd) > 0
    if communicates != ("if communication time stays the same" in match[0]):
        return "other ranks may take longer"
    return (context.at_most if match["best"] else context.close)(
        context.typical - us(match["then"]),
        truth.saved_alone_by_shared(context.rank, context.odd),
        "what the rank saves without the allocator's calls",
    )


def _judge_rank_on_path(match: re.Match[str], context: Context) -> str | None:
    if context.truth.planted_odd and match[0].endswith("per step."):
        return "what is done once isn't done in each step"
    return None if int(match["rank"]) in context.plan.present else "the trace of that rank is missing"


def _judge_host_path(match: re.Match[str], context: Context) -> str | None:
    """Check what share of the path of a process without a device has a name."""
    name = simulated_name(match["name"])
    if name is None:
        return None
    true = context.truth.host_time(context.rank, name, context.odd)
    return context.close(ratio(match["share"]) * context.typical, true, f"the time of {name}")


def _judge_removed(match: re.Match[str], context: Context) -> str | None:
    """Check that a process without a device saves what anything that it does takes."""
    names = {span.name for span in context.truth.job.spans[context.rank] if span.kind != "step"}
    saved = us(match["now"]) - us(match["then"])
    times = [context.truth.host_time(context.rank, name, context.odd) for name in names]
    reasons = [context.close(saved, time, "what it takes") for time in times]
    return first_reason(
        None if None in reasons else reasons[0],
        context.close(us(match["now"]), context.typical, "the step"),
    )


WHAT_IF_RULES: tuple[tuple[str, Check], ...] = (
    (rf"(?P<name>[^ ]+|Data loading) is (?P<share>{SHARE}) of the critical path\.", _judge_host_path),
    (rf"Removing it would cut the step from (?P<now>{NUMBER}) to (?P<then>{NUMBER})\.", _judge_removed),
    (
        rf"Making them twice as fast would cut the step(?: from (?P<now>{NUMBER}))? to (?P<then>{NUMBER})"
        r"(?: at best)?\.",
        _judge_kernels_twice_as_fast,
    ),
    (
        rf"Speedups of up to 2× \(within their roofline\) would cut the step(?: from (?P<now>{NUMBER}))? to "
        rf"(?P<then>{NUMBER})(?: at best)?\.",
        _judge_kernels_twice_as_fast,
    ),
    (
        r"(?P<what>Kernels|Kernels and copies) up to twice as fast \((?:kernels )?within their roofline\) would "
        rf"save (?P<most>at most )?(?P<saved>{NUMBER})\.",
        _judge_kernels_save,
    ),
    (
        r"(?P<what>Kernels|Kernels and copies) twice as fast would save "
        rf"(?P<most>at most )?(?P<saved>{NUMBER})\.",
        _judge_kernels_save,
    ),
    (
        rf"A faster network would save at most (?P<saved>{NUMBER})"
        r"(?:, including transfers between the ranks that this one waits for)?\.",
        _judge_network_at_most,
    ),
    (
        rf"Making communication twice as fast would cut the step from (?P<now>{NUMBER}) to (?P<then>{NUMBER})\.",
        _judge_network_twice,
    ),
    (
        rf"Making host code twice as fast would cut the step(?: from (?P<now>{NUMBER}))? to (?P<then>{NUMBER})"
        r"(?: at best)?\.",
        _judge_host_twice_as_fast,
    ),
    (r"A faster network wouldn't help\.", _judge_network_saves_nothing),
    (r"Faster kernels wouldn't help\.", _judge_kernels_save_nothing),
    (
        rf"Making (?P<what>.+) twice as fast wouldn't shorten the (?:step|trace) \({NUMBER}\)\.",
        _judge_saves_nothing,
    ),
    (rf"(?P<share>{SHARE}) of the step's critical path is (?P<part>[a-z ]+?)(?:, .*)?\.", _judge_path_share),
    (
        rf".* step is (?:likely )?[\w-]+-bound: (?P<share>{SHARE}) of its critical path is (?P<part>.+)\.",
        _judge_path_share,
    ),
    (
        rf"The largest part of the critical path of {BASE} is (?P<part>.+) \((?P<share>{SHARE})\)\.",
        _judge_path_share,
    ),
    (
        rf"(?P<name>.+) accounts for (?P<time>{NUMBER}) of the critical path; removing it would cut the step to "
        rf"(?P<then>{NUMBER})(?P<best> at best)?(?: if communication time stays the same)?\.",
        _judge_removal,
    ),
    (
        rf"Removing the waits in .+ would cut the step to (?P<then>{NUMBER})"
        r"(?P<best> at best)?(?: if communication time stays the same)?\.",
        _judge_sync_waits,
    ),
    (
        r"Removing the allocator's calls, with their waits for the device, would cut the step to "
        rf"(?P<then>{NUMBER})(?P<best> at best)?(?: if communication time stays the same)?\.",
        _judge_allocator_removal,
    ),
    (rf"{SHARE} of the (?:job's )?critical path .*is on rank (?P<rank>\d+).*\.", _judge_rank_on_path),
)
"""(pattern of a whole sentence, what makes it false)."""
