"""Rules about sentences on why a device idles, and the advice on it."""

from __future__ import annotations

import re
import statistics

from tests.support.random_jobs.plan import SHARED_LOADER
from tests.support.random_jobs.rules import (
    BASE,
    NOTABLE_SHARE,
    NUMBER,
    SHARE,
    Check,
    Context,
    first_reason,
    nothing_else,
    ratio,
    simulated_name,
    us,
)

_IDLE = r"(?:GPU \d is|Both GPUs are|All \d GPUs are)"


_HOST_KINDS = ("host", "load", "frame")


def _judge_idle(match: re.Match[str], context: Context) -> str | None:
    idle = context.typical - context.truth.busy(context.rank, context.odd)
    said = ratio(match["share"]) * context.typical
    part = match["part"] or match["whole"]
    part = part if " " in part else f"{part} {match['whole'].split(' ')[1]}"
    return first_reason(
        context.close(said, idle, "the idle time"),
        context.close(us(match["whole"]), idle, "the idle time"),
        _idle_cause(us(part), match["cause"], context),
    )


def _judge_idle_time(match: re.Match[str], context: Context) -> str | None:
    return _idle_cause(us(match["time"]), match["cause"], context)


def _idle_cause(said: float, cause: str, context: Context) -> str | None:
    """Check how long the device idles for a cause; all code on the host is one, as frames contain operators."""
    truth, idle = context.truth, context.typical - context.truth.busy(context.rank, context.odd)
    if re.search("loading data|data loading", cause):
        return context.close(said, truth.idle_while(context.rank, ("load",), context.odd), "idle for data")
    if re.search("operators|Python|annotated", cause):
        return context.at_least(
            said, truth.idle_while(context.rank, _HOST_KINDS, context.odd), "idle for host code"
        )
    return context.at_least(said, idle, "the idle time")


def _judge_drained(match: re.Match[str], context: Context) -> str | None:
    """Check that calls drained the queue: each step ends with one, after which nothing is queued."""
    idle = context.typical - context.truth.busy(context.rank, context.odd)
    return None if idle > 0 else "the device is never idle"


def _judge_loader_advice(match: re.Match[str], context: Context) -> str | None:
    return _gain_without(SHARED_LOADER, match, context)


def _gain_without(name: str, match: re.Match[str], context: Context) -> str | None:
    """Check that a gain bounds what is saved without what has this name: by the rank alone if it says so.

    The job may save more than a rank alone: in a pipeline a stage idles in an operator for less long where it has
    work that its device does meanwhile, while the job waits for the stage before, which has none.
    """
    if "on this rank alone" in match[0]:
        true = context.truth.saved_alone(context.rank, name, context.odd)
    else:
        true = context.truth.step - context.truth.without_named(name)
    return context.at_most(us(match["gain"]), min(true, _time_alone(name, context)), "the gain")


def _judge_sync_advice(match: re.Match[str], context: Context) -> str | None:
    # No rank becomes faster than its device is busy, whatever the others do.
    idle = context.typical - context.truth.busy(context.rank, context.odd)
    return context.at_most(
        us(match["gain"]), min(context.truth.saved_by_no_syncs(context.rank, context.odd), idle), "the gain"
    )


def _judge_code_advice(match: re.Match[str], context: Context) -> str | None:
    """Check advice on host code that this rank runs."""
    name = simulated_name(match["name"])
    if name is None or not _time_alone(name, context):
        return f"this rank doesn't run {match['name']}"
    return _gain_without(name, match, context)


def _judge_host_advice(match: re.Match[str], context: Context) -> str | None:
    """Check advice on all host code: what one rank gains is no more than its device idles."""
    idle = context.typical - context.truth.busy(context.rank, context.odd)
    return context.at_least(us(match["gain"]), idle, "the idle time")


def _time_alone(name: str, context: Context) -> float:
    return context.truth.host_time(context.rank, name, context.odd)


def _judge_idle_in_code(match: re.Match[str], context: Context) -> str | None:
    name = simulated_name(match["name"])
    if name is None:
        return None
    return context.at_least(us(match["time"]), _time_alone(name, context), f"the time of {name}")


