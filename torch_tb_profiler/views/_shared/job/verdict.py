"""Who keeps the others waiting, in a sentence whose parts open their evidence."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.costs import Suspect
from torch_tb_profiler.analyses.distributed.groups import expected_ranks
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import Straggler
from torch_tb_profiler.analyses.distributed.verdict import MIN_COST_SHARE, StragglerVerdict
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members
from torch_tb_profiler.views._shared.job.rank_names import RANKS_TABLE, names_of, per_step, rank_names
from torch_tb_profiler.views._shared.job.reading import coming
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text


def headline(members: Members[RankSummary], verdict: StragglerVerdict) -> Text:
    """Who keeps the others waiting, or may; that no rank stands out; or why that is unknown. Until all ranks are
    read, it speaks of those that are."""
    comparison = compare_members(members)
    if verdict.kind == "unknown":
        return text("Reading the ranks.") if coming(members) else _unknown(comparison, verdict)
    if coming(members):
        sentence = (
            _costly(comparison, verdict, capital=False) if verdict.kind == "straggler" else "none stands out."
        )
        return text(
            "Of the {count} ranks read so far, {sentence}", count=f"{len(comparison.sources):,}", sentence=sentence
        )
    if verdict.kind == "straggler":
        return _costly(comparison, verdict)
    if verdict.kind == "uncertain" and verdict.possible is not None:
        return _doubtful(comparison, verdict.possible)
    return text("No rank stands out.")


def _doubtful(comparison: RankComparison, weak: Suspect) -> Text:
    """What it would cost, if it were no chance."""
    return text(
        "{names} may keep {others} waiting: {cost} {per_step}, which {steps} cannot tell from chance.",
        names=names_of(comparison, weak.members),
        others="the other" if len(comparison.sources) == 2 else "the others",
        cost=format_duration(weak.cost), per_step=per_step(comparison), steps=_recorded(comparison),
    )  # fmt: skip


def _recorded(comparison: RankComparison) -> str:
    """What there is to tell from."""
    steps = max(len(source.summary.steps) for source in comparison.sources)
    one = "one step" if per_step(comparison) == "per step" else "one recording"
    return one if steps == 1 else plural(steps, "step")


def _unknown(comparison: RankComparison, verdict: StragglerVerdict) -> Text:
    if verdict.reason == "empty":
        return text("No {rank} of this job can be compared.", rank=Phrase("rank", RANKS_TABLE))
    if verdict.reason == "alone":
        only = rank_names(comparison.sources, capital=False)
        return text("Only {rank} is here: without the other ranks, waiting cannot be attributed.", rank=only)
    if verdict.reason == "few":
        return text(
            "Only {count} of {all} are here: which rank keeps the job waiting cannot be told.",
            count=Phrase(f"{len(comparison.sources):,}", RANKS_TABLE),
            all=plural(len(expected_ranks(comparison)), "rank"),
        )
    if verdict.reason == "groups":
        return text("Which ranks communicate with each other is not recorded, so waiting cannot be attributed.")
    if verdict.reason == "absent" and verdict.suspect is not None:
        return text(
            "The late rank is not here: all {ranks} that are wait for one whose trace is missing, "
            "at least {cost} {per_step}.",
            ranks=Phrase("ranks", RANKS_TABLE), cost=format_duration(verdict.suspect.cost),
            per_step=per_step(comparison),
        )  # fmt: skip
    return text("No collective could be compared between the ranks, so waiting cannot be attributed.")


def _costly(comparison: RankComparison, verdict: StragglerVerdict, capital: bool = True) -> Text:
    names = names_of(comparison, [row.member for row in verdict.ranks], capital)
    suspect, row = verdict.suspect, verdict.ranks[0]
    cost = format_duration(suspect.cost if suspect else row.cost)
    others = "the other" if len(comparison.sources) == 2 else "the others"
    if suspect is not None and suspect.host is not None:
        names = text("{names} of {host}", names=names, host=suspect.host)
    if len(verdict.ranks) > 1:
        return text(
            "{names} keep {others} waiting, {cost} {per_step} in total.",
            names=names, others=others, cost=cost, per_step=per_step(comparison),
        )  # fmt: skip
    if row.last == 0:
        return text(
            "{names} keeps {others} waiting, which costs {cost} {per_step}.",
            names=names, others=others, cost=cost, per_step=per_step(comparison),
        )  # fmt: skip
    return text(
        "{names} keeps {others} waiting: it arrives last in {collectives}, which costs {cost} {per_step}.",
        names=names, others=others, collectives=_last_in(comparison, row), cost=cost,
        per_step=per_step(comparison),
    )  # fmt: skip


def most_costly(comparison: RankComparison, row: Straggler | None) -> Text:
    """Of a job of which no rank is named because most ranks, or the late one, are not here."""
    if row is None:
        return text("No delay is attributed to those that are here.")
    return text(
        "Of those that are here, {name} costs the others most: {cost} {per_step}.",
        name=rank_names([comparison.sources[row.member]], capital=False),
        cost=format_duration(row.cost), per_step=per_step(comparison),
    )  # fmt: skip


def differences(comparison: RankComparison, verdict: StragglerVerdict) -> Text:
    """Of a job of which no rank stands out: what the differences between its ranks cost nevertheless."""
    times = per_step(comparison)
    if verdict.possible is not None:
        return text(
            "{cost}, which {steps} cannot tell from chance.",
            cost=_most(comparison, verdict.possible.members, verdict.possible.cost),
            steps=_recorded(comparison),
        )
    if verdict.imbalance is not None:
        return text(
            "Differences between the ranks cost {cost} {per_step}; no rank, nor a few of them, causes most of it.",
            cost=format_duration(verdict.imbalance), per_step=times,
        )  # fmt: skip
    if verdict.costliest is None:
        return text("No delay is attributed to any of them.")
    return text(
        "{cost}, less than {worth} of {whole}.",
        cost=_most(comparison, [verdict.costliest.member], verdict.costliest.cost),
        worth=format_ratio(MIN_COST_SHARE),
        whole="a step" if times == "per step" else "it",
    )  # fmt: skip


def _most(comparison: RankComparison, members: Sequence[int], cost: float) -> Text:
    """What the costliest ranks cost, without a full stop."""
    several = len(comparison.sources) > 2
    return text(
        "{names} {costs} {others} {cost} {per_step}",
        names=names_of(comparison, members), costs="costs" if len(members) == 1 else "cost",
        others="the others most:" if several else "the other", cost=format_duration(cost),
        per_step=per_step(comparison),
    )  # fmt: skip


def _last_in(comparison: RankComparison, row: Straggler) -> Phrase:
    worker = comparison.sources[row.member].worker
    return Phrase(
        f"{row.last:,} of {plural(row.collectives, 'collective')}",
        link("distributed", table="collectives", late=worker, sort="-skew"),
    )
