"""Sentences about why ranks are late, and what differs between them; the parts open their evidence."""

from __future__ import annotations

import math
import re

from torch_tb_profiler.analyses.distributed.causes import SlowerDevices, StragglerCause
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.late_in_turn import LateInTurn
from torch_tb_profiler.analyses.distributed.uneven_work import ResizedKernel, UnevenWork
from torch_tb_profiler.base.format import format_duration, shorten_middle
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.views._shared.job.names import job_noun, member_names, rank_names, time_base
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    link,
    sentences,
    shorten_frame,
    shorten_name,
    text,
)

MIN_MEDIAN_NS = 1_000
"""A shorter time of the median rank, ns per step, is what rounding leaves."""

MIN_MOST_RATIO = 0.05
"""What the median rank spends at most isn't said if it is less than this ratio of the late rank's time."""

MAX_SIZE_LENGTH = 60
"""Most characters of a kernel's grid and inputs."""

_GARBAGE_COLLECTION = lazy_regex(r"(?<![a-z])gc(?![a-z])|garbage|<built-in function collect>", re.IGNORECASE)
"""Names of Python's garbage collection; `GCNConv` is none."""

_CATEGORY_TEXTS = {
    "kernel": "in kernels",
    "memcpy": "in memory copies",
    "memset": "in memset",
    "communication": "in other communication",
    "runtime": "in runtime calls",
    "dataloader": "in the data loader",
    "cpu_exec": "in operators on the host",
    "other": "in unrecorded code",
}

_DIMENSIONS = lazy_regex(r"\[(\d+(?:,\d+)*)\]")


def cause_sentence(comparison: RankComparison, cause: StragglerCause, per_step: str) -> Text:
    """Say what the (first) straggler does that the median rank doesn't; `per_step`: see `time_base`."""
    rank = rank_names([comparison.sources[cause.member]])
    other = "the other rank" if len(comparison.sources) == 2 else "the median rank"
    evidence = _collective_link(cause)
    if cause.kind == "slower_link":
        return text(
            "{rank} has a slower link: its collectives take longer to transfer than the same ones on other ranks.",
            rank=rank,
        )
    if cause.kind == "slower_device":
        return text(
            "{rank} has a slower device: the same kernels take {ratio} × as long as on {other}.",
            rank=rank,
            other=other,
            ratio=Phrase(f"{cause.ratio:.2f}", evidence),
        )
    time, median = format_duration(cause.time), _median_time_text(cause)
    if cause.where == "category":
        return text(
            "Before it arrives, {rank} spends {time} {per_step} {doing}; {other} spends {median}.",
            rank=rank_names([comparison.sources[cause.member]], capital=False),
            time=Phrase(time, evidence),
            per_step=per_step,
            doing=_CATEGORY_TEXTS[cause.name],
            other=other,
            median=median,
        )
    difference = text(
        "Before it arrives, {rank}'s {where} spends {time} {per_step} in {name}; {other}'s spends {median}.",
        rank=rank_names([comparison.sources[cause.member]], capital=False),
        where="device" if cause.where == "device" else "host",
        time=time,
        per_step=per_step,
        name=Phrase(_cause_name(cause), evidence),
        other=other,
        median=median,
    )
    if cause.resized is not None:
        return sentences(difference, _resized_sentence(rank, cause.resized, other))
    if cause.operator is None:
        return difference
    return sentences(
        difference, text("By operator, most of the difference is {name}.", name=shorten_name(cause.operator))
    )


def _resized_sentence(rank: Text, kernel: ResizedKernel, other: str) -> Text:
    return text(
        "{rank} has more work: {name} runs on {size} there, on {typical} on {other}.",
        rank=rank,
        name=shorten_name(kernel.name),
        size=_find_differing_dimensions(kernel.size, kernel.typical_size),
        typical=_find_differing_dimensions(kernel.typical_size, kernel.size),
        other=other,
    )


def late_in_turn_sentence(found: LateInTurn, noun: str) -> Text:
    """Say in how many steps a rank is late, by how much, and that it is another one each time.

    noun  what a step is, see `job_noun`
    """
    low, high = format_duration(found.least), format_duration(found.most)
    return text(
        "Ranks take turns being late: in {late} of {steps}, one of {ranks} is late by {time}.",
        late=f"{found.late:,}",
        steps=plural(found.steps, noun),
        ranks=f"{found.ranks:,}",
        time=low if low == high else f"{low} to {high}",
    )


def shared_cause_sentence(comparison: RankComparison, found: LateInTurn, cost: float) -> Text:
    """Say what lateness in turn costs, what the ranks do then, and how to do that on all ranks at once."""
    noun = job_noun(comparison)
    costs = text("That costs {cost} {per_step}.", cost=format_duration(cost), per_step=time_base(comparison))
    if found.on_device:
        return sentences(
            costs,
            text(
                "The late rank spends it in {kernels}: give every rank the same amount of work in each {noun}.",
                noun=noun,
                kernels=found.name or "kernels",
            ),
        )
    if found.name and not _GARBAGE_COLLECTION.search(found.name):
        return sentences(
            costs,
            text(
                "{all} of them spend it in {name}: do that on all ranks in the same {noun}, or in none.",
                noun=noun,
                all="Both" if found.ranks == 2 else "All",
                name=shorten_frame(found.name),
            ),
        )
    if not (found.name or found.unrecorded):
        return sentences(costs, text("No single function or operator takes most of it."))
    cause = (
        "It is Python's garbage collector ({name})."
        if found.name
        else ("Nothing recorded explains it, so Python's garbage collector is the likely cause.")
    )
    return sentences(
        costs,
        text(cause, name=shorten_frame(found.name)),
        text(
            "Call gc.freeze() after warm-up, or gc.disable() and gc.collect() on all ranks every few hundred "
            "{noun}s.",
            noun=noun,
        ),
    )


