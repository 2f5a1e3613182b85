"""Rules about sentences on waiting and transfer, and on the ranks whose traces are missing."""

from __future__ import annotations

import re

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


def _judge_missing_suspect(match: re.Match[str], context: Context) -> str | None:
    if not context.plan.missing:
        return "no rank is missing"
    if {*context.plan.late} & {*context.plan.missing}:
        return context.at_most(us(match["cost"]), context.truth.cause_cost, "what the missing rank costs")
    return None


def _judge_missing_late(match: re.Match[str], context: Context) -> str | None:
    """Check what missing ranks cost, in most steps or in all; those that are found may be late in the others."""
    missing = {*context.plan.missing}
    if match["rank"] is not None and missing != {int(match["rank"])}:
        return f"missing are {sorted(missing)}"
    cost = context.over_typical_steps(context.truth.cost_of(missing))
    return context.at_least(us(match["cost"]), cost, "what the missing ranks cost")


def _listed(text: str) -> set[int]:
    """Return the ranks of a list such as "0-2, 5"."""
    ends = (each.groups() for each in re.finditer(r"(\d+)(?:-(\d+))?", text))
    return {rank for first, last in ends for rank in range(int(first), int(last or first) + 1)}


def _judge_also_missing(match: re.Match[str], context: Context) -> str | None:
    """Check which ranks are said to be late, perhaps: those whose traces are missing, beside one that is late."""
    named = _listed(match["names"])
    return None if named == {*context.plan.missing} else f"missing are {context.plan.missing}"


def _judge_coverage(match: re.Match[str], context: Context) -> str | None:
    compared, expected = int(match["compared"]), int(match["expected"])
    missing = _listed(match["missing"] or "")
    right = (compared, expected, missing) == (
        len(context.plan.present),
        context.plan.ranks,
        {*context.plan.missing},
    )
    return None if right else f"the missing ranks are {context.plan.missing} of {context.plan.ranks}"


def _judge_split(match: re.Match[str], context: Context) -> str | None:
    waiting = 0.0 if match["waiting"] == "none" else us(match["waiting"])
    transfer = us(match["transfer"])
    truth, rank = context.truth, context.rank
    if match["steps"]:
        return _judge_split_of_steps(match, context)
    if match["what"] != "exposed communication":
        total = us(match["total"])
        rest = us(match["rest"]) if match["rest"] else 0.0
        adds_up = abs(total - waiting - transfer - rest) <= 0.02 * total + context.slack
        return None if adds_up else "the parts don't add up"
    rest = us(match["rest"]) if match["rest"] else 0.0
    if rest and not context.plan.missing:
        return "all ranks were compared"
    if match["least"] or rest:
        return first_reason(
            context.at_least(waiting, truth.waiting(rank, context.odd), "the waiting"),
            context.at_most(transfer + rest, truth.transfer(rank, context.odd), "the transfer"),
        )
    return first_reason(
        context.close(us(match["total"]), truth.exposed(rank, context.odd), "exposed communication"),
        context.close(waiting, truth.waiting(rank, context.odd), "the waiting"),
        context.close(transfer, truth.transfer(rank, context.odd), "the transfer"),
        _awaited(match["awaited"], context),
    )


def _judge_split_of_steps(match: re.Match[str], context: Context) -> str | None:
    """Check what the communication in some steps, together, is spent on."""
    truth, rank = context.truth, context.rank
    named = {number - 1 for number in _listed(match["steps"])}
    others = [number for number in range(truth.steps) if number not in named]
    waiting = 0.0 if match["waiting"] == "none" else us(match["waiting"])
    rest = us(match["rest"]) if match["rest"] else 0.0
    if rest and not context.plan.missing:
        return "all ranks were compared"
    compare_waiting, compare_transfer = (
        (context.at_least, context.at_most) if match["least"] or rest else (context.close, context.close)
    )
    return first_reason(
        None if named <= {*range(truth.steps)} else f"there are {truth.steps} steps",
        context.close(us(match["total"]), len(named) * truth.exposed(rank, others), "exposed communication"),
        compare_waiting(waiting, len(named) * truth.waiting(rank, others), "the waiting"),
        compare_transfer(rest + us(match["transfer"]), len(named) * truth.transfer(rank, others), "the transfer"),
    )


def _judge_odd_communication(match: re.Match[str], context: Context) -> str | None:
    """Check that communication is most of what one step takes more than a typical one."""
    truth, rank = context.truth, context.rank
    typical = truth.exposed(rank, context.odd)
    for number, time in enumerate(truth.durations(rank)):
        others = [each for each in range(truth.steps) if each != number]
        more = truth.exposed(rank, others) - typical
        if more > max(0.4 * (time - context.typical), context.slack):
            return None
    return "no step communicates longer than the others"


def _awaited(awaited: str | None, context: Context) -> str | None:
    """Check for whom a rank waits: that one of the late is named first, if most of the waiting is for them."""
    if not awaited or not context.late or context.rank in context.late or context.plan.missing:
        return None
    first = re.search(r"for rank (\d+)", awaited)
    mostly = context.truth.cause_cost > 0.7 * context.truth.waiting(context.rank, context.odd)
    synchronous = all(len(group) == context.plan.ranks for group in context.truth.groups)
    if first and mostly and synchronous and int(first[1]) not in context.late:
        return f"it waits for {context.late}"
    return None


def _judge_unknown_split(match: re.Match[str], context: Context) -> str | None:
    return None if context.plan.missing else "no rank is missing"


def _judge_waiting_share(match: re.Match[str], context: Context) -> str | None:
    said = float(match["share"]) / 100 * context.typical
    true = context.truth.waiting(context.rank, context.odd)
    return (context.at_least if match["least"] else context.close)(said, true, "the waiting")


