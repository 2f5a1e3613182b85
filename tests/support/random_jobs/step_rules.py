"""Rules about sentences on one rank: how its typical step is spent, its path, odd steps, and what changes save."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

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
    us,
)
from tests.support.simulation.simulator import BETWEEN_OPERATOR, ODD_OPERATOR

RankTime = Callable[[int, Collection[int]], float]
"""Returns a time per step of a rank without its odd steps."""

_IDLE = r"(?:GPU \d is|Both GPUs are|All \d GPUs are)"

_HOST_KINDS = ("host", "load", "frame")


def _judge_busy(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.busy(context.rank, context.odd)
    exposed = match["exposed"]
    return first_reason(
        context.close(ratio(match["share"]) * context.typical, true, "the busy time"),
        _exposed_time(us(exposed), context) if exposed else None,
        _exposed_time(ratio(match["part"]) * context.typical, context) if match["part"] else None,
    )


def _judge_exposed(match: re.Match[str], context: Context) -> str | None:
    return _exposed_time(ratio(match["share"]) * context.typical, context)


def _exposed_time(said: float, context: Context) -> str | None:
    return context.close(said, context.truth.exposed(context.rank, context.odd), "exposed communication")


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


def _judge_largest_kernel(match: re.Match[str], context: Context) -> str | None:
    shares = context.truth.kernel_shares(context.rank)
    top = max(shares, key=lambda name: shares[name])
    said, name = ratio(match["share"]), match["name"]
    if abs(said - shares[top]) > 0.01:
        return f"{top} has {shares[top]:.1%}"
    if name in shares:
        return None if shares[name] >= shares[top] - 0.001 else f"{top} has more"
    return None if top not in name and re.match("NCCL", name) else f"it is {top}"


def _judge_step_count(match: re.Match[str], context: Context) -> str | None:
    durations = [time for i, time in enumerate(context.truth.durations(context.rank)) if i not in context.odd]
    if int(match["count"]) != len(durations):
        return f"it has {len(durations)} typical steps"
    low, high = match["low"], match["high"] or match["low"]
    return first_reason(
        context.close(us(low), min(durations), "the shortest step"),
        context.close(us(high), max(durations), "the longest step"),
    )


def _judge_odd_steps(match: re.Match[str], context: Context) -> str | None:
    """Check which steps are odd, by how much, and that what makes them longer is what was planted in them."""
    steps = [int(each) - 1 for each in re.findall(r"\d+", match["steps"])]
    durations = context.truth.durations(context.rank)
    extras = [durations[step] - context.typical for step in steps]
    if any(abs(extra) < 0.1 * context.typical for extra in extras):
        return "that step is like the others"
    sign = 1 if match["sign"] == "more" else -1
    ends = sorted(sign * extra for extra in extras)
    return first_reason(
        *(_odd_name(match["name"], step, context) for step in steps),
        context.close(us(match["low"]), ends[0], "what it takes more"),
        context.close(us(match["high"] or match["low"]), ends[-1], "what it takes more"),
        context.close(us(match["typical"]), context.typical, "a typical step") if match["typical"] else None,
    )


def _odd_name(name: str | None, step: int, context: Context) -> str | None:
    """Check what a step is said to spend more time in: the largest of what is planted in it."""
    truth = context.truth
    planted = {ODD_OPERATOR: context.plan.odd[1]} if context.plan.odd and step in truth.planted_odd else {}
    stalls = [
        each.us for each in context.plan.late_in(step) if each.kind == "loading" and each.rank == context.rank
    ]
    planted |= {SHARED_LOADER: stalls[0]} if stalls else {}
    if name == ODD_OPERATOR and name not in planted:
        return f"{ODD_OPERATOR} doesn't run in it"
    if not name or not planted:
        return None
    largest = max(planted, key=lambda each: planted[each])
    elsewhere = [context.plan.lateness(each) for each in context.plan.late_in(step) if each.rank != context.rank]
    if max(elsewhere, default=0.0) > planted[largest]:
        return None  # it waits longer for others
    said = "loading data|DataLoader" if largest == SHARED_LOADER else ODD_OPERATOR
    return None if re.search(said, name) else f"it is {largest}"


def _judge_path_share(match: re.Match[str], context: Context) -> str | None:
    """Check that the path has no more of a part than the rank spends on it."""
    limits = {
        "kernels and copies": context.truth.computation,
        "device work": context.truth.computation,
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
    if communicates != ("if communication takes as long" in match[0]):
        return "other ranks may take longer"
    return first_reason(
        context.at_least(
            us(match["time"]), truth.host_time(context.rank, name, context.odd), f"the time of {name}"
        ),
        (context.at_most if match["best"] else context.close)(
            saved, truth.saved_alone(context.rank, name, context.odd), f"what the rank saves without {name}"
        ),
    )


def simulated_name(name: str) -> str | None:
    """Return what the simulation calls it; None for what contains more than one thing."""
    if re.search("[Dd]ata loading|DataLoader", name):
        return SHARED_LOADER
    if name == "All communication":
        return "communication"
    return (
        re.sub(r" \(train\.py:\d+\)$", "", name) if re.fullmatch(r"[\w:]+(?: \(train\.py:\d+\))?", name) else None
    )


def _judge_sync_waits(match: re.Match[str], context: Context) -> str | None:
    true = context.typical - context.truth.busy(context.rank, context.odd)
    return context.at_least(context.typical - us(match["then"]), true, "the idle time")


def _judge_loader_advice(match: re.Match[str], context: Context) -> str | None:
    return _gain_without(SHARED_LOADER, match, context)


def _gain_without(name: str, match: re.Match[str], context: Context) -> str | None:
    """Check that a gain bounds what is saved without what has this name: by the rank alone if it says so."""
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


def _judge_sync_time(match: re.Match[str], context: Context) -> str | None:
    idle = context.typical - context.truth.busy(context.rank, context.odd)
    return first_reason(
        context.at_least(us(match["time"]), idle, "the idle time"),
        None
        if int(match.groupdict().get("calls") or 0) <= context.truth.steps
        else "it has one such call per step",
    )


def _judge_late_collectives(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.communication(context.rank, context.odd)
    return context.at_least(us(match["time"]), true, "communication")


def _rank_groups(context: Context) -> Iterator[list[int]]:
    """Yield the ranks that a mean may be over: all that were read, and those that wait for the late ones."""
    present, late = context.plan.present, context.plan.late
    yield [*present]
    if 0 < len({*late} & {*present}) < len(present):
        yield [rank for rank in present if rank not in late]


def _judge_means(context: Context, *means: tuple[float, RankTime, str]) -> str | None:
    """Return why no group of ranks has all of these means."""
    reasons = [
        first_reason(
            *(
                context.close(said, sum(time(rank, context.odd_of(rank)) for rank in ranks) / len(ranks), what)
                for said, time, what in means
            )
        )
        for ranks in _rank_groups(context)
    ]
    return None if None in reasons else reasons[0]


def _judge_step_heading(match: re.Match[str], context: Context) -> str | None:
    truth, slowest = context.truth, match["slowest"]
    longest = max(truth.typical(rank, context.odd_of(rank)) for rank in context.plan.present)
    return first_reason(
        _judge_means(context, (us(match["mean"]), truth.typical, "the mean step")),
        context.close(us(slowest), longest, "the slowest step") if slowest else None,
    )


def _judge_step_parts(match: re.Match[str], context: Context) -> str | None:
    """Check the mean parts of a step."""
    parts = {name: us(time) for name, time in re.findall(rf"(?:^|, )([a-z ]+) ({NUMBER})", match[0])}
    return _judge_means(
        context,
        (parts.get("kernels", 0.0), context.truth.computation, "kernels"),
        (parts.get("communication", 0.0), context.truth.exposed, "exposed communication"),
    )


def _judge_exposed_of_all(match: re.Match[str], context: Context) -> str | None:
    return _judge_means(context, (us(match["time"]), context.truth.exposed, "exposed communication"))


def _judge_devices_busy(match: re.Match[str], context: Context) -> str | None:
    truth, ranks = context.truth, context.plan.present
    shares = [
        truth.on_device(device).busy(rank, context.odd_of(rank)) / truth.typical(rank, context.odd_of(rank))
        for rank in ranks
        for device in range(truth.devices)
    ]
    said, step = ratio(match["share"]), context.typical
    lowest = match["lowest"]
    return first_reason(
        context.close(said * step, sum(shares) / len(shares) * step, "the busy time"),
        context.close(ratio(lowest) * step, min(shares) * step, "the lowest busy time") if lowest else None,
        None if int(match["count"]) == len(shares) else f"there are {len(shares)} devices",
    )


def _judge_rank_on_path(match: re.Match[str], context: Context) -> str | None:
    if context.truth.planted_odd and match[0].endswith("per step."):
        return "what is done once isn't done in each step"
    return None if int(match["rank"]) in context.plan.present else "the trace of that rank is missing"


def _judge_clock(match: re.Match[str], context: Context) -> str | None:
    """Check by how much a clock is off: relative to the others, so that a common offset is no error."""
    ahead, rank = context.plan.ahead, int(match["rank"])
    if not ahead:
        return "all clocks agree"
    said = us(match["time"]) * (1 if match["sign"] == "ahead" else -1)
    offsets = [ahead[rank] - ahead[other] for other in context.plan.present if other != rank]
    near = min(abs(said - offset) for offset in offsets)
    return None if near <= 0.05 * abs(said) + 50 else f"it is {min(offsets):.0f} to {max(offsets):.0f} µs"


def _judge_workers(match: re.Match[str], context: Context) -> str | None:
    plan = context.plan
    expected = int(match["expected"] or match["read"])
    right = (int(match["read"]), expected) == (len(plan.present), plan.ranks)
    return None if right else f"{len(plan.present)} of {plan.ranks} ranks were read"


def _judge_busy_of_trace(match: re.Match[str], context: Context) -> str | None:
    """Check the busy time of the whole trace, whose steps all count."""
    steps, truth = context.truth.steps, context.truth
    true = truth.busy(context.rank, ()) * steps
    length = truth.typical(context.rank, ()) * steps + truth.between(context.rank)
    return first_reason(
        context.close(us(match["time"]), length, "the length of the trace"),
        None if abs(ratio(match["share"]) - true / length) < 0.02 else f"it is busy for {true / length:.1%}",
    )


def _judge_getting_there(match: re.Match[str], context: Context) -> str | None:
    truth = context.truth
    whole = sum(truth.durations(context.rank)) + truth.between(context.rank)
    return first_reason(
        None if int(match["steps"]) <= truth.steps else f"there are {truth.steps} steps",
        context.at_least(us(match["time"]), whole, "the whole trace"),
    )


def _judge_nothing_stands_out(match: re.Match[str], context: Context) -> str | None:
    if context.truth.shared_cost > 1.5 * NOTABLE_SHARE * context.truth.step:
        return f"all ranks wait {context.truth.shared_cost:.0f} µs for {context.plan.shared}"
    return None


def _judge_outside(match: re.Match[str], context: Context) -> str | None:
    """Check how much time is outside of steps, of the time from the first one to the last."""
    truth = context.truth
    outside, whole = truth.between(context.rank), sum(truth.durations(context.rank))
    if abs(ratio(match["share"]) - outside / (whole + outside)) > 0.02:
        return f"it is {outside / (whole + outside):.1%}"
    right = match["name"] == BETWEEN_OPERATOR
    return context.close(us(match["time"]), outside, "that time") if right else f"it is {BETWEEN_OPERATOR}"


def _judge_after(match: re.Match[str], context: Context) -> str | None:
    between = context.plan.simulation.between
    if between is None or int(match["step"]) % between[0]:
        return "nothing follows that step"
    alone = context.truth.steps - 1 < 2 * between[0]
    return None if alone == (match["who"] == "It") else "that isn't their number"


def _judge_fact_step(match: re.Match[str], context: Context) -> str | None:
    if match["base"] == "An average step" and context.odd:
        return "odd steps are set aside, so it is a typical step"
    return context.close(us(match["time"]), context.typical, "the step")


STEP_RULES: tuple[tuple[str, Check], ...] = (
    (
        rf"Between the first step and the last, (?P<share>{SHARE}) of the time is outside of steps "
        rf"\((?P<time>{NUMBER})(?:, mostly in (?P<name>\S+))?\)\.",
        _judge_outside,
    ),
    (
        r"(?P<who>It|The longest stretch) follows step (?P<step>\d+); averages of steps don't count it\.",
        _judge_after,
    ),
    (
        rf"(?:GPU \d|At least one of \d GPUs) is busy for (?P<share>{SHARE}) of {BASE}"
        rf"(?:, including (?P<exposed>{NUMBER}) of exposed communication|; (?P<part>{SHARE}) of {BASE} is exposed "
        r"communication)?\.",
        _judge_busy,
    ),
    (rf"Exposed communication takes (?P<share>{SHARE}) of {BASE}\.", _judge_exposed),
    (
        rf"{_IDLE} idle for (?P<share>{SHARE}) of {BASE} \({NUMBER} of {NUMBER}\), (?P<part>{NUMBER}) of it "
        r"(?P<cause>.+)\.(?P<whole>)",
        lambda match, context: _idle_cause(us(match["part"]), match["cause"], context),
    ),
    (
        rf"{_IDLE} idle for (?P<share>{SHARE}) of {BASE}, (?:mainly |above all )?while the host (?P<cause>.+) "
        rf"\((?P<part>[\d.]+(?: \S+)?) of (?P<whole>{NUMBER})\)\.",
        _judge_idle,
    ),
    (rf"(?:Largest idle time|Next): (?P<time>{NUMBER}) per step (?P<cause>.+)\.", _judge_idle_time),
    (rf"{SHARE} of the idle time follows a cudaStreamSynchronize that drained the queue\.", _judge_drained),
    (rf"(?P<name>.+) is the top kernel: (?P<share>{SHARE}) of kernel time\.", _judge_largest_kernel),
    (
        rf"(?P<count>\d+) (?:typical )?steps of (?:about )?(?P<low>{NUMBER})(?: to (?P<high>{NUMBER}); .*)?\.",
        _judge_step_count,
    ),
    (
        rf"Steps? (?P<steps>[\d, and]+) takes? (?P<low>{NUMBER})(?: to (?P<high>{NUMBER}))? (?P<sign>more|less)"
        rf"(?: than a typical step \((?P<typical>{NUMBER})\))?(?:, mostly (?:in )?(?P<name>.+))?\.",
        _judge_odd_steps,
    ),
    (r"\d+ more steps? differs? as well\.", nothing_else),
    (rf"(?P<share>{SHARE}) of the step's critical path is (?P<part>[a-z ]+?)(?:, .*)?\.", _judge_path_share),
    (
        rf".* step is [\w-]+-bound: (?P<share>{SHARE}) of its critical path is (?P<part>.+)\.",
        _judge_path_share,
    ),
    (
        rf"The largest part of the critical path of {BASE} is (?P<part>.+) \((?P<share>{SHARE})\)\.",
        _judge_path_share,
    ),
    (
        rf"(?P<name>.+) accounts for (?P<time>{NUMBER}) of the critical path; removing it would cut the step to "
        rf"(?P<then>{NUMBER})(?P<best> at best)?(?: if communication takes as long)?\.",
        _judge_removal,
    ),
    (
        rf"Removing the waits in .+ would cut the step to (?P<then>{NUMBER})"
        r"(?P<best> at best)?(?: if communication takes as long)?\.",
        _judge_sync_waits,
    ),
    (rf"Load data in worker processes: saves up to (?P<gain>{NUMBER}),.*", _judge_loader_advice),
    (rf"Remove per-step synchronization: saves up to (?P<gain>{NUMBER}),.*", _judge_sync_advice),
    (rf"Reduce launch overhead: saves up to (?P<gain>{NUMBER}),.*", _judge_host_advice),
    (rf"Move host work off the training loop: saves up to (?P<gain>{NUMBER}),.*", _judge_host_advice),
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
        rf"(?P<calls>\d+) calls in the trace wait for the GPU to finish; it is then idle for "
        rf"(?P<time>{NUMBER}) of {BASE} until the next launch\.",
        _judge_sync_time,
    ),
    (rf"For (?P<time>{NUMBER}) of {BASE}, collectives .* run longer than .*", _judge_late_collectives),
    (
        rf"(?:A|A typical|An average) step takes (?P<mean>{NUMBER})(?: on the workers that wait for \S+)?"
        rf"(?:, the slowest (?P<slowest>{NUMBER}) \(\S+\))?",
        _judge_step_heading,
    ),
    (rf"(?:[a-z ]+ {NUMBER} \({SHARE}\)(?:, )?)+", _judge_step_parts),
    (rf"Exposed communication: (?P<time>{NUMBER}) per step \({SHARE}\)\.?", _judge_exposed_of_all),
    (
        rf"(?P<count>\d+) devices?(?: \(.*\))?: kernels run for (?P<share>{SHARE}) of the time in "
        rf"(?:typical )?steps(?:, lowest (?P<lowest>{SHARE}) \(\S+\))?",
        _judge_devices_busy,
    ),
    (rf"{SHARE} of the (?:job's )?critical path .*is on rank (?P<rank>\d+).*\.", _judge_rank_on_path),
    (
        rf"The clock of rank (?P<rank>\d+) \(\S+\) is (?P<time>{NUMBER}) (?P<sign>ahead|behind); "
        r"it was corrected.*",
        _judge_clock,
    ),
    (r"(?P<read>\d+) (?:of (?P<expected>\d+) ranks|workers?), span \S+\.", _judge_workers),
    (rf"(?P<base>An average step|A typical step|The step): (?P<time>{NUMBER})", _judge_fact_step),
    (
        rf"GPU \d(?: · .*|, the busiest of \d devices,)? is busy (?P<share>{SHARE}) of the (?P<time>{NUMBER}) "
        r"recorded\.",
        _judge_busy_of_trace,
    ),
    (
        rf"It spends (?P<time>{NUMBER}) getting to (?P<count>\d+) collectives? in (?P<steps>\d+) steps?; "
        rf"the (?:median|other) rank spends {NUMBER}\.",
        _judge_getting_there,
    ),
    (
        r"Either they wait for another rank, or the network is slow; add the other ranks' files to the run to see "
        r"which\.",
        nothing_else,
    ),
    (r"(?:advice: )?No known fix on this rank would save 2% or more\.", nothing_else),
    (r"(?:advice: )?No known fix would save 2% or more\.", _judge_nothing_stands_out),
    (r"(?:advice: )?Nothing stands out: no known fix would save 2% or more\.", _judge_nothing_stands_out),
    (
        r"(?:advice: )?Nothing stands out in typical steps: no known fix would save 2% or more of one\.",
        _judge_nothing_stands_out,
    ),
)
"""(pattern of a whole sentence, what makes it false)."""