def _judge_loading_time(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.idle_while(context.rank, ("load",), context.odd)
    return context.close(us(match["time"]), true, "idle for data")


def _loading_stalls(context: Context) -> tuple[list[float], float, int]:
    """Return (µs of each odd step that mostly waits for data, those of a typical step, steps but one)."""
    truth, rank = context.truth, context.rank
    complete = [number for number in range(truth.steps) if number not in truth.left_out(rank)]
    waits = [truth.idle_while(rank, ("load",), {*range(truth.steps)} - {number}) for number in complete[1:]]
    durations = truth.durations(rank)
    stalls = [
        wait
        for number, wait in zip(complete[1:], waits, strict=True)
        if number in context.odd and 2 * wait > durations[number]
    ]
    return stalls, truth.idle_while(rank, ("load",), context.odd), len(complete) - 1


def _judge_loading_stalls(match: re.Match[str], context: Context) -> str | None:
    stalls, typical, steps = _loading_stalls(context)
    if int(match["count"]) != len(stalls):
        return f"{len(stalls)} steps mostly wait for data"
    return first_reason(
        context.close(us(match["wait"]), statistics.median(stalls), "a stall"),
        context.close(us(match["time"]), sum(stalls) / steps, "what they add per step"),
        None if typical < NOTABLE_SHARE * context.typical else f"other steps wait {typical:.0f} µs",
    )


def _judge_stalls_advice(match: re.Match[str], context: Context) -> str | None:
    """Check that the gain is the time by which the stalled steps are longer, spread over all but the first."""
    stalls, _, steps = _loading_stalls(context)
    if not stalls:
        return "no step mostly waits for data"
    times = [context.truth.durations(context.rank)[number] for number in sorted(context.odd) if number]
    longer = sorted(time - context.typical for time in times)[-len(stalls) :]
    return context.close(us(match["gain"]), sum(longer) / steps, "what is saved")


def _judge_sync_time(match: re.Match[str], context: Context) -> str | None:
    idle = context.typical - context.truth.busy(context.rank, context.odd)
    return first_reason(
        context.at_least(us(match["time"]), idle, "the idle time"),
        None
        if int(match.groupdict().get("calls") or 0) <= context.truth.steps
        else "it has one such call per step",
    )


def _judge_nothing_stands_out(match: re.Match[str], context: Context) -> str | None:
    if context.plan.kind == "cpu" and context.plan.shared and context.plan.shared[0] == "host":
        return None  # it is an operator as any other there
    if context.truth.shared_cost > 1.5 * NOTABLE_SHARE * context.truth.step:
        return f"all ranks wait {context.truth.shared_cost:.0f} µs for {context.plan.shared}"
    return None


IDLE_RULES: tuple[tuple[str, Check], ...] = (
    (
        rf"{_IDLE} idle for (?P<share>{SHARE}) of {BASE} \({NUMBER} of {NUMBER}\), (?P<part>{NUMBER}) of it "
        r"(?P<cause>.+)\.(?P<whole>)",
        lambda match, context: _idle_cause(us(match["part"]), match["cause"], context),
    ),
    (
        rf"{_IDLE} idle for (?P<share>{SHARE}) of {BASE}, (?:mainly |the largest part of it )?"
        rf"while the host (?P<cause>.+) \((?P<part>[\d.]+(?: \S+)?) of (?P<whole>{NUMBER})\)\.",
        _judge_idle,
    ),
    (rf"(?:Largest idle time|Next): (?P<time>{NUMBER}) per step (?P<cause>.+)\.", _judge_idle_time),
    (rf"{SHARE} of the idle time follows a cudaStreamSynchronize that drained the queue\.", _judge_drained),
    (rf"Load data in worker processes: saves up to (?P<gain>{NUMBER}),.*", _judge_loader_advice),
    (rf"Keep more batches ready: saves up to (?P<gain>{NUMBER}),.*", _judge_stalls_advice),
    (
        rf"In (?P<count>\d+) steps, training waits (?P<wait>{NUMBER}) for the next batch \(median\), but hardly "
        rf"in the others: (?P<time>{NUMBER}) per step, averaged over all steps but the first\.",
        _judge_loading_stalls,
    ),
    (rf"Remove (?:per-step )?synchronization: saves up to (?P<gain>{NUMBER}),.*", _judge_sync_advice),
    (rf"Reduce launch overhead: saves up to (?P<gain>{NUMBER}),.*", _judge_host_advice),
    (rf"Move host work off the training loop: saves up to (?P<gain>{NUMBER}),.*", _judge_host_advice),
    (rf"Record call stacks to see what the host does: saves up to (?P<gain>{NUMBER}),.*", _judge_host_advice),
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, the GPU is idle in stretches of over a millisecond while the host "
        r"runs code outside of operators and calls, of which nothing is recorded\.",
        _judge_sync_time,
    ),
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, the GPU is idle in many short gaps because the host hasn't launched "
        r"the next kernel yet; the median launched kernel, copy or memset takes .*\.",
        _judge_sync_time,
    ),
    (
        rf"{_IDLE} idle for (?P<share>{SHARE}) of {BASE}, while the host (?P<cause>.+) \((?P<whole>{NUMBER})\)\."
        r"(?P<part>)",
        _judge_idle,
    ),
    (rf"Shorten (?P<name>.+): saves up to (?P<gain>{NUMBER}),.*", _judge_code_advice),
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, the GPU is idle in gaps of up to a millisecond while the host is in "
        rf"(?P<name>.+), which launches nothing; a call of it takes {NUMBER} \(median\)\.",
        _judge_idle_in_code,
    ),
    (rf"Look into (?P<name>.+): saves up to (?P<gain>{NUMBER}),.*", _judge_code_advice),
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, the GPU is idle while the host is in (?P<name>.+)\.",
        _judge_idle_in_code,
    ),
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, the training process loads the next batch and nothing else runs\.",
        _judge_loading_time,
    ),
    (
        rf"(?P<calls>\d+) calls? in the trace waits? for the GPU to finish; it is then idle for "
        rf"(?P<time>{NUMBER}) of {BASE} until the next launch\.",
        _judge_sync_time,
    ),
    (r"(?:Another rank is|Other ranks are) late in some steps: look at Distributed\.", nothing_else),
    (r"(?:advice: )?No known fix on this rank would save 2% or more\.", nothing_else),
    (r"(?:advice: )?No known fix would save 2% or more\.", _judge_nothing_stands_out),
    (r"(?:advice: )?Nothing stands out: no known fix would save 2% or more\.", _judge_nothing_stands_out),
    (
        r"(?:advice: )?Nothing stands out(?: in typical steps)?: no known fix on this rank would save 2% or more"
        r"(?: of one)?\.",
        nothing_else,
    ),
    (
        r"(?:advice: )?Nothing stands out in typical steps: no known fix would save 2% or more of one\.",
        _judge_nothing_stands_out,
    ),
)
"""(pattern of a whole sentence, what makes it false)."""