def slower_devices_sentence(comparison: RankComparison, found: SlowerDevices) -> Text:
    """Say which ranks have slower devices, where these are too many to be called stragglers."""
    several = len(found.members) > 1
    return text(
        "{ranks} {have}: {evidence}.",
        ranks=member_names(comparison, found.members),
        have="have slower devices" if several else "has a slower device",
        evidence=slower_devices_cell(comparison, found),
    )


def slower_devices_cell(comparison: RankComparison, found: SlowerDevices) -> Text:
    """Say how much longer kernels take on the slower devices than on all others."""
    low, high = f"{found.lowest:.2f}", f"{found.highest:.2f}"
    one = len(found.others) == 1
    return text(
        "the same kernels take {ratio} × as long as on {others}",
        ratio=low if low == high else f"{low} to {high}",
        others=member_names(comparison, found.others, capital=False) if one else "the other ranks",
    )


def uneven_work_sentence(comparison: RankComparison, uneven: UnevenWork, saving: float | None) -> Text:
    """Say which rank has more or less work than the others, what shows it, and what an even split would save.

    saving  ns per step, None if unknown
    """
    difference = text(
        "Work is uneven: {rank} computes {ratio} × as long as {other}, because {name} runs on {size} instead of "
        "{typical}.",
        rank=rank_names([comparison.sources[uneven.member]], capital=False),
        ratio=f"{uneven.ratio:.2f}",
        other="the other rank" if len(comparison.sources) == 2 else "the median rank",
        name=shorten_name(uneven.kernel.name),
        size=_find_differing_dimensions(uneven.kernel.size, uneven.kernel.typical_size),
        typical=_find_differing_dimensions(uneven.kernel.typical_size, uneven.kernel.size),
    )
    return sentences(difference, () if saving is None else even_split_sentence(comparison, saving))


def even_split_sentence(comparison: RankComparison, saving: float) -> Text:
    """Say what the work of all ranks would save if each had as much of it."""
    return text(
        "Split evenly, the same work would save {saving} {per_step}.",
        saving=format_duration(saving),
        per_step=time_base(comparison),
    )


def _find_differing_dimensions(size: str, other: str) -> str:
    """Return the grid or input that differs most from that of the other size; the whole size if none does."""
    mine, theirs = _DIMENSIONS.findall(size), _DIMENSIONS.findall(other)
    pairs = [(each, there) for each, there in zip(mine, theirs, strict=False) if each != there]
    if len(mine) != len(theirs) or not pairs:
        return shorten_middle(size, MAX_SIZE_LENGTH)

    def ratio(pair: tuple[str, str]) -> float:
        first, second = (max(math.prod(map(int, dimensions.split(","))), 1) for dimensions in pair)
        return max(first / second, second / first)

    return f"[{max(pairs, key=ratio)[0]}]"


def _median_time_text(cause: StragglerCause) -> str:
    """Return how long the median rank spends in what makes a rank late; "less" where that is next to nothing."""
    if cause.median is not None:
        return format_duration(cause.median) if cause.median >= MIN_MEDIAN_NS else "less"
    most = cause.time - cause.excess
    return f"at most {format_duration(most, 'up')}" if most >= MIN_MOST_RATIO * cause.time else "less"


def cause_cell(cause: StragglerCause) -> Text:
    """Return the evidence alone, as the cell of a table."""
    evidence = _collective_link(cause)
    if cause.kind == "slower_link":
        return text("its collectives take longer to transfer than the same ones on other ranks")
    if cause.kind == "slower_device":
        return text("the same kernels take {ratio} × the median", ratio=Phrase(f"{cause.ratio:.2f}", evidence))
    more = format_duration(cause.excess)
    if cause.median is None and more != format_duration(cause.time):
        more = f"at least {format_duration(cause.excess, 'down')}"
    if cause.where == "category":
        return text("{more} more {doing}", more=Phrase(more, evidence), doing=_CATEGORY_TEXTS[cause.name])
    return text("{more} more in {name}", more=more, name=Phrase(_cause_name(cause), evidence))


def held_up_cell(source: RankSource) -> Text:
    """Return the cell for a rank that is late because `source` is."""
    return text("waits for {rank}", rank=rank_names([source], capital=False))


def _collective_link(cause: StragglerCause) -> str:
    return link("distributed", table="collectives", collective=cause.collective)


def _cause_name(cause: StragglerCause) -> str:
    return shorten_frame(cause.name) if cause.where == "frame" else shorten_name(cause.short_name or cause.name)
