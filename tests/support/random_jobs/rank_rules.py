"""Rules about sentences that compare ranks: stragglers, waiting, missing ranks, and what changes save the job."""

from __future__ import annotations

import re

from tests.support.random_jobs.plan import DELAY_NAMES, SHARED_OPERATOR
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
from tests.support.simulation.simulator import Host, SimulatedKernel


def _judge_straggler(match: re.Match[str], context: Context) -> str | None:
    names = {int(each) for each in re.findall(r"\d+", match["names"])}
    if not _are_late(names, context):
        return f"late are {sorted(context.late)}, not {sorted(names)}"
    cost, limit = us(match["cost"]), match["limit"]
    if limit:
        return context.at_most(cost, context.truth.cause_cost, "the cost")
    return context.close(cost, context.truth.cause_cost, "the cost")


def _are_late(names: set[int], context: Context) -> bool:
    """Return whether these ranks are those that are late and found, or some whose lateness alone is notable."""
    if names == context.late or names == context.late - {*context.plan.missing}:
        return True
    notable = NOTABLE_SHARE * context.truth.step
    return names < context.late and context.truth.cost_of(names) >= notable


def _judge_differences(match: re.Match[str], context: Context) -> str | None:
    """Check what differences cost that no few ranks cause: none is late in every step, or waits for longer."""
    few = 0 < 4 * len(context.late) <= context.plan.ranks
    wrong = _judge_balanced(match, context) if few or len(context.late) == 1 else None
    plan = context.plan
    longest = max((context.truth.waiting(rank, context.odd) for rank in range(plan.ranks)), default=0.0)
    cost = context.truth.cause_cost  # others may wait in other steps, or wait while they compute
    if plan.late_at_times:  # a step in which none does may be the odd one
        cost *= context.truth.steps / (context.truth.steps - len(context.odd))
    longest = max(longest, cost)
    return wrong or context.at_least(us(match["cost"]), longest, "the longest waiting")


def _judge_balanced(match: re.Match[str], context: Context) -> str | None:
    plan = context.plan
    if context.truth.cause_cost < 1.2 * NOTABLE_SHARE * context.truth.step or not (
        plan.late or plan.late_at_times
    ):
        return None
    return (
        f"{plan.kind}: {plan.causes} costs {context.truth.cause_cost:.0f} of {context.truth.step:.0f} µs per step"
    )


def _judge_missing_suspect(match: re.Match[str], context: Context) -> str | None:
    if not context.plan.missing:
        return "no rank is missing"
    if {*context.plan.late} & {*context.plan.missing}:
        return context.at_most(us(match["cost"]), context.truth.cause_cost, "what the missing rank costs")
    return None


def _judge_missing_straggler(match: re.Match[str], context: Context) -> str | None:
    if not context.late & {*context.plan.missing}:
        return "the late rank isn't missing"
    return context.at_least(us(match["cost"]), context.truth.cause_cost, "what the missing rank costs")


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


