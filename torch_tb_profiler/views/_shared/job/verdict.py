"""Sentences about who is a straggler in a job, what that costs, and what is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import Suspect
from torch_tb_profiler.analyses.distributed.late_once import LateOnce, are_typical
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.suspects import MIN_COST_SHARE
from torch_tb_profiler.analyses.distributed.verdict import MAX_EXPLAINED_EVENTS, StragglerVerdict
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import agree, capitalize, plural, with_article
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.causes import (
    late_in_turn_sentence,
    shared_cause_sentence,
    slower_devices_sentence,
    uneven_work_sentence,
)
from torch_tb_profiler.views._shared.job.members import compare_members, count_unread, members_coverage
from torch_tb_profiler.views._shared.job.names import (
    RANKS_TABLE,
    has_steps,
    job_noun,
    member_names,
    rank_names,
    shorten_ranks,
    time_base,
)
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    join_phrases,
    link,
    sentences,
    shorten_frame,
    shorten_name,
    text,
)


def verdict_headline(members: Members[RankSummary], verdict: StragglerVerdict) -> Text:
    """Name the straggler, one that may be, or none; or say why that is unknown.

    Until all ranks are read, the sentence is about those that are.
    """
    comparison = compare_members(members)
    if count_unread(members) and verdict.kind == "unknown":
        if verdict.reason != "missing" or verdict.costliest is not None:
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
        return _straggler_sentence(comparison, verdict, scope=_scope(members))
    if verdict.kind == "uncertain" and verdict.possible is not None:
        return _uncertain_sentence(comparison, verdict.possible)
    if verdict.in_turn is not None:
        return late_in_turn_sentence(verdict.in_turn, job_noun(comparison))
    if verdict.uneven is not None:
        return text(
            "No rank{found} is a straggler, but work is uneven: {rank} has {amount} than the others.",
            found=_scope(members),
            rank=rank_names([comparison.sources[verdict.uneven.member]], capital=False),
            amount="less" if verdict.uneven.ratio < 1 else "more",
        )
    if verdict.once:
        latest, *others = verdict.once
        if not others:
            none = text("No rank is late in most {noun}s.", noun=job_noun(comparison))
            return sentences(none, late_once_sentence(comparison, latest))
        also = text(
            "{ranks} {are} late at times, too.",
            ranks=member_names(comparison, [each.member for each in others]),
            are=agree(len(others), "is", "are"),
        )
        return sentences(late_once_sentence(comparison, latest), also)
    if verdict.imbalance is not None:
        return text(
            "No rank is a clear straggler, but differences between the ranks cost {cost} {per_step}.",
            cost=Phrase(format_duration(verdict.imbalance), RANKS_TABLE),
            per_step=time_base(comparison),
        )
    if verdict.slower_devices is not None:
        return slower_devices_sentence(comparison, verdict.slower_devices)
    if verdict.underused is not None:
        underused = verdict.underused
        return text(
            "No rank{found} is a straggler, but {rank} computes {time} {per_step}, the median rank {median}.",
            found=_scope(members),
            rank=rank_names([comparison.sources[underused.member]], capital=False),
            time=f"only {format_duration(underused.time)}" if underused.time else "nothing",
            per_step=time_base(comparison),
            median=format_duration(underused.median),
        )
    if verdict.possible is not None:
        return text("No rank{found} is a clear straggler.", found=_scope(members))
    if not members_coverage(members).complete:
        return text(
            "The {count} ranks{found} are balanced; no straggler among them.",
            count=_compared_count(members),
            found=_scope(members),
        )
    return text("The ranks are balanced; no straggler.")


def _scope(members: Members[RankSummary]) -> str:
    """Return which ranks a sentence about the ranks is about: "" for all of the job."""
    coverage = members_coverage(members)
    return "" if coverage.complete else " compared" if coverage.untimed else " found"


def _compared_count(members: Members[RankSummary]) -> str:
    return f"{members_coverage(members).compared:,}"


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
        excess=format_duration(once.excess, "up" if several else "half"),
        cause=f", mostly in {shorten_name(shorten_frame(once.name))}" if once.name else "",
    )


def late_once_sentences(comparison: RankComparison, once: Sequence[LateOnce]) -> list[Text]:
    """Say it of several ranks."""
    return [late_once_sentence(comparison, each) for each in once]


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
    absent, untimed = coverage.absent, coverage.untimed
    files = text(
        "{traces} {missing} {are} missing",
        traces=agree(len(absent), "the trace of rank", "the traces of ranks"),
        missing=shorten_ranks(absent).replace(",", ", "),
        are=agree(len(absent), "is", "are"),
    )
    times = text(
        "the operations of {noun} {untimed} have no device times",
        noun=agree(len(untimed), "rank", "ranks"),
        untimed=shorten_ranks(untimed).replace(",", ", "),
    )
    if absent and untimed:
        return text("{count}; {files}, and {times}.", count=count, files=files, times=times)
    return text("{count}; {why}.", count=count, why=files if absent else times)


def missing_suspects_sentence(members: Members[RankSummary], verdict: StragglerVerdict) -> Text:
    """Say that ranks without a trace may be late beside the stragglers; nothing if all ranks are compared.

    A collective ends after the last arrival, so one that is as late as a straggler changes nothing in its trace,
    and makes the others wait as long.
    """
    coverage = members_coverage(members)
    if coverage.complete or count_unread(members):
        return ()
    several = len(coverage.missing) != 1
    also_late = text(
        "{missing} may be {late}, too: no other trace can show that.",
        missing=_missing_ranks(members) if coverage.missing else "The missing ranks",
        late="stragglers" if several else "a straggler",
    )
    named = [row.member for row in verdict.ranks]
    fixed = text(
        "If so, fixing {names} alone saves less, or nothing.",
        names=member_names(compare_members(members), named, capital=False),
    )
    return sentences(also_late, fixed)


def _missing_ranks(members: Members[RankSummary], capital: bool = True) -> str:
    """Return "Rank 3", "Ranks 3, 5", or "A rank" if the numbers of the missing ranks are unknown."""
    missing = members_coverage(members).missing
    if not missing:
        return "A rank" if capital else "a rank"
    noun = agree(len(missing), "rank", "ranks")
    return f"{capitalize(noun) if capital else noun} {shorten_ranks(missing).replace(',', ', ')}"


def _why_missing(members: Members[RankSummary]) -> str:
    """Say why the missing ranks aren't compared."""
    coverage = members_coverage(members)
    several = len(coverage.missing) > 1
    if coverage.absent and coverage.untimed:
        return "they can't all be compared"
    if coverage.untimed:
        return f"{'their' if several else 'its'} operations have no device times"
    return "their traces are missing" if several else "its trace is missing"


