"""Sentences about the ranks of a job: their names, who is a straggler, and why; the parts open their evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.causes import SlowerDevices, StragglerCause
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import Suspect
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.late_in_turn import LateInTurn
from torch_tb_profiler.analyses.distributed.late_once import LateOnce
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.uneven_work import ResizedKernel, UnevenWork
from torch_tb_profiler.analyses.distributed.verdict import MIN_COST_SHARE, StragglerVerdict
from torch_tb_profiler.base.format import format_duration, format_ratio, shorten_middle
from torch_tb_profiler.base.grammar import agree, capitalize, per_step, plural, with_article
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.communication.groups import format_ranks
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, count_unread, members_coverage
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    join_phrases,
    link,
    sentences,
    shorten_frame,
    shorten_name,
    text,
    worker_name,
)

MAX_NAMED_RANKS = 5
"""Most ranks that a sentence names one by one."""

MIN_MEDIAN_NS = 1_000
"""A shorter time of the median rank, ns per step, is what rounding leaves."""

MAX_SIZE_LENGTH = 60
"""Most characters of a kernel's grid and inputs."""

MAX_RANKS_LENGTH = 200
"""Most characters of a list of ranks."""

RANKS_TABLE = link("distributed", table="ranks")

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


def rank_names(sources: Sequence[RankSource], capital: bool = True) -> Text:
    """Return "Ranks 0, 1 and 3", each opening its timeline; names of workers where a rank is unknown."""
    numbered = all(source.rank is not None for source in sources)
    if len(sources) == 1:
        name = worker_name(sources[0].rank, sources[0].worker)
        has_noun = numbered or name != sources[0].worker
        return (Phrase(capitalize(name) if capital and has_noun else name, _timeline(sources[0])),)
    noun = "rank" if numbered else "worker" if any(source.worker.isdecimal() for source in sources) else ""
    prefix = f"{capitalize(noun) if capital else noun}s " if noun else ""
    if len(sources) > MAX_NAMED_RANKS:
        ranks = [source.rank for source in sources if source.rank is not None]
        name = f"{prefix}{shorten_ranks(ranks)}" if numbered else f"{len(sources):,} workers"
        return (Phrase(name, RANKS_TABLE),)
    names = [Phrase(str(source.rank) if numbered else source.worker, _timeline(source)) for source in sources]
    return text("{prefix}{names}", prefix=prefix, names=join_phrases(names))


def shorten_ranks(ranks: Sequence[int]) -> str:
    """List all ranks if that is short ("0-7,12"), else the first few and how many more there are."""
    spelled = format_ranks(ranks)
    if len(spelled) <= MAX_RANKS_LENGTH:
        return spelled
    first = sorted(ranks)[:MAX_NAMED_RANKS]
    return f"{','.join(map(str, first))} and {len(ranks) - len(first):,} more"


def _timeline(source: RankSource) -> str:
    return link("trace", worker=source.worker)


def member_names(comparison: RankComparison, members: Sequence[int], capital: bool = True) -> Text:
    """Return the names of members, given by position, in order."""
    return rank_names([comparison.sources[member] for member in sorted(members)], capital)


def time_base(comparison: RankComparison) -> str:
    """Return what times of a job refer to: "per step", or "in the recording" if a rank records no steps."""
    return per_step(has_steps(comparison), job_noun(comparison))


def has_steps(comparison: RankComparison) -> bool:
    """Return whether every rank records steps, so that times are per step."""
    return all(source.summary.recorded_steps for source in comparison.sources)


def job_noun(comparison: RankComparison) -> str:
    """Return what a step of all ranks is in a sentence: "iteration" if each is an engine's, else "step"."""
    nouns = {source.summary.step_noun for source in comparison.sources}
    return nouns.pop() if len(nouns) == 1 else "step"


