"""What the Overlap tab says in words."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.overlap.job import Dataset, Difference
from torch_tb_profiler.base.format import MINUS, format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, text
from torch_tb_profiler.views.overlap.payload import RankRow

TITLES = {
    "compute": "Computation",
    "allreduce": "All-reduce",
    "reducescatter": "Reduce-scatter",
    "allgather": "All-gather",
    "overlap": "Overlap",
    "allreduce_overlap": "Overlap with all-reduce",
    "reducescatter_overlap": "Overlap with reduce-scatter",
    "exposed": "Exposed communication",
    "hidden": "Hidden communication",
    "idle": "Idle before the last range",
    "total": "Iteration",
}

FOLDED = "two ranges of one stream run at once or meet, and the recorder ends both with the first"


def title(name: str) -> str:
    """Of a total: "stream aux" is the busy time of a stream."""
    return TITLES.get(name) or f"Stream {name.removeprefix('stream ')}"


def headline(
    total: float | None, exposed: float | None, collectives: dict[str, float], worst: str | None, whole: bool
) -> Text:
    """How much of an iteration only communicates. Means in ns; `collectives`: how long each is exposed;
    `whole`: all ranks are read."""
    yet = "" if whole else " in what is read so far"
    if not total or exposed is None:
        return text("No iteration has been read yet.")
    if not collectives:
        return text("No collective was recorded on a stream{yet}.", yet=yet)
    if exposed == 0:
        return text("Computation hides all communication{yet}.", yet=yet)
    longest = max(collectives, key=lambda name: collectives[name])
    return text(
        "{exposed} of an iteration only communicates, {share} of it; {collective} is exposed longest{yet}.",
        exposed=Phrase(format_duration(exposed), worst),
        share=format_ratio(exposed / total),
        collective=TITLES[longest].lower(),
        yet=yet,
    )


def details(rows: Sequence[RankRow], summary: Dataset, hidden: float | None) -> Text:
    """The two ratios, and which rank communicates alone for longest."""
    ready = [row for row in rows if row.exposed_ns is not None]
    if not ready:
        return ()
    ratios = text(
        "Overlap is {ratio} of the computation (overlap_ratio){hidden}; means over {iterations} of {ranks}.",
        ratio=format_ratio(summary.overlap_ratio),
        hidden="" if hidden is None else f", and {format_ratio(hidden)} of the communication is hidden",
        iterations=plural(summary.count, "iteration"),
        ranks=plural(len(ready), "rank"),
    )
    longest = max(ready, key=lambda row: row.exposed_ns or 0.0)
    if len(ready) == 1 or not longest.exposed_ns or any(row.state in ("waiting", "loading") for row in rows):
        return ratios  # another rank, which is still to be read, may have more
    return ratios + text(
        " {worker} has the most exposed communication: {time} per iteration.",
        worker=Phrase(longest.worker, longest.link),
        time=format_duration(longest.exposed_ns),
    )


def recorded_headline(differences: Sequence[Difference]) -> Text:
    """Whether what was recorded is what the ranges give."""
    if not differences:
        return text("No totals were recorded: all figures are recomputed from the ranges.")
    differing = [each for each in differences if each.iterations]
    if not differing:
        return text("What was recorded is what the ranges give.")
    return text(
        "{count} of {all} recorded totals differ from what the ranges give: {names}.",
        count=str(len(differing)),
        all=str(len(differences)),
        names=join_phrases(title(each.name).lower() for each in differing),
    )


def compared(base: Dataset, candidate: Dataset) -> Text:
    """The ratio of both sides."""
    if not base.count or not candidate.count:
        return text("One of the two sides has no iteration.")
    points = 100 * (candidate.overlap_ratio - base.overlap_ratio)
    return text(
        "Overlap is {candidate} of the computation, in what it is compared with {base}: {points} points.",
        candidate=format_ratio(candidate.overlap_ratio),
        base=format_ratio(base.overlap_ratio),
        points=f"{points:+.1f}".replace("-", MINUS),
    )
