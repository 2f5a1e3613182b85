"""Rules about sentences on who is late: in every step, in some of them, in turn, and what that costs."""

from __future__ import annotations

import re
import statistics

from tests.support.random_jobs.cause_rules import WORK_NAMES
from tests.support.random_jobs.rules import (
    BASE,
    NOTABLE_SHARE,
    NUMBER,
    TOLERANCE,
    Check,
    Context,
    first_reason,
    nothing_else,
    us,
)
from tests.support.simulation.simulator import Collective


def _judge_straggler(match: re.Match[str], context: Context) -> str | None:
    names = {int(each) for each in re.findall(r"\d+", match["names"])}
    if not _are_late(names, context):
        return f"late are {sorted(context.late)}, not {sorted(names)}"
    cost, limit = us(match["cost"]), match["limit"]
    if limit:  # of what is named; a missing rank may be as late, or others have slower devices, too
        # No job is faster by more than the work that is gone; chance makes it a little more.
        chance = context.plan.simulation.jitter * context.truth.step
        lateness = sum(context.plan.lateness(each) for each in context.plan.causes if each.rank in names)
        return first_reason(
            context.at_most(cost, context.truth.cost_of(names), "the cost"),
            context.at_least(cost, lateness + chance, "the lateness"),
        )
    return context.close(cost, context.truth.cause_cost, "the cost")


def _are_late(names: set[int], context: Context) -> bool:
    """Return whether these ranks are those that are late and found.

    Of several slower devices one may cost most, as in a pipeline: then the others are said to be slower as well.
    """
    if names in (context.late, context.late - {*context.plan.missing}):
        return True
    cost, others = context.truth.cost_of(names), context.late - names - {*context.plan.missing}
    return names < context.late and others <= context.slower and cost >= NOTABLE_SHARE * context.truth.step


def _judge_differences(match: re.Match[str], context: Context) -> str | None:
    """Check what differences cost that no few ranks cause: none is late in every step, or waits for longer."""
    few = 0 < 4 * len(context.late) <= context.plan.ranks
    wrong = _judge_balanced(match, context) if few or len(context.late) == 1 else None
    plan = context.plan
    longest = max((context.truth.waiting(rank, context.odd) for rank in range(plan.ranks)), default=0.0)
    cost = context.truth.cause_cost  # others may wait in other steps, or wait while they compute
    if plan.late_at_times:
        cost = context.over_typical_steps(cost)
    longest = max(longest, cost)
    return wrong or context.at_least(us(match["cost"]), longest, "the longest waiting")


def _judge_no_small_group(match: re.Match[str], context: Context) -> str | None:
    """Check that no single rank causes far more than half of what all of them do."""
    truth = context.truth
    most = max((truth.cost_of({rank}) for rank in {each.rank for each in context.plan.causes}), default=0.0)
    return "one rank causes most of it" if most > 0.7 * truth.cause_cost + 0.02 * truth.step else None


def _judge_balanced(match: re.Match[str], context: Context) -> str | None:
    plan = context.plan
    if "among them" in match[0] and not {each.rank for each in plan.causes} & {*plan.present}:
        return None  # a missing rank is late; that those found are balanced doesn't say that it isn't
    if context.truth.cause_cost < 1.2 * NOTABLE_SHARE * context.truth.step or not (
        plan.late or plan.late_at_times
    ):
        return None
    return (
        f"{plan.kind}: {plan.causes} costs {context.truth.cause_cost:.0f} of {context.truth.step:.0f} µs per step"
    )


def _judge_no_clear_straggler(match: re.Match[str], context: Context) -> str | None:
    """Judge that a cost within what chance makes of a step isn't clear."""
    return f"{context.late} are" if context.late and not _may_be_chance(context) else None


def _may_be_chance(context: Context) -> bool:
    """Return whether what a late rank costs is below two standard deviations of the time of a step."""
    return context.truth.cause_cost < 2 * context.plan.simulation.jitter * context.truth.step


def _judge_find_straggler(match: re.Match[str], context: Context) -> str | None:
    """Judge that a rank's file alone may only guess, while beside the others it is known."""
    return "nobody is late" if len(context.plan.present) > 1 and not context.late else None