def verdict_headline(members: Members[RankSummary], verdict: StragglerVerdict) -> Text:
    """Name the straggler, one that may be, or none; or say why that is unknown.

    Until all ranks are read, the sentence is about those that are.
    """
    comparison = compare_members(members)
    if count_unread(members) and verdict.kind == "unknown" and verdict.reason != "missing":
        return text("Reading the ranks.")
    if verdict.kind == "unknown" and not count_unread(members):
        return _unknown_sentence(members, verdict)
    if count_unread(members):
        is_late = verdict.kind == "straggler"
        return text(
            "Of the {count} ranks read so far, {sentence}",
            count=f"{len(comparison.sources):,}",
            sentence=_straggler_sentence(comparison, verdict, False) if is_late else "none is a straggler.",
        )
    if verdict.kind == "straggler":
        return _straggler_sentence(comparison, verdict)
    if verdict.kind == "uncertain" and verdict.possible is not None:
        return _uncertain_sentence(comparison, verdict.possible)
    if verdict.in_turn is not None:
        return late_in_turn_sentence(verdict.in_turn, job_noun(comparison))
    if verdict.uneven is not None:
        return text(
            "No rank is a straggler, but work is uneven: {rank} has {amount} than the others.",
            rank=rank_names([comparison.sources[verdict.uneven.member]], capital=False),
            amount="less" if verdict.uneven.ratio < 1 else "more",
        )
    if verdict.once is not None:
        return sentences(
            text("No rank is late in most {noun}s.", noun=job_noun(comparison)),
            late_once_sentence(comparison, verdict.once),
        )
    if verdict.imbalance is not None:
        return text(
            "No few ranks are the stragglers, but differences between the ranks cost {cost} {per_step}.",
            cost=Phrase(format_duration(verdict.imbalance), RANKS_TABLE),
            per_step=time_base(comparison),
        )
    if verdict.slower_devices is not None:
        return slower_devices_sentence(comparison, verdict.slower_devices)
    if not members_coverage(members).complete:
        return text(
            "The {count} ranks found are balanced; no straggler among them.", count=f"{len(comparison.sources):,}"
        )
    return text("The ranks are balanced; no straggler.")


def late_once_sentence(comparison: RankComparison, once: LateOnce) -> Text:
    """Say in which steps a rank is late that isn't late in most, by how much, and in what it spends that."""
    several = len(once.steps) > 1
    return text(
        "{rank} is late {often}: in {noun} {steps}, by {most}{excess}{cause}.",
        rank=member_names(comparison, [once.member]),
        often=f"{len(once.steps)} times" if several else "once",
        noun=f"{job_noun(comparison)}{'s' if several else ''}",
        steps=join_phrases(once.steps),
        most="up to " if several else "",
        excess=format_duration(once.excess),
        cause=f", mostly in {shorten_name(shorten_frame(once.name))}" if once.name else "",
    )


def coverage_sentence(members: Members[RankSummary]) -> Text:
    """Say how many ranks of the job are compared and which aren't; nothing if all are, or while they are read."""
    coverage = members_coverage(members)
    if coverage.complete or count_unread(members):
        return ()
    count = text(
        "{compared} of {all} {were} compared",
        compared=f"{coverage.compared:,}",
        all=Phrase(plural(coverage.expected, "rank"), RANKS_TABLE),
        were=agree(coverage.compared, "was", "were"),
    )
    if not coverage.missing:
        return text("{count}.", count=count)
    return text(
        "{count}; {traces} {missing} {are} missing.",
        count=count,
        traces=agree(len(coverage.missing), "the trace of rank", "the traces of ranks"),
        missing=shorten_ranks(coverage.missing).replace(",", ", "),
        are=agree(len(coverage.missing), "is", "are"),
    )


def _missing_ranks(members: Members[RankSummary], capital: bool = True) -> str:
    """Return "Rank 3", "Ranks 3, 5", or "A rank" if the numbers of the missing ranks are unknown."""
    missing = members_coverage(members).missing
    if not missing:
        return "A rank" if capital else "a rank"
    noun = agree(len(missing), "rank", "ranks")
    return f"{capitalize(noun) if capital else noun} {shorten_ranks(missing).replace(',', ', ')}"


def _straggler_sentence(comparison: RankComparison, verdict: StragglerVerdict, capital: bool = True) -> Text:
    count = len(verdict.ranks)
    names = member_names(comparison, [row.member for row in verdict.ranks], capital)
    suspect, row = verdict.suspect, verdict.ranks[0]
    if suspect is not None and suspect.host is not None:
        names = text("{names} of {host}", names=names, host=suspect.host)
    if count > 1:
        template = "{names} are stragglers: together they cost {others} {limit}{cost} {per_step}."
    elif row.last == 0:
        template = "{names} is a straggler: it costs {others} {limit}{cost} {per_step}."
    else:
        template = (
            "{names} is a straggler: {found}it arrives last at {collectives} and costs {others} {limit}{cost} "
            "{per_step}."
        )
    return text(
        template,
        names=names,
        collectives=_late_collectives(comparison, row),
        others="the other rank" if len(comparison.sources) == 2 else "every other rank",
        # Without it, the others may still wait: for ranks that aren't compared, or for the next message.
        found="of the ranks found, " if verdict.missing_cost is not None else "",
        limit="up to " if verdict.cost_is_limit else "",
        cost=format_duration(suspect.cost if suspect else row.cost),
        per_step=time_base(comparison),
    )