def _judge_kernels_twice_as_fast(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_kernels(0.5)
    now = us(match["now"]) if match["now"] else context.typical
    return context.at_least(now - us(match["then"]), true, "what faster kernels save")


def _judge_kernels_save(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_kernels(0.5)
    return context.at_least(us(match["saved"]), true, "what faster kernels save")


def _judge_host_twice_as_fast(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.step - context.truth.with_host(0.5)
    now = us(match["now"]) if match["now"] else context.typical
    return context.at_least(now - us(match["then"]), true, "what faster host code saves")


def _judge_find_straggler(match: re.Match[str], context: Context) -> str | None:
    """A rank's file alone may only guess; beside the others it is known."""
    return "nobody is late" if len(context.plan.present) > 1 and not context.late else None


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
    then = {"them": truth.with_kernels, "host code": truth.with_host, "communication": truth.with_transfers}
    true = truth.step - then[match["what"]](0.5)
    return context.at_most(0.0, true, f"what {match['what']} twice as fast saves")


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
    odd = context.odd_of
    shares = [truth.exposed(rank, odd(rank)) / truth.typical(rank, odd(rank)) for rank in names]
    true = sum(shares) / len(shares)
    step = context.typical
    return context.close(said * step, true * step, "their exposed communication")


def _judge_path_waiting(match: re.Match[str], context: Context) -> str | None:
    true = context.truth.communication(context.rank, context.odd)
    return context.at_least(ratio(match["share"]) * context.typical, true, "communication")


def _judge_costs_little(match: re.Match[str], context: Context) -> str | None:
    """Check what a rank alone costs; ranks that are late in the same steps cost nothing alone."""
    plan, truth = context.plan, context.truth
    if not plan.late_at_times or plan.missing:
        return _judge_balanced(match, context)
    scale = truth.steps / (truth.steps - len(context.odd))  # an odd step may be that in which it isn't late
    return context.close(us(match["cost"]), scale * truth.cost_of({int(match["rank"])}), "its cost")


WORK_NAMES = {
    "host": "prepare_batch",
    "frame": "prepare_batch|aten::sort",
    "loading": "DataLoader|the data loader|load data|loading data",
    "work": "extra_expert",
}
"""Kind of cause -> what names it."""


def _judge_cause_name(match: re.Match[str], context: Context) -> str | None:
    """Check what a late rank spends its time on."""
    cause = context.plan.cause_of(int(match["rank"]))
    if cause is None:
        return "that rank isn't planted to be late"
    if cause.kind == "rows":
        kernels = [
            each for each in context.plan.simulation.programs[cause.rank] if isinstance(each, SimulatedKernel)
        ]
        time = cause.factor * sum(each.us for each in kernels if each.name == match["name"])
        return context.close(us(match["time"]), time, "the time") if time else "all its kernels are larger"
    if cause.kind not in WORK_NAMES:
        return f"its device is {cause.factor:.2f} times as slow"
    if not re.search(WORK_NAMES[cause.kind], match["name"]):
        return f"it is {WORK_NAMES[cause.kind]}"
    # What every rank spends on the same counts as well, as the sentence says how long this rank is in it.
    everyone = [
        each.us
        for each in context.plan.simulation.programs[cause.rank]
        if isinstance(each, Host) and each.name in DELAY_NAMES[cause.kind]
    ]
    return context.close(us(match["time"]), cause.us + sum(everyone), "the time")


def _judge_more_work(match: re.Match[str], context: Context) -> str | None:
    """Check that a rank has larger kernels, and how much larger: the grid is all that the simulation records."""
    cause = context.plan.cause_of(int(match["rank"]))
    if cause is None or cause.kind != "rows":
        return "it has as much work as the others"
    said = int(match["mine"]) / int(match["theirs"])
    return None if abs(said - cause.factor) <= 0.02 else f"it is {cause.factor:.2f} times as large"


def _judge_slower_device(match: re.Match[str], context: Context) -> str | None:
    cause = context.plan.cause_of(int(match["rank"]))
    if cause is None or cause.kind != "device":
        return "no device is slower"
    ratio = float(match["ratio"])
    return None if abs(ratio - cause.factor) <= 0.05 * cause.factor else f"it is {cause.factor:.2f} times as slow"


def _judge_slower_devices(match: re.Match[str], context: Context) -> str | None:
    """Check which ranks have slower devices, of which there are too many to be stragglers."""
    slower = {each.rank: each.factor for each in context.plan.causes if each.kind == "device"}
    named = {int(each) for each in re.findall(r"\d+", match["names"])}
    if named != {*slower} & {*context.plan.present}:
        return f"slower are {slower}"
    low, high = float(match["low"]), float(match["high"] or match["low"])
    true = [slower[rank] for rank in named]
    return None if min(true) / 1.05 <= low <= high <= 1.05 * max(true) else f"they are {true} times as slow"


def _judge_late_advice(match: re.Match[str], context: Context) -> str | None:
    named = (
        {context.rank}
        if match["name"] == "this rank"
        else {int(each) for each in re.findall(r"\d+", match["name"])}
    )
    if not named <= context.late:
        return f"late are {context.late}"
    truth, rows = context.truth, all(each.kind == "rows" for each in context.plan.causes)
    return context.at_most(us(match["gain"]), truth.split_cost if rows else truth.cause_cost, "the gain")


def _judge_even_split(match: re.Match[str], context: Context) -> str | None:
    if not any(each.kind == "rows" for each in context.plan.causes):
        return "no rank has more rows"
    return context.at_most(us(match["saving"]), context.truth.split_cost, "the saving")


def _judge_nobody_late(match: re.Match[str], context: Context) -> str | None:
    return _judge_balanced(match, context)


def _judge_shared_advice(match: re.Match[str], context: Context) -> str | None:
    """Check advice on what all ranks do: its gain bounds from above what the job without it saves."""
    if context.plan.shared is None:
        return f"no rank runs {SHARED_OPERATOR}"
    return context.at_most(us(match["gain"]), context.truth.shared_cost, "the gain")


def _judge_in_turn(match: re.Match[str], context: Context) -> str | None:
    plan = context.plan
    times = [plan.lateness(each) for each in plan.late_at_times]
    if not times or int(match["ranks"]) > len(times):
        return f"late at times are {plan.late_at_times}"
    return context.at_least(us(match["most"] or match["least"]), max(times), "the lateness")


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
    return context.at_least(us(match["most"]), plan.lateness(cause), "the lateness")


def _judge_cost_of_turns(match: re.Match[str], context: Context) -> str | None:
    steps = context.truth.steps  # of which an odd one may be that in which none stalls
    cost = context.truth.cause_cost * steps / (steps - len(context.odd))
    return context.at_least(us(match["cost"]), cost, "the cost")


def _judge_advice_on_turns(match: re.Match[str], context: Context) -> str | None:
    if not context.plan.late_at_times:
        return "no rank is late at times"
    known = context.truth.cause_cost if not context.plan.missing else 0.0
    return context.at_most(us(match["gain"]), known, "the gain")


def _judge_cause_of_turns(match: re.Match[str], context: Context) -> str | None:
    """Check what all ranks that are late at times do then."""
    kinds = {
        each.kernel if each.kind == "larger" else WORK_NAMES[each.kind] for each in context.plan.late_at_times
    }
    said = match.groupdict().get("kernel") or match.groupdict().get("name")
    if said is None:
        return f"it is {kinds}"
    return None if len(kinds) == 1 and re.search(kinds.pop(), said) else f"it is {kinds}"


def _judge_uneven(match: re.Match[str], context: Context) -> str | None:
    """Check that this rank has more work than the others, over all steps."""
    more = {
        each.rank: len(each.steps or ()) * context.plan.lateness(each)
        for each in context.plan.causes
        if each.kind == "larger"
    }
    rank = int(match["rank"])
    if match["amount"] == "less":
        return None if more and more.get(rank, 0) <= min(more.values()) else f"more work: {more}"
    return None if more and more.get(rank, 0) >= max(more.values()) else f"more work: {more}"


RANK_RULES: tuple[tuple[str, Check], ...] = (
    (
        r"(?P<names>Ranks? [\d, and]+)(?: of \S+)? (?:is a straggler|are stragglers): .*costs? (?:every|the) "
        rf"other rank (?P<limit>up to )?(?P<cost>{NUMBER}) per step\.",
        _judge_straggler,
    ),
    (
        r"(?:The ranks are balanced; no straggler|The \d+ ranks found are balanced; no straggler among them)\.",
        _judge_balanced,
    ),
    (
        r"Ranks? .* may be (?:a straggler|stragglers) \(.*\), but \d+ steps? (?:aren't|isn't) enough to tell\.",
        nothing_else,
    ),
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
        r"The straggler's trace is missing: all ranks found here wait for it, at least "
        rf"(?P<cost>{NUMBER}) per step\.",
        _judge_missing_straggler,
    ),
    (
        r"(?P<compared>\d+) of (?P<expected>\d+) ranks? (?:was|were) compared; the traces? of ranks? "
        r"(?P<missing>[\d, -]+) (?:is|are) missing\.?",
        _judge_coverage,
    ),
    (
        r"Only \d+ of \d+ ranks were found, too few to name a straggler\.|Only rank \d+ was found\.|"
        r"Add the other .*",
        nothing_else,
    ),
    (
        rf"Of (?P<total>{NUMBER}) of (?P<what>[a-z ]+), (?P<least>at least )?(?P<waiting>none|{NUMBER}) is "
        rf"spent waiting for other ranks(?P<awaited> \([^)]*\))? and (?:at most )?(?P<transfer>{NUMBER}) "
        rf"transferring data(?:; (?P<rest>{NUMBER}) can't be compared with another rank)?"
        r"(?:; waiting for ranks whose part isn't recorded counts as transfer)?\.",
        _judge_split,
    ),
    (
        r"No communication is exposed in these steps\.",
        lambda _, context: context.close(0.0, context.truth.exposed(context.rank, context.odd), "it"),
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
        rf"Making them twice as fast would cut the step(?: from (?P<now>{NUMBER}))? to (?P<then>{NUMBER})"
        r"(?: at best)?\.",
        _judge_kernels_twice_as_fast,
    ),
    (rf"Kernels twice as fast would save (?P<saved>{NUMBER})\.", _judge_kernels_save),
    (rf"A faster network would save at most (?P<saved>{NUMBER})\.", _judge_network_at_most),
    (
        rf"Making communication twice as fast would cut the step from (?P<now>{NUMBER}) to (?P<then>{NUMBER})\.",
        _judge_network_twice,
    ),
    (
        rf"Before it arrives, rank (?P<rank>\d+)(?:'s (?:host|device))? spends (?P<time>{NUMBER}) per step in "
        r"(?P<name>[^;]+);.*",
        _judge_cause_name,
    ),
    (
        r"Rank (?P<rank>\d+) has a slower device: the same kernels take (?P<ratio>[\d.]+) × as long as on the "
        r"(?:median rank|other rank)\.",
        _judge_slower_device,
    ),
    (
        r"(?P<names>Ranks? .+) ha(?:s a slower device|ve slower devices): the same kernels take "
        r"(?P<low>[\d.]+)(?: to (?P<high>[\d.]+))? × as long as on (?:the other ranks|rank \d+)\.",
        _judge_slower_devices,
    ),
    (
        r"Rank (?P<rank>\d+) has more work: \S+ runs on \[(?P<mine>\d+),1,1\] there, on "
        r"\[(?P<theirs>\d+),1,1\] on the (?:median|other) rank\.",
        _judge_more_work,
    ),
    (rf"Split evenly, the same work would save (?P<saving>{NUMBER}) per step\.", _judge_even_split),
    (rf"Find out why (?P<name>.+) (?:is|are) late: saves up to (?P<gain>{NUMBER}),.*", _judge_late_advice),
    (rf"Look into {SHARED_OPERATOR}: saves up to (?P<gain>{NUMBER}),.*", _judge_shared_advice),
    (r"No delay is attributed to any rank\.|No small group of ranks causes most of it\.", nothing_else),
    (
        rf"No rank is a clear straggler, but differences between the ranks cost (?P<cost>{NUMBER}) per step\.",
        _judge_differences,
    ),
    (
        rf"Rank (?P<rank>\d+) costs the other(?:s most:| rank) (?P<cost>{NUMBER}) per step"
        r"(?:, less than 2% of a step)?\.",
        _judge_costs_little,
    ),
    (
        r"(?:By operator|Of the ranks that were found|No delay is attributed to the ranks that were found).*",
        nothing_else,
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
    (r"Start here: .*", nothing_else),
    (
        rf"Making host code twice as fast would cut the step(?: from (?P<now>{NUMBER}))? to (?P<then>{NUMBER})"
        r"(?: at best)?\.",
        _judge_host_twice_as_fast,
    ),
    (r"Find out why collectives are slow: .*", _judge_find_straggler),
    (r"A faster network wouldn't help\.", _judge_network_saves_nothing),
    (r"Faster kernels wouldn't help\.", _judge_kernels_save_nothing),
    (
        rf"Making (?P<what>.+) twice as fast wouldn't shorten the (?:step|trace) \({NUMBER}\)\.",
        _judge_saves_nothing,
    ),
    (
        rf"Ranks are late in turn: in \d+ of \d+ steps, one of (?P<ranks>\d+) is late by (?P<least>{NUMBER})"
        rf"(?: to (?P<most>{NUMBER}))?\.",
        _judge_in_turn,
    ),
    (
        rf"Find out why ranks are late in turn: saves up to (?P<gain>{NUMBER}),.*",
        _judge_advice_on_turns,
    ),
    (rf"That costs (?P<cost>{NUMBER}) per step\.", _judge_cost_of_turns),
    (
        r"The late rank spends it in (?P<kernel>\S+): give each rank as much work in each step\.|"
        r"All of them spend it in (?P<name>.+): do that on all ranks in the same step, or in none\.|"
        r"(?:It is|Nothing recorded explains it, so) Python's garbage collector .*",
        _judge_cause_of_turns,
    ),
    (r"No single function or operator takes most of it\.", nothing_else),
    (r"No rank is late in most steps\.", lambda _, context: f"{context.late} are" if context.late else None),
    (
        rf"Rank (?P<rank>\d+) is late (?:once|\d+ times): in steps? (?P<steps>.+), by (?:up to )?"
        rf"(?P<most>{NUMBER})(?:, mostly in (?P<name>.+))?\.",
        _judge_late_once,
    ),
    (
        r"No rank is a straggler, but work is uneven: rank (?P<rank>\d+) has (?P<amount>more|less) than the "
        r"others\.",
        _judge_uneven,
    ),
    (
        r"This rank has several devices, and waits for other ranks can't be assigned to one of them\.",
        lambda _, context: None if context.truth.devices > 1 else "it has one",
    ),
    (r"Faster work on this rank alone would only make it wait longer\.", _judge_waits_anyway),
)
"""(pattern of a whole sentence, what makes it false)."""