def _judge_pipeline(match: re.Match[str], context: Context) -> str | None:
    actions = (each for program in context.plan.simulation.programs for each in program)
    sends = any(isinstance(each, Collective) and each.name == "send" for each in actions)
    return None if sends else "the ranks send no messages"


def _judge_pipeline_gain(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.communication(context.rank, context.odd)
    return _judge_pipeline(match, context) or context.at_least(us(match["gain"]), true, "communication")


def _judge_pipeline_wait(match: re.Match[str], context: Context) -> str | None:
    """Check a wait; one file doesn't tell it from a link that is slower than the sizes suggest."""
    true = context.truth.exposed(context.rank, context.odd)
    return _judge_pipeline(match, context) or context.at_least(us(match["time"]), true, "communication")


def _judge_costs_little(match: re.Match[str], context: Context) -> str | None:
    """Check what a rank alone costs; ranks that are late in the same steps cost nothing alone.

    Waiting for ranks that are missing counts as transfer: the cost is one among the ranks that are found.
    """
    plan, truth = context.plan, context.truth
    if "rule out chance" in match[0] and _may_be_chance(context):
        noise = 2 * plan.simulation.jitter * truth.step
        return context.at_least(us(match["cost"]), truth.cause_cost + noise, "its cost")
    if not plan.late_at_times:
        return _judge_balanced(match, context)
    cost = context.over_typical_steps(truth.cost_of({int(match["rank"])}, plan.missing))
    return context.close(us(match["cost"]), cost, "its cost")


def _judge_costliest(match: re.Match[str], context: Context) -> str | None:
    """Check what a rank costs at most beside missing ones, and which of these may hide it."""
    plan = context.plan
    cost = context.truth.cost_of({int(match["rank"])}, plan.missing)
    if plan.late_at_times:
        cost = context.over_typical_steps(cost)
    hidden_by = f"rank {plan.missing[0]}" if len(plan.missing) == 1 else "another rank"
    return first_reason(
        context.at_most(us(match["cost"]), cost, "the cost"),
        None if match["other"] == hidden_by else f"missing are {plan.missing}",
    )


def _judge_late_advice(match: re.Match[str], context: Context) -> str | None:
    named = (
        {context.rank}
        if match["name"] == "this rank"
        else {int(each) for each in re.findall(r"\d+", match["name"])}
    )
    if not named <= context.late:
        return f"late are {context.late}"
    truth, rows = context.truth, all(each.kind in ("rows", "larger") for each in context.plan.causes)
    return context.at_most(us(match["gain"]), truth.split_cost if rows else truth.cost_of(named), "the gain")


def _judge_even_split(match: re.Match[str], context: Context) -> str | None:
    if not any(each.kind in ("rows", "larger") for each in context.plan.causes):
        return "no rank has more rows"
    return context.at_most(us(match["saving"]), context.truth.split_cost, "the saving")


def _judge_in_turn(match: re.Match[str], context: Context) -> str | None:
    """Check by how much the latest rank of a step is late: by what is planned, and more or less by chance."""
    plan, truth = context.plan, context.truth
    if not plan.late_at_times or int(match["ranks"]) > len(plan.late_at_times):
        return f"late at times are {plan.late_at_times}"
    latest = [
        max(truth.lateness(rank, step) for rank in plan.present)
        for step in range(truth.steps)
        if step not in truth.planted_odd
    ]
    said = [us(match[each]) for each in ("least", "most") if match[each]]
    wrong = [
        reasons
        for time in said
        if all(reasons := [context.close(time, true, "the lateness of a step") for true in latest])
    ]
    return wrong[0][0] if wrong else None


def _judge_late_once(match: re.Match[str], context: Context) -> str | None:
    """Check in which steps a rank is late, and by how much; the others may be late in the same ones."""
    plan, rank = context.plan, int(match["rank"])
    cause = next((each for each in plan.late_at_times if each.rank == rank), None)
    steps = {int(each) - 1 for each in re.findall(r"#?(\d+)", match["steps"])}
    if cause is None or cause.steps is None or not steps <= {*cause.steps}:
        return f"late at times are {plan.late_at_times}"
    if match["name"] and not re.search(
        cause.kernel if cause.kind == "larger" else WORK_NAMES[cause.kind], match["name"]
    ):
        return f"it is {cause.kind}"
    latest = max(context.truth.lateness(rank, step) for step in steps)
    return context.at_least(us(match["most"]), latest, "the lateness")


def _judge_also_late(match: re.Match[str], context: Context) -> str | None:
    """Check which further ranks are said to be late in few steps."""
    late = {each.rank for each in context.plan.late_at_times}
    named = {int(each) for each in re.findall(r"\d+", match["ranks"])}
    return None if named <= late else f"late at times are {late}"


def _judge_cost_of_turns(match: re.Match[str], context: Context) -> str | None:
    cost = context.over_typical_steps(context.truth.cause_cost)
    return context.at_least(us(match["cost"]), cost, "the cost")


def _judge_advice_on_turns(match: re.Match[str], context: Context) -> str | None:
    if not context.plan.late_at_times:
        return "no rank is late at times"
    known = context.truth.cause_cost if not context.plan.missing else 0.0
    if context.odd:  # what is late in a step that is set aside isn't a cost of the others
        typical = [
            context.plan.lateness(each) * len({*(each.steps or ())} - {*context.odd})
            for each in context.plan.late_at_times
        ]
        known = min(known, sum(typical) / (context.truth.steps - len(context.odd)))
    return context.at_most(us(match["gain"]), known, "the gain")


def _judge_uneven(match: re.Match[str], context: Context) -> str | None:
    """Check that this rank has more work than the others, over all steps."""
    rank = int(match["rank"])
    if rank in context.late:
        return "it is late in every step, so it is a straggler"
    more = {
        each.rank: len(range(context.truth.steps) if each.steps is None else each.steps)
        * context.plan.lateness(each)
        for each in context.plan.causes
        if each.kind in ("larger", "rows")
    }
    if match["amount"] == "less":
        return None if more and more.get(rank, 0) <= min(more.values()) else f"more work: {more}"
    return None if more and more.get(rank, 0) >= max(more.values()) else f"more work: {more}"


def _judge_uneven_by_size(match: re.Match[str], context: Context) -> str | None:
    """Check how long a rank computes for how many rows, beside the median of the others that are found."""
    rank, truth = int(match["rank"]), context.truth
    times = {each: truth.computation(each, context.odd_of(each)) for each in context.plan.present}
    others = statistics.median(time for each, time in times.items() if each != rank)
    causes = [each for each in context.plan.causes if each.rank == rank and each.kind in ("larger", "rows")]
    if not any(each.kind == "rows" or each.kernel == match["name"] for each in causes):
        return f"{match['name']} has as many rows there"
    said, true = float(match["ratio"]), times[rank] / others
    return first_reason(
        None if abs(said - true) <= TOLERANCE * true else f"it computes {true:.2f} times as long",
        None
        if any(abs(int(match["mine"]) / int(match["theirs"]) - each.factor) <= 0.02 for each in causes)
        else "it has another number of rows",
    )


def _judge_getting_there(match: re.Match[str], context: Context) -> str | None:
    truth = context.truth
    whole = sum(truth.durations(context.rank)) + truth.between(context.rank)
    return first_reason(
        None if int(match["steps"]) <= truth.steps else f"there are {truth.steps} steps",
        context.at_least(us(match["time"]), whole, "the whole trace"),
    )


STRAGGLER_RULES: tuple[tuple[str, Check], ...] = (
    (
        r"(?:Of the ranks found, )?(?P<names>[Rr]anks? [\d, and]+)(?: of \S+)? "
        r"(?:is a straggler|are stragglers): .*costs? (?:every|the) "
        rf"other rank (?P<limit>up to )?(?P<cost>{NUMBER}) per step\.",
        _judge_straggler,
    ),
    (
        rf"No rank(?: found)? is a straggler, but rank \d+ computes (?:only {NUMBER}|nothing) per step, the "
        rf"median rank {NUMBER}\.",
        _judge_balanced,
    ),
    (
        r"(?:The ranks are balanced; no straggler|The \d+ ranks found are balanced; no straggler among them)\.",
        _judge_balanced,
    ),
    (
        r"Ranks? .* may be (?:a straggler|stragglers) \(.*\), but \d+ steps? (?:aren't|isn't) enough to tell\.",
        nothing_else,
    ),
    (rf"Split evenly, the same work would save (?P<saving>{NUMBER}) per step\.", _judge_even_split),
    (rf"Find out why (?P<name>.+) (?:is|are) late: saves up to (?P<gain>{NUMBER}),.*", _judge_late_advice),
    (r"No delay is attributed to any rank\.", nothing_else),
    (r"No small group of ranks causes most of it\.", _judge_no_small_group),
    (
        r"(?:No rank is a clear straggler, but|All) differences between the ranks cost "
        rf"(?P<cost>{NUMBER}) per step\.",
        _judge_differences,
    ),
    (
        rf"Rank (?P<rank>\d+) costs the other(?:s most:| rank) (?P<cost>{NUMBER}) per step"
        r"(?:, less than 2% of a step|, but \d+ steps? (?:aren't|isn't) enough to rule out chance)?\.",
        _judge_costs_little,
    ),
    (
        r"Of the ranks that were found, rank (?P<rank>\d+) costs the others most: up to "
        rf"(?P<cost>{NUMBER}) per step, but nothing if (?P<other>.+) is as late anyway\.",
        _judge_costliest,
    ),
    (r"(?:By operator|No delay is attributed to the ranks that were found).*", nothing_else),
    (r"If so, fixing ranks? [\d, and]+ alone saves less, or nothing\.", nothing_else),
    (r"Start here: .*", nothing_else),
    (r"Find out why collectives are slow: .*", _judge_find_straggler),
    (r"Find out what collectives wait for: .*", _judge_find_straggler),
    (
        rf"Use more microbatches, or an interleaved schedule: saves up to (?P<gain>{NUMBER}),.*",
        _judge_pipeline_gain,
    ),
    (
        rf"For (?P<time>{NUMBER}) of {BASE}, this stage of a pipeline computes nothing while its messages "
        r"take longer than their sizes explain: it waits for a neighbor stage, or the link to it is slow\.",
        _judge_pipeline_wait,
    ),
    (r"The pipeline's bubble is part of that, and more microbatches shrink it\.", _judge_pipeline),
    (
        r"As a stage of a pipeline, this rank may wait for stages that finish their microbatches later\.",
        _judge_pipeline,
    ),
    (r"Or a rank is late, or the network is slow; the other ranks' files show which\.", nothing_else),
    (
        rf"Ranks take turns being late: in \d+ of \d+ steps, one of (?P<ranks>\d+) is late by (?P<least>{NUMBER})"
        rf"(?: to (?P<most>{NUMBER}))?\.",
        _judge_in_turn,
    ),
    (
        rf"Find out why ranks take turns being late: saves up to (?P<gain>{NUMBER}),.*",
        _judge_advice_on_turns,
    ),
    (rf"That costs (?P<cost>{NUMBER}) per step\.", _judge_cost_of_turns),
    (
        r"No rank (?:is late in most steps|(?:found )?is a clear straggler)\.",
        _judge_no_clear_straggler,
    ),
    (
        rf"Rank (?P<rank>\d+) is late (?:once|\d+ times): in steps? (?P<steps>.+), by (?:up to )?"
        rf"(?P<most>{NUMBER})(?:, mostly in (?P<name>.+))?\.",
        _judge_late_once,
    ),
    (r"Ranks? (?P<ranks>[\d, and]+) (?:is|are) late at times, too\.", _judge_also_late),
    (
        r"No rank(?: found)? is a straggler, but work is uneven: rank (?P<rank>\d+) has (?P<amount>more|less) "
        r"than the others\.",
        _judge_uneven,
    ),
    (
        r"Work is uneven: rank (?P<rank>\d+) computes (?P<ratio>[\d.]+) × as long as the (?:median|other) rank, "
        r"because (?P<name>\S+) runs on \[(?P<mine>\d+),1,1\] instead of \[(?P<theirs>\d+),1,1\]\.",
        _judge_uneven_by_size,
    ),
    (
        rf"It spends (?P<time>{NUMBER}) getting to (?P<count>\d+) collectives? in (?P<steps>\d+) steps?; "
        rf"the (?:median|other) rank spends {NUMBER}\.",
        _judge_getting_there,
    ),
)
"""(pattern of a whole sentence, what makes it false)."""