def _late_collectives(comparison: RankComparison, row: Straggler) -> Phrase:
    worker = comparison.sources[row.member].worker
    return Phrase(
        f"{row.last:,} of {plural(row.collectives, 'collective')}",
        link("distributed", table="collectives", late=worker, sort="-skew"),
    )


def _uncertain_sentence(comparison: RankComparison, weak: Suspect) -> Text:
    return text(
        "{names} may be {noun} ({cost} {per_step}), but {steps} enough to tell.",
        names=member_names(comparison, weak.members),
        noun=agree(len(weak.members), "a straggler", "stragglers"),
        cost=format_duration(weak.cost),
        per_step=time_base(comparison),
        steps=_steps_not(comparison),
    )


def _steps_not(comparison: RankComparison) -> str:
    """Return "4 steps aren't" or "1 step isn't": the recording that is too short."""
    steps = max(len(source.summary.steps) for source in comparison.sources)
    if steps == 1 and not has_steps(comparison):
        return "one recording isn't"
    return f"{plural(steps, job_noun(comparison))} {agree(steps, 'is', 'are')}n't"


def _unknown_sentence(members: Members[RankSummary], verdict: StragglerVerdict) -> Text:
    comparison = compare_members(members)
    if verdict.reason == "empty":
        return text("No {rank} of this job can be compared.", rank=Phrase("rank", RANKS_TABLE))
    if verdict.reason == "alone":
        return text(
            "Only {rank} was found. Add the other ranks' traces to see who waits for whom.",
            rank=rank_names(comparison.sources, capital=False),
        )
    if verdict.reason == "few":
        return text(
            "Only {count} of {all} were found, too few to name a straggler.",
            count=Phrase(f"{len(comparison.sources):,}", RANKS_TABLE),
            all=plural(members_coverage(members).expected, "rank"),
        )
    if verdict.reason == "groups":
        return text("The traces don't record which ranks communicate, so waiting can't be attributed.")
    if verdict.reason == "missing" and verdict.missing_cost is not None:
        several = len(members_coverage(members).missing) > 1
        return text(
            "{missing} may be {late}, but {traces} missing: the {count} ranks found spend up to {cost} {per_step} "
            "waiting for {it}.",
            missing=_missing_ranks(members),
            late="stragglers" if several else "the straggler",
            traces="their traces are" if several else "its trace is",
            count=Phrase(f"{len(comparison.sources):,}", RANKS_TABLE),
            cost=format_duration(verdict.missing_cost),
            per_step=time_base(comparison),
            it="them" if several else "it",
        )
    if verdict.reason == "absent" and verdict.suspect is not None:
        return text(
            "The straggler's trace is missing: all {ranks} found here wait for it, at least {cost} {per_step}.",
            ranks=Phrase("ranks", RANKS_TABLE),
            cost=format_duration(verdict.suspect.cost),
            per_step=time_base(comparison),
        )
    return text("No collective could be matched between the ranks, so waiting can't be attributed.")


def costliest_rank_sentence(comparison: RankComparison, row: Straggler | None) -> Text:
    """Name the costliest rank found where most ranks, or the straggler, are missing."""
    if row is None:
        return text("No delay is attributed to the ranks that were found.")
    return text(
        "Of the ranks that were found, {name} costs the others most: {cost} {per_step}.",
        name=rank_names([comparison.sources[row.member]], capital=False),
        cost=format_duration(row.cost),
        per_step=time_base(comparison),
    )


def rank_differences_sentence(comparison: RankComparison, verdict: StragglerVerdict) -> Text:
    """Say what the differences between the ranks cost where no rank is a straggler."""
    if verdict.possible is not None:
        return text(
            "{cost}, but {steps} enough to rule out chance.",
            cost=_cost_clause(comparison, verdict.possible.members, verdict.possible.cost),
            steps=_steps_not(comparison),
        )
    if verdict.in_turn is not None and verdict.imbalance is not None:
        return shared_cause_sentence(comparison, verdict.in_turn, verdict.imbalance)
    if verdict.uneven is not None and verdict.imbalance is not None:
        return uneven_work_sentence(comparison, verdict.uneven, verdict.imbalance)
    if verdict.slower_devices is not None:
        known = verdict.imbalance is not None  # else the headline says it
        return slower_devices_sentence(comparison, verdict.slower_devices) if known else ()
    if verdict.imbalance is not None:
        return text("No small group of ranks causes most of it.")
    once, costliest = verdict.once, verdict.costliest
    if once is not None and (costliest is None or costliest.member != once.member):
        return ()
    if costliest is None:
        return text("No delay is attributed to any rank.")
    cost = _cost_clause(comparison, [costliest.member], costliest.cost)
    if once is not None:  # over all steps, what it costs in these may be worth naming
        return text("{cost}.", cost=cost)
    return text(
        "{cost}, less than {worth} of {base}.",
        cost=cost,
        worth=format_ratio(MIN_COST_SHARE),
        base=with_article(job_noun(comparison)) if has_steps(comparison) else "it",
    )