def _straggler_sentence(
    comparison: RankComparison, verdict: StragglerVerdict, complete: bool = True, scope: str = " found"
) -> Text:
    """Name the stragglers and their cost; until all ranks are read, briefly, so that it takes one line.

    scope  see `_scope`
    """
    count = len(verdict.ranks)
    # Beside missing ranks that the others wait for, ranks are only known to be late among those that are found.
    among = f"Of the ranks{scope}, " if complete and verdict.missing_cost is not None else ""
    names = member_names(comparison, [row.member for row in verdict.ranks], complete and not among)
    suspect, row = verdict.suspect, verdict.ranks[0]
    if suspect is not None and suspect.host is not None:
        names = text("{names} of {host}", names=names, host=suspect.host)
    if count > 1:
        template = "{among}{names} are stragglers: together they cost {others} {limit}{cost} {per_step}."
    elif row.last == 0 or not complete:
        template = "{among}{names} is a straggler: it costs {others} {limit}{cost} {per_step}."
    else:
        template = (
            "{among}{names} is a straggler: it arrives last at {collectives} and costs {others} {limit}{cost} "
            "{per_step}."
        )
    return text(
        template,
        among=among,
        names=names,
        collectives=_late_collectives(comparison, row),
        others="the other rank" if len(comparison.sources) == 2 else "every other rank",
        # Without it, the others may still wait: for ranks that aren't compared, or for the next message.
        limit="up to " if verdict.cost_is_limit else "",
        cost=format_duration(suspect.cost if suspect else row.cost, "up" if verdict.cost_is_limit else "half"),
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
            "Only {rank} was read. Add the other ranks' traces to see who waits for whom.",
            rank=rank_names(comparison.sources, capital=False),
        )
    if verdict.reason == "few":
        return text(
            "Only {count} of {all} were read, too few to name a straggler.",
            count=Phrase(_compared_count(members), RANKS_TABLE),
            all=plural(members_coverage(members).expected, "rank"),
        )
    if verdict.reason == "groups":
        return text("The traces don't record which ranks communicate, so waiting can't be attributed.")
    if verdict.reason == "missing" and verdict.missing_cost is not None:
        several = len(members_coverage(members).missing) > 1
        return text(
            "{missing} may be {late}, but {why}: the {count} ranks{found} spend up to {cost} {per_step} "
            "waiting for {it}.",
            missing=_missing_ranks(members),
            late="stragglers" if several else "the straggler",
            why=_why_missing(members),
            count=Phrase(_compared_count(members), RANKS_TABLE),
            found=_scope(members),
            cost=format_duration(verdict.missing_cost, "up"),
            per_step=time_base(comparison),
            it="them" if several else "it",
        )
    if verdict.reason == "absent" and verdict.suspect is not None:
        coverage = members_coverage(members)
        if coverage.untimed or coverage.complete:
            return text(
                "All {ranks} whose times of a collective are known wait for another one, at least {cost} "
                "{per_step}.",
                ranks=Phrase("ranks", RANKS_TABLE),
                cost=format_duration(verdict.suspect.cost, "down"),
                per_step=time_base(comparison),
            )
        # Whether it is the straggler is another question: in further steps it may wait for those that are found.
        known = len(coverage.missing) == 1
        return text(
            "All {ranks} found here wait for {absent}, at least {cost} {per_step}.",
            ranks=Phrase("ranks", RANKS_TABLE),
            absent=(
                f"{_missing_ranks(members, capital=False)}, whose trace is missing"
                if known
                else "a rank whose trace is missing"
            ),
            cost=format_duration(verdict.suspect.cost, "down"),
            per_step=time_base(comparison),
        )
    return text("No collective could be matched between the ranks, so waiting can't be attributed.")