def _judge_waits_anyway(match: re.Match[str], context: Context) -> str | None:
    """Check that the rank waits for others, and isn't the one that they wait for."""
    if context.rank in context.late and context.truth.cause_cost > 2 * NOTABLE_SHARE * context.truth.step:
        waits = context.truth.communication(context.rank, context.odd) - context.truth.transfer(context.rank, ())
        return None if waits > context.slack else "the others wait for this rank"
    return None


def _judge_ranks_exposed(match: re.Match[str], context: Context) -> str | None:
    if context.truth.planted_odd and "an average step" in match[0]:
        return "odd steps are set aside, so it is a typical step"
    names = [int(each) for each in re.findall(r"\d+", match["names"])] or [*context.plan.present]
    truth, said = context.truth, ratio(match["share"])
    shares = [
        truth.exposed(rank, context.odd_of(rank)) / truth.typical(rank, context.odd_of(rank)) for rank in names
    ]
    if not any(shares):  # the steps that communicate are the odd ones of these ranks
        shares = [truth.exposed(rank, ()) / truth.typical(rank, ()) for rank in names]
    true = sum(shares) / len(shares)
    step = context.typical
    return context.close(said * step, true * step, "their exposed communication")


def _judge_path_waiting(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.communication(context.rank, context.odd)
    return context.at_least(ratio(match["share"]) * context.typical, true, "communication")


def _judge_late_collectives(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.communication(context.rank, context.odd)
    return context.at_least(us(match["time"]), true, "communication")


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


WAITING_RULES: tuple[tuple[str, Check], ...] = (
    (
        r"(?:A rank|Ranks? [\d, ]+) may be (?:the straggler|stragglers), but .* spend up to "
        rf"(?P<cost>{NUMBER}) per step waiting for (?:it|them)\.",
        _judge_missing_suspect,
    ),
    (
        r"Ranks? (?P<names>[\d, -]+) may be (?:a straggler|stragglers), too: no other trace can show that\.",
        _judge_also_missing,
    ),
    (
        r"All ranks found here wait for "
        r"(?:rank (?P<rank>\d+), whose trace is missing|a rank whose trace is missing), "
        rf"at least (?P<cost>{NUMBER}) per step\.",
        _judge_missing_late,
    ),
    (
        r"(?P<compared>\d+) of (?P<expected>\d+) ranks? (?:was|were) compared; the traces? of ranks? "
        r"(?P<missing>[\d, -]+) (?:is|are) missing\.?",
        _judge_coverage,
    ),
    (
        r"Only \d+ of \d+ ranks were read, too few to name a straggler\.|Only rank \d+ was read\.|"
        r"Add the other .*",
        nothing_else,
    ),
    (
        rf"Of (?P<total>{NUMBER}) of (?P<what>[a-z ]+?)"
        r"(?: in steps? (?P<steps>[\d, and]+))?, "
        rf"(?:(?P<rest>{NUMBER}) can't be compared with another rank; of the other (?P<compared>{NUMBER}), )?"
        rf"(?P<least>at least )?(?P<waiting>none|{NUMBER}) is spent waiting for other ranks"
        rf"(?P<awaited> \([^)]*\))? and (?:at most )?(?P<transfer>{NUMBER}) "
        r"transferring data(?:; waiting for ranks whose part isn't recorded counts as transfer)?\.",
        _judge_split,
    ),
    (
        r"No communication is exposed in these steps\.",
        lambda _, context: context.close(0.0, context.truth.exposed(context.rank, context.odd), "it"),
    ),
    (
        r"Most of that is communication; one rank's file can't tell transfer from waiting for another rank\.",
        _judge_odd_communication,
    ),
    (
        rf"How much of {NUMBER} of .* is waiting for other ranks isn't known exactly, because not every "
        r"rank's part is recorded\.",
        _judge_unknown_split,
    ),
    (
        r"(?P<least>At least )?(?P<share>[\d.]+)% of (?:an average|a typical) step is waiting for other "
        r"ranks[;.].*",
        _judge_waiting_share,
    ),
    (
        rf"(?:Ranks? |The (?:other )?\d+ ranks )(?P<names>[\d, and]*)spends? (?P<share>{SHARE}) of {BASE} in "
        r"exposed communication(?: \([^)]*\)|, (?:most|the largest part) of it in \S+)?\.",
        _judge_ranks_exposed,
    ),
    (
        rf".* is bound by other ranks: (?P<share>{SHARE}) of its critical path is waiting for other ranks\.",
        _judge_path_waiting,
    ),
    (
        rf"The largest part of the critical path of .* is waiting for other ranks \((?P<share>{SHARE})\)\.",
        _judge_path_waiting,
    ),
    (
        r"This rank has several devices, and waits for other ranks can't be assigned to one of them\.",
        lambda _, context: None if context.truth.devices > 1 else "it has one",
    ),
    (r"Faster work on this rank alone would only make it wait longer\.", _judge_waits_anyway),
    (rf"For (?P<time>{NUMBER}) of {BASE}, collectives .* run longer than .*", _judge_late_collectives),
    (
        rf"The clock of rank (?P<rank>\d+) \(\S+\) is (?P<time>{NUMBER}) (?P<sign>ahead|behind); "
        r"it was corrected.*",
        _judge_clock,
    ),
    (r"(?P<read>\d+) (?:of (?P<expected>\d+) ranks|workers?), span \S+\.", _judge_workers),
    (
        r"Either they wait for another rank, or the network is slow; add the other ranks' files to the run to see "
        r"which\.",
        nothing_else,
    ),
)
"""(pattern of a whole sentence, what makes it false)."""
