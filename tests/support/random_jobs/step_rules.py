"""Rules about sentences on one rank's steps: how long they take, what they are made of, and which are odd."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from tests.support.random_jobs.plan import SHARED_LOADER
from tests.support.random_jobs.rules import (
    BASE,
    NUMBER,
    SHARE,
    Check,
    Context,
    first_reason,
    nothing_else,
    ratio,
    us,
)
from tests.support.random_jobs.truth import union_us
from tests.support.simulation.simulator import BETWEEN_OPERATOR, ODD_OPERATOR

RankTime = Callable[[int, Collection[int]], float]
"""Returns a time per step of a rank without its odd steps."""


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


def _judge_largest_kernel(match: re.Match[str], context: Context) -> str | None:
    shares = context.truth.kernel_shares(context.rank, context.odd if match["typical"] else None)
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
        truth.on_device(device).kernels_run(rank, context.odd_of(rank)) / truth.typical(rank, context.odd_of(rank))
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


def _judge_busy_of_cut(match: re.Match[str], context: Context) -> str | None:
    """Check the busy time of a recording that begins and ends in the middle of a step."""
    spans = context.truth.recorded.spans[context.rank]
    whole = max(span.end for span in spans) - min(span.start for span in spans)
    work = [(span.start, span.end) for span in spans if span.kind in ("kernel", "copy", "collective")]
    return first_reason(
        context.close(us(match["time"]), whole, "the length of the trace"),
        None if abs(ratio(match["share"]) - union_us(work) / whole) < 0.02 else f"it is {union_us(work):.0f} µs",
    )


def _judge_busy_of_trace(match: re.Match[str], context: Context) -> str | None:
    """Check the busy time of the whole trace, whose steps all count."""
    steps, truth = context.truth.steps, context.truth
    if context.plan.cut is not None:
        return _judge_busy_of_cut(match, context)
    true = truth.busy(context.rank, ()) * steps
    length = truth.typical(context.rank, ()) * steps + truth.between(context.rank)
    return first_reason(
        context.close(us(match["time"]), length, "the length of the trace"),
        None if abs(ratio(match["share"]) - true / length) < 0.02 else f"it is busy for {true / length:.1%}",
    )


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
    if match["base"] == "An average step" and context.odd - context.truth.left_out(context.rank):
        return "odd steps are set aside, so it is a typical step"
    return context.close(us(match["time"]), context.typical, "the step")


def _judge_largest_category(match: re.Match[str], context: Context) -> str | None:
    """Check the largest part of the step of a process without a device."""
    loads = "loading" in match["name"]
    true = context.truth.idle_while(context.rank, ("load",) if loads else ("host",), context.odd)
    return first_reason(
        context.close(ratio(match["share"]) * context.typical, true, match["name"]),
        None if match["most"] is None else _judge_most_of(match["most"], true, context),
    )


def _judge_most_of(name: str, whole: float, context: Context) -> str | None:
    """Check that half or more of a time is in an operator."""
    part = context.truth.host_time(context.rank, name, context.odd)
    return None if 2 * part >= 0.99 * whole else f"only {part:.0f} of {whole:.0f} µs is in {name}"


STEP_RULES: tuple[tuple[str, Check], ...] = (
    (
        rf"(?P<name>Operators on the host|Data loading) (?:is|are) the largest part of {BASE}: "
        rf"(?P<share>{SHARE})(?:, most of it in (?P<most>\S+))?\.",
        _judge_largest_category,
    ),
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
        rf"(?:, including (?:(?P<exposed>{NUMBER}) of exposed communication)?(?:(?: and )?{NUMBER} of copies "
        rf"while no kernel runs)?|; (?P<part>{SHARE}) of {BASE} is exposed communication)?\.",
        _judge_busy,
    ),
    (rf"Exposed communication takes (?P<share>{SHARE}) of {BASE}\.", _judge_exposed),
    (
        rf"(?P<name>.+) is the top kernel: (?P<share>{SHARE}) of kernel time(?P<typical> in typical steps)?\.",
        _judge_largest_kernel,
    ),
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
    (
        rf"(?:A|A typical|An average) step takes (?P<mean>{NUMBER})(?: on the workers that wait for \S+)?"
        rf"(?:, the slowest (?P<slowest>{NUMBER}) \(\S+\))?",
        _judge_step_heading,
    ),
    (rf"(?:[a-z ]+ {NUMBER} \({SHARE}\)(?:, )?)+", _judge_step_parts),
    (
        rf"(?:Exposed c|C)ommunication: (?P<time>{NUMBER}) per (?:typical )?step \({SHARE}\)\.?",
        _judge_exposed_of_all,
    ),
    (
        rf"(?P<count>\d+) devices?(?: \(.*\))?: kernels run for (?P<share>{SHARE}) of the time in "
        rf"(?:typical )?steps(?:, lowest (?P<lowest>{SHARE}) \(\S+\))?",
        _judge_devices_busy,
    ),
    (rf"(?P<base>An average step|A typical step|The step): (?P<time>{NUMBER})", _judge_fact_step),
    (
        rf"GPU \d(?: · .*|, the busiest of \d devices,)? is busy (?P<share>{SHARE}) of the (?P<time>{NUMBER}) "
        r"recorded\.",
        _judge_busy_of_trace,
    ),
)
"""(pattern of a whole sentence, what makes it false)."""
