"""Rules about sentences on why ranks are late, or why all of them idle."""

from __future__ import annotations

import re

from tests.support.random_jobs.plan import DELAY_NAMES
from tests.support.random_jobs.rules import NUMBER, Check, Context, nothing_else, us
from tests.support.simulation.simulator import Host, SimulatedKernel

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
    if cause.kind in ("rows", "larger"):
        kernels = [
            each for each in context.plan.simulation.programs[cause.rank] if isinstance(each, SimulatedKernel)
        ]
        time = cause.factor * sum(each.us for each in kernels if each.name in _larger(match["name"], context))
        return context.close(us(match["time"]), time, "the time") if time else "all its kernels are larger"
    if cause.kind not in WORK_NAMES:
        return f"its device is {cause.factor:.2f} times as slow"
    if cause.kind == "work" and match["name"] == "kernels":
        # It is one of many kernels, of which a summary keeps those with most time; together they are longer.
        return context.at_least(us(match["time"]), context.truth.computation(cause.rank, context.odd), "the time")
    if not re.search(WORK_NAMES[cause.kind], match["name"]):
        return f"it is {WORK_NAMES[cause.kind]}"
    # What every rank spends on the same counts as well, as the sentence says how long this rank is in it.
    everyone = [
        each.us
        for each in context.plan.simulation.programs[cause.rank]
        if isinstance(each, Host) and each.name in DELAY_NAMES[cause.kind]
    ]
    return context.close(us(match["time"]), cause.us + sum(everyone), "the time")


def _larger(kernel: str, context: Context) -> set[str]:
    """Return the kernel if a rank is planted to have it larger in every step, else nothing."""
    delays = [each for each in context.plan.simulation.delays if each.steps is None]
    larger = any(each.kind == "rows" or each.kind == "larger" and each.kernel == kernel for each in delays)
    return {kernel} if larger else set()


def _judge_more_work(match: re.Match[str], context: Context) -> str | None:
    """Check that a rank has larger kernels, and how much larger: the grid is all that the simulation records."""
    cause = context.plan.cause_of(int(match["rank"]))
    if cause is None or cause.kind not in ("rows", "larger") or not _larger(match["name"], context):
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


def _judge_cause_of_turns(match: re.Match[str], context: Context) -> str | None:
    """Check what all ranks that are late at times do then."""
    kinds = {
        each.kernel if each.kind == "larger" else WORK_NAMES[each.kind] for each in context.plan.late_at_times
    }
    said = match.groupdict().get("kernel") or match.groupdict().get("name")
    if said == "kernels" and {each.kind for each in context.plan.late_at_times} == {"larger"}:
        return None
    named = said is not None and len(kinds) == 1 and re.search(min(kinds), said)
    return None if named else f"it is {kinds}"


CAUSE_RULES: tuple[tuple[str, Check], ...] = (
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
        r"Rank (?P<rank>\d+) has more work: (?P<name>\S+) runs on \[(?P<mine>\d+),1,1\] there, on "
        r"\[(?P<theirs>\d+),1,1\] on the (?:median|other) rank\.",
        _judge_more_work,
    ),
    (
        r"The late rank spends it in (?P<kernel>\S+): give every rank the same amount of work in each step\.|"
        r"(?:All|Both) of them spend it in (?P<name>.+): do that on all ranks in the same step, or in none\.|"
        r"(?:It is|Nothing recorded explains it, so) Python's garbage collector .*",
        _judge_cause_of_turns,
    ),
    (r"No single function or operator takes most of it\.", nothing_else),
)
"""(pattern of a whole sentence, what makes it false)."""