def costliest_rank_sentence(members: Members[RankSummary], row: Straggler | None) -> Text:
    """Name the costliest rank compared where most ranks, or the straggler, are missing.

    A missing one that is as late in the same steps changes no trace of the others, so the cost is a limit.
    """
    comparison, coverage = compare_members(members), members_coverage(members)
    verb = "compared" if coverage.untimed else "found"
    if row is None:
        return text("No delay is attributed to the ranks that were {compared}.", compared=verb)
    return text(
        "Of the ranks that were {compared}, {name} costs the others most: up to {cost} {per_step}, but nothing if "
        "{missing} is as late anyway.",
        compared=verb,
        name=rank_names([comparison.sources[row.member]], capital=False),
        cost=format_duration(row.cost, "up"),
        per_step=time_base(comparison),
        missing=_missing_ranks(members, capital=False) if len(coverage.missing) == 1 else "another rank",
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
    if verdict.uneven is not None:
        return uneven_work_sentence(comparison, verdict.uneven, verdict.imbalance)
    if verdict.slower_devices is not None:
        known = verdict.imbalance is not None  # else the headline says it
        return slower_devices_sentence(comparison, verdict.slower_devices) if known else ()
    if verdict.once:
        # The headline says it of the latest one.
        others = late_once_sentences(comparison, verdict.once[1:MAX_EXPLAINED_EVENTS])
        rest = _differences_sentence(comparison, verdict.imbalance) if verdict.imbalance is not None else ()
        return sentences(*others, _cost_of_late_once(comparison, verdict), rest)
    if verdict.imbalance is not None:
        leading = verdict.leading
        if leading is None:
            return text("No small group of ranks causes most of it.")
        return text("{cost}.", cost=_cost_clause(comparison, leading.members, leading.cost))
    costliest = verdict.costliest
    if costliest is None:
        return text("No delay is attributed to any rank.")
    cost = _cost_clause(comparison, [costliest.member], costliest.cost)
    return text(
        "{cost}, less than {worth} of {base}.",
        cost=cost,
        worth=format_ratio(MIN_COST_SHARE),
        base=with_article(job_noun(comparison)) if has_steps(comparison) else "it",
    )


def _differences_sentence(comparison: RankComparison, imbalance: float) -> Text:
    """Say what all ranks cost together where those that are named cost less."""
    cost, per_step = format_duration(imbalance), time_base(comparison)
    return text("All differences between the ranks cost {cost} {per_step}.", cost=cost, per_step=per_step)


def _cost_of_late_once(comparison: RankComparison, verdict: StragglerVerdict) -> Text:
    """Say what the costliest rank costs if it is one that is late once; empty if that is another one.

    If the steps in which it is late are set aside, the cost in the others says nothing of them. If they count, it
    may be worth naming.
    """
    costliest = verdict.costliest
    steps = [each.steps for each in verdict.once if costliest is not None and each.member == costliest.member]
    if costliest is None or not steps or not are_typical(comparison.job, steps[0]):
        return ()
    return text("{cost}.", cost=_cost_clause(comparison, [costliest.member], costliest.cost))


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