def _cost_clause(comparison: RankComparison, members: Sequence[int], cost: float) -> Text:
    """Return what the costliest ranks cost, without a full stop."""
    return text(
        "{names} {costs} {others} {cost} {per_step}",
        names=member_names(comparison, members),
        costs=agree(len(members), "costs", "cost"),
        others="the others most:" if len(comparison.sources) > 2 else "the other rank",
        cost=format_duration(cost),
        per_step=time_base(comparison),
    )


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
    is_known = cause.median is not None and cause.median >= MIN_MEDIAN_NS
    time, median = format_duration(cause.time), format_duration(cause.median) if is_known else "less"
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
        size=_differing_dimensions(kernel.size, kernel.typical_size),
        typical=_differing_dimensions(kernel.typical_size, kernel.size),
        other=other,
    )


def late_in_turn_sentence(found: LateInTurn, noun: str) -> Text:
    """Say in how many steps a rank is late, by how much, and that it is another one each time.

    noun  what a step is, see `job_noun`
    """
    low, high = format_duration(found.least), format_duration(found.most)
    return text(
        "Ranks are late in turn: in {late} of {steps}, one of {ranks} is late by {time}.",
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
                "The late rank spends it in {kernels}: give each rank as much work in each {noun}.",
                noun=noun,
                kernels=found.name or "kernels",
            ),
        )
    if found.name and "gc" not in found.name.lower():
        return sentences(
            costs,
            text(
                "All of them spend it in {name}: do that on all ranks in the same {noun}, or in none.",
                noun=noun,
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
    low, high = f"{found.lowest:.2f}", f"{found.highest:.2f}"
    several = len(found.members) > 1
    return text(
        "{ranks} {have}: the same kernels take {ratio} × as long as on the other ranks.",
        ranks=member_names(comparison, found.members),
        have="have slower devices" if several else "has a slower device",
        ratio=low if low == high else f"{low} to {high}",
    )


def uneven_work_sentence(comparison: RankComparison, uneven: UnevenWork, saving: float) -> Text:
    """Say which rank has more or less work than the others, what shows it, and what an even split would save."""
    return text(
        "Work is uneven: {rank} computes {ratio} × as long as {other}, as {name} runs on {size} instead of "
        "{typical}. Split evenly, the same work would save {saving} {per_step}.",
        rank=rank_names([comparison.sources[uneven.member]], capital=False),
        ratio=f"{uneven.ratio:.2f}",
        other="the other rank" if len(comparison.sources) == 2 else "the median rank",
        name=shorten_name(uneven.kernel.name),
        size=_differing_dimensions(uneven.kernel.size, uneven.kernel.typical_size),
        typical=_differing_dimensions(uneven.kernel.typical_size, uneven.kernel.size),
        saving=format_duration(saving),
        per_step=time_base(comparison),
    )


_DIMENSIONS = lazy_regex(r"\[(\d+(?:,\d+)*)\]")


def _differing_dimensions(size: str, other: str) -> str:
    """Return the grid or input that differs most from that of the other size; the whole size if none does."""
    mine, theirs = _DIMENSIONS.findall(size), _DIMENSIONS.findall(other)
    pairs = [(each, there) for each, there in zip(mine, theirs, strict=False) if each != there]
    if len(mine) != len(theirs) or not pairs:
        return shorten_middle(size, MAX_SIZE_LENGTH)

    def ratio(pair: tuple[str, str]) -> float:
        first, second = (max(math.prod(map(int, dimensions.split(","))), 1) for dimensions in pair)
        return max(first / second, second / first)

    return f"[{max(pairs, key=ratio)[0]}]"


def cause_cell(cause: StragglerCause) -> Text:
    """Return the evidence alone, as the cell of a table."""
    evidence = _collective_link(cause)
    if cause.kind == "slower_link":
        return text("its collectives take longer to transfer than the same ones on other ranks")
    if cause.kind == "slower_device":
        return text("the same kernels take {ratio} × the median", ratio=Phrase(f"{cause.ratio:.2f}", evidence))
    more = format_duration(cause.time - (cause.median or 0))
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
