"""What the comparison of ranks comes to, in sentences whose parts open their evidence."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.job import Source
from torch_tb_profiler.analyses.distributed.matching.differences import Difference
from torch_tb_profiler.analyses.distributed.meanwhile import Meanwhile
from torch_tb_profiler.analyses.distributed.reduction.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.verdict import Cause, Communication, Verdict
from torch_tb_profiler.base.units import format_duration, format_ratio
from torch_tb_profiler.model.communication.groups import spell_ranks
from torch_tb_profiler.model.kernels.short_names import short_name
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.names import spoken_name
from torch_tb_profiler.views._shared.text import Phrase, Text, link, listed, sentences, text
from torch_tb_profiler.views.distributed.members import coming, compare_members

MOST_NAMES = 5
"""More ranks than these are not named one by one."""

RANKS_TABLE = link("distributed", table="ranks")


def headline(members: Members[RankSummary], verdict: Verdict) -> Text:
    """Who keeps the others waiting, that no rank stands out, or why that is unknown."""
    comparison = compare_members(members)
    if verdict.kind == "unknown":
        return text("Reading the ranks.") if coming(members) else _unknown(comparison, verdict)
    if verdict.kind == "straggler":
        return _delay(comparison, verdict.ranks)
    if verdict.most is None:
        return text("The ranks arrive at their collectives within the error of their clocks.")
    return text("No rank stands out.")


def explanation(members: Members[RankSummary], verdict: Verdict) -> Text:
    """What the delay and the communication cost, and what the late rank does meanwhile; may be empty."""
    comparison = compare_members(members)
    if verdict.kind == "unknown":
        waits = coming(members) > 0
        return text("Waiting can be attributed once two of them are read.") if waits else ()
    return sentences(
        _largest_delay(comparison, verdict.most) if verdict.kind == "balanced" and verdict.most else (),
        _communicating(comparison, verdict.communication, verdict.ranks) if verdict.communication else (),
        _meanwhile(comparison, verdict.cause) if verdict.cause else (),
    )


def _unknown(comparison: Comparison, verdict: Verdict) -> Text:
    if verdict.reason == "empty":
        return text("No {rank} of this job can be compared.", rank=Phrase("rank", RANKS_TABLE))
    if verdict.reason == "alone":
        only = rank_names(comparison.sources, capital=False)
        return text("Only {rank} is here: without the other ranks, waiting cannot be attributed.", rank=only)
    if verdict.reason == "unmatched":
        return text("No collective could be compared between the ranks, so waiting cannot be attributed.")
    clocks = Phrase("clocks", RANKS_TABLE)
    return text("The {clocks} of the ranks cannot be compared, so waiting cannot be attributed.", clocks=clocks)


# ---- delay ----------------------------------------------------------------------------------------------


def _delay(comparison: Comparison, stragglers: Sequence[Straggler]) -> Text:
    names = _names(comparison, [row.member for row in stragglers])
    others = "the other" if len(comparison.sources) == 2 else "the others"
    cost = format_duration(sum(row.delay_per_step for row in stragglers))
    if len(stragglers) > 1:
        return text(
            "{names} keep {others} waiting, {cost} {per_step} in total.",
            names=names, others=others, cost=cost, per_step=_per_step(comparison),
        )  # fmt: skip
    return text(
        "{names} keeps {others} waiting: it arrives last in {collectives}, which costs {cost} {per_step}.",
        names=names, others=others, collectives=_last_in(comparison, stragglers[0]), cost=cost,
        per_step=_per_step(comparison),
    )  # fmt: skip


def _largest_delay(comparison: Comparison, row: Straggler) -> Text:
    if row.delay == 0:
        return text("No delay is attributed to any of them.")
    return text(
        "{name} causes the most delay: it arrives last in {collectives}, which costs {cost} {per_step}.",
        name=_names(comparison, [row.member]), collectives=_last_in(comparison, row),
        cost=format_duration(row.delay_per_step), per_step=_per_step(comparison),
    )  # fmt: skip


def _last_in(comparison: Comparison, row: Straggler) -> Phrase:
    worker = comparison.sources[row.member].worker
    return Phrase(
        f"{row.last:,} of {counted(row.collectives, 'collective')}",
        link("distributed", table="collectives", late=worker, sort="-skew"),
    )


# ---- communication and its cause ------------------------------------------------------------------------


def _communicating(comparison: Comparison, spent: Communication, stragglers: Sequence[Straggler]) -> Text:
    """How much of a step the (other) ranks communicate without computing, and in which collective."""
    count = len(spent.members)
    if count <= MOST_NAMES:
        names = _names(comparison, spent.members)
    else:
        names = text("The {other}{count} ranks", other="other " if stragglers else "", count=f"{count:,}")
    largest: Text = ()
    if spent.largest is not None:
        name = Phrase(spent.largest, link("distributed", table="collectives", q=spent.largest))
        largest = text(" ({name})" if spent.only else ", most of it in {name}", name=name)
    return text(
        "{names} {spend} {share} of {step} in {what}{largest}.",
        names=names, spend="spends" if count == 1 else "spend", share=format_ratio(spent.share),
        step="each step" if _per_step(comparison) == "per step" else "the recording",
        what="exposed communication" if spent.exposed else "communication", largest=largest,
    )  # fmt: skip


_CATEGORY_WORDS = {
    "kernel": "in kernels",
    "memcpy": "in memory copies",
    "memset": "in memset",
    "communication": "in other communication",
    "runtime": "in runtime calls",
    "dataloader": "in the data loader",
    "cpu_exec": "in operators on the host",
    "other": "on what the profiler does not record",
}


def _meanwhile(comparison: Comparison, cause: Cause) -> Text:
    """What the (first) late rank does that the median rank does not."""
    rank = rank_names([comparison.sources[cause.member]], capital=False)
    other = "the other rank" if len(comparison.sources) == 2 else "the median rank"
    time, per_step = format_duration(cause.time), _per_step(comparison)
    evidence = link("distributed", table="collectives", collective=cause.collective)
    if cause.where == "category":
        return text(
            "Meanwhile {rank} spends {time} {per_step} {doing}; {other} spends {median}.",
            rank=rank, time=Phrase(time, evidence), per_step=per_step, doing=_CATEGORY_WORDS[cause.name],
            other=other, median=format_duration(cause.median),
        )  # fmt: skip
    return text(
        "Meanwhile {rank}'s {where} spends {time} {per_step} in {name}; {other}'s spends {median}.",
        rank=rank, where=cause.where, time=time, per_step=per_step, name=Phrase(_spoken(cause), evidence),
        other=other, median="less" if cause.median is None else format_duration(cause.median),
    )  # fmt: skip


def _spoken(cause: Cause) -> str:
    return short_name(cause.name) if cause.where == "device" else spoken_name(cause.name)


def meanwhile_summary(row: Meanwhile) -> Text:
    """How long a rank took before the collectives where it arrived last, beside the median rank."""
    latest = link("distributed", table="collectives", collective=row.latest)
    return text(
        "{time} before {collectives} in {steps}; the median rank took {median}.",
        time=format_duration(row.window), collectives=Phrase(counted(row.collectives, "collective"), latest),
        steps=counted(row.steps, "step"), median=format_duration(row.median_window),
    )  # fmt: skip


# ---- disagreements --------------------------------------------------------------------------------------

_DISAGREEMENTS = {
    "name": "ranks run different collectives at the same point",
    "size": "ranks move different amounts",
    "dtype": "ranks use different types",
    "missing": "a rank has not recorded it, though it has earlier and later ones",
}


def mismatch_text(name: str, difference: Difference) -> Text:
    """In which collective the ranks disagree, and on what."""
    collective = Phrase(name, link("distributed", table="collectives", collective=difference.instance))
    what = _DISAGREEMENTS[difference.what]
    if difference.what == "missing":
        return text("{collective}: {what}", collective=collective, what=what)
    values = ", ".join(difference.values)
    return text("{collective}: {what} ({values})", collective=collective, what=what, values=values)


# ---- names ----------------------------------------------------------------------------------------------


def rank_names(sources: Sequence[Source], capital: bool = True) -> Text:
    """Ranks 0, 1 and 3, each of which opens its timeline; the workers where a rank is unknown."""
    numbered = all(source.rank is not None for source in sources)
    word = ("Rank" if capital else "rank") if numbered else ""
    if len(sources) == 1:
        return (Phrase(f"{word} {sources[0].rank}" if numbered else sources[0].worker, _timeline(sources[0])),)
    prefix = f"{word}s " if numbered else ""
    if len(sources) > MOST_NAMES:
        ranks = [source.rank for source in sources if source.rank is not None]
        return (Phrase(f"{prefix}{spell_ranks(ranks)}" if numbered else f"{len(sources):,} workers", RANKS_TABLE),)
    names = [Phrase(str(each.rank) if numbered else each.worker, _timeline(each)) for each in sources]
    return text("{prefix}{names}", prefix=prefix, names=listed(names))


def _timeline(source: Source) -> str:
    return link("trace", worker=source.worker)


def _names(comparison: Comparison, members: Sequence[int]) -> Text:
    return rank_names([comparison.sources[member] for member in sorted(members)])


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _per_step(comparison: Comparison) -> str:
    recorded = all(source.summary.recorded_steps for source in comparison.sources)
    return "per step" if recorded else "in the recording"
