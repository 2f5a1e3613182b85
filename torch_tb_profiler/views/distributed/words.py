"""What the comparison of ranks comes to, in sentences whose parts open their evidence."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.matching import CollectiveMismatch
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import Straggler, StragglerActivity
from torch_tb_profiler.analyses.distributed.verdict import CommunicationShare, StragglerVerdict
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, count_unread
from torch_tb_profiler.views._shared.job.wording import (
    MAX_NAMED_RANKS,
    cause_sentence,
    costliest_rank_sentence,
    member_names,
    rank_differences_sentence,
    time_base,
)
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text


def explanation(members: Members[RankSummary], verdict: StragglerVerdict) -> Text:
    """What the delay and the communication cost, and why the rank is late; may be empty."""
    comparison = compare_members(members)
    if verdict.kind == "unknown":
        if count_unread(members) and verdict.reason in ("empty", "alone"):
            return text("Waiting can be attributed once two of them are read.")
        if count_unread(members):
            count = f"{len(comparison.sources):,}"
            return text("The {count} ranks read so far do not tell who keeps the others waiting.", count=count)
        return (
            costliest_rank_sentence(comparison, verdict.costliest) if verdict.reason in ("few", "absent") else ()
        )
    return sentences(
        rank_differences_sentence(comparison, verdict) if verdict.kind == "balanced" else (),
        _communicating(comparison, verdict.communication, verdict.ranks) if verdict.communication else (),
        cause_sentence(comparison, verdict.cause, time_base(comparison)) if verdict.cause else (),
    )


# ---- communication and its cause ------------------------------------------------------------------------


def _communicating(comparison: RankComparison, spent: CommunicationShare, stragglers: Sequence[Straggler]) -> Text:
    """How much of a step the (other) ranks communicate without computing, and in which collective."""
    count = len(spent.members)
    if count <= MAX_NAMED_RANKS:
        names = member_names(comparison, spent.members)
    else:
        names = text("The {other}{count} ranks", other="other " if stragglers else "", count=f"{count:,}")
    largest: Text = ()
    if spent.largest is not None:
        name = Phrase(spent.largest, link("distributed", table="collectives", q=spent.largest))
        largest = text(" ({name})" if spent.only else ", most of it in {name}", name=name)
    return text(
        "{names} {spend} {share} of {step} in {what}{largest}.",
        names=names, spend="spends" if count == 1 else "spend", share=format_ratio(spent.share),
        step=_whole(comparison),
        what="exposed communication" if spent.exposed else "communication", largest=largest,
    )  # fmt: skip


def _whole(comparison: RankComparison) -> str:
    """What the share is of: one step is not called each."""
    if time_base(comparison) != "per step":
        return "the recording"
    alone = all(len(source.summary.steps.complete_names()) == 1 for source in comparison.sources)
    return "the step" if alone else "each step"


def meanwhile_summary(row: StragglerActivity) -> Text:
    """How long a rank took before the collectives where it arrived last, beside the median rank."""
    latest = link("distributed", table="collectives", collective=row.latest)
    return text(
        "{time} before {collectives} in {steps}; the median rank took {median}.",
        time=format_duration(row.busy), collectives=Phrase(plural(row.collectives, "collective"), latest),
        steps=plural(row.steps, "step"), median=format_duration(row.median_busy),
    )  # fmt: skip


# ---- disagreements --------------------------------------------------------------------------------------

_DISAGREEMENTS = {
    "name": "ranks run different collectives at the same point",
    "size": "ranks move different amounts",
    "dtype": "ranks use different types",
    "missing": "a rank has not recorded it, though it has earlier and later ones",
}


def mismatch_text(name: str, difference: CollectiveMismatch) -> Text:
    """In which collective the ranks disagree, and on what."""
    collective = Phrase(name, link("distributed", table="collectives", collective=difference.instance))
    what = _DISAGREEMENTS[difference.what]
    if difference.what == "missing":
        return text("{collective}: {what}", collective=collective, what=what)
    values = ", ".join(difference.values)
    return text("{collective}: {what} ({values})", collective=collective, what=what, values=values)
