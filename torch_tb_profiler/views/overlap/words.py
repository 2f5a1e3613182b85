"""Sentences of the Overlap tab."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.overlap.dips import (
    DIP_RATIO,
    LOW_CLOCK_RATIO,
    MIN_FULL_MEMORY_PERCENT,
    MIN_HOT_DEGREES,
    MIN_ITERATIONS,
    OverlapDips,
    Signal,
    SignalEvidence,
)
from torch_tb_profiler.analyses.overlap.job import OverlapTotals, RecordedDifference
from torch_tb_profiler.base.format import MINUS, format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, text
from torch_tb_profiler.views.overlap.payload import OverlapRankRow, SeriesName

TITLES = {
    "compute": "Computation",
    "allreduce": "All-reduce",
    "reducescatter": "Reduce-scatter",
    "allgather": "All-gather",
    "overlap": "Overlap",
    "allreduce_overlap": "Overlap with all-reduce",
    "reducescatter_overlap": "Overlap with reduce-scatter",
    "exposed": "Exposed communication",
    "hidden": "Overlapped communication",
    "idle": "Idle before the last range",
    "total": "Iteration",
}

FOLDED_REASON = "two ranges of one stream run at once or touch, and the recorder ends both with the first"


SERIES_TITLES: dict[SeriesName, str] = {
    "overlap_ratio": "Overlap / computation",
    "exposed": "Exposed communication",
    "compute": "Computation",
    "loss": "Loss",
    "lr": "Learning rate",
    "grad_norm": "Gradient norm",
    "clock": "Clock",
    "power": "Power",
    "temperature": "Temperature",
    "memory": "Memory in use",
}

UNUSUAL: dict[Signal, str] = {
    "clock": f"below {LOW_CLOCK_RATIO:.0%} of the rank's median",
    "temperature": f"{MIN_HOT_DEGREES} °C or more above the rank's median",
    "memory": f"{MIN_FULL_MEMORY_PERCENT}% or more in use",
}

_COINCIDENCE: dict[Signal, str] = {
    "clock": "throttling: the clock is low",
    "temperature": "heat: the GPU is hotter",
    "memory": "memory pressure: memory is nearly full",
}


def title(name: str) -> str:
    """Return the title of a total; "stream aux" is the busy time of a stream."""
    return TITLES.get(name) or f"Stream {name.removeprefix('stream ')}"


def headline(
    total: float | None, exposed: float | None, collectives: dict[str, float], worst: str | None, complete: bool
) -> Text:
    """Say how much of an average iteration is exposed communication.

    total, exposed  mean ns per iteration
    collectives     mean exposed ns of each collective that was recorded
    worst           link to the iteration with the most exposed communication
    complete        all ranks are read
    """
    so_far = "" if complete else " in the ranks read so far"
    if not total or exposed is None:
        return text("No iteration has been read yet.")
    if not collectives:
        return text("No collective was recorded on a stream{so_far}.", so_far=so_far)
    if exposed == 0:
        return text("All communication overlaps with computation{so_far}.", so_far=so_far)
    longest = max(collectives, key=lambda name: collectives[name])
    return text(
        "Exposed communication takes {exposed} of an average iteration ({share}), "
        "{most} of it in {collective}{so_far}.",
        most="most" if 2 * collectives[longest] > exposed else "the largest part",
        exposed=Phrase(format_duration(exposed), worst),
        share=format_ratio(exposed / total),
        collective=TITLES[longest].lower(),
        so_far=so_far,
    )


def details(rows: Sequence[OverlapRankRow], totals: OverlapTotals, hidden_ratio: float | None) -> Text:
    """Give both ratios of the overlap, and name the rank with the most exposed communication."""
    ready = [row for row in rows if row.exposed_ns is not None]
    if not ready:
        return ()
    hidden = "" if hidden_ratio is None else f"; {format_ratio(hidden_ratio)} of communication is overlapped"
    ratios = text(
        "{ratio} of computation overlaps with communication (overlap_ratio){hidden}. "
        "Means over {iterations} of {ranks}.",
        ratio=format_ratio(totals.overlap_ratio),
        hidden=hidden,
        iterations=plural(totals.count, "iteration"),
        ranks=plural(len(ready), "rank"),
    )
    longest = max(ready, key=lambda row: row.exposed_ns or 0.0)
    if len(ready) == 1 or not longest.exposed_ns or any(row.state in ("waiting", "loading") for row in rows):
        return ratios  # a rank that isn't read yet may have more
    return ratios + text(
        " {worker} has the most exposed communication: {time} per iteration.",
        worker=Phrase(longest.worker, longest.link),
        time=format_duration(longest.exposed_ns),
    )


def recorded_headline(differences: Sequence[RecordedDifference]) -> Text:
    """Say whether the recorded totals match those recomputed from the ranges."""
    if not differences:
        return text("No totals were recorded; all figures are recomputed from the ranges.")
    differing = [difference for difference in differences if difference.iterations]
    if not differing:
        return text("All recorded totals match the ranges.")
    return text(
        "{count} of {all} recorded totals differ from the ranges: {names}.",
        count=str(len(differing)),
        all=str(len(differences)),
        names=join_phrases(title(difference.name).lower() for difference in differing),
    )


def comparison_headline(base: OverlapTotals, candidate: OverlapTotals) -> Text:
    """Compare the overlap ratio of both sides."""
    if not base.count or not candidate.count:
        return text("One of the two sides has no iterations.")
    points = 100 * (candidate.overlap_ratio - base.overlap_ratio)
    return text(
        "{candidate} of computation overlaps with communication, compared with {base} in the base run: {points} "
        "points.",
        candidate=format_ratio(candidate.overlap_ratio),
        base=format_ratio(base.overlap_ratio),
        points=f"{points:+.1f}".replace("-", MINUS),
    )


def dips_headline(dips: OverlapDips) -> Text:
    """Say how many iterations have little overlap, and whether they coincide with throttling or full memory."""
    if not dips.iterations:
        return text(
            "Dips in overlap can be found once a rank has {least} iterations with any overlap.",
            least=str(MIN_ITERATIONS),
        )
    if not dips.dips:
        return text("No iteration's overlap is below {share} of its rank's median.", share=format_ratio(DIP_RATIO))
    best = max(
        (each for each in dips.signals if each.strength != "none"),
        key=lambda each: (each.strength == "strong", -each.chance),
        default=None,
    )
    count = f"{dips.dips:,} of {plural(dips.iterations, 'iteration')}"
    if best is not None:
        return _coincidence_sentence(best)
    if dips.signals:
        names = join_phrases(SERIES_TITLES[each.signal].lower() for each in dips.signals)
        return text(
            "Overlap dips in {count}, but not together with unusual readings: {names}.", count=count, names=names
        )
    return text("Overlap dips in {count}. The cause is unknown: {reason}.", count=count, reason=_no_signals(dips))


def _coincidence_sentence(evidence: SignalEvidence) -> Text:
    return text(
        "{strength} evidence that dips in overlap coincide with {what} in {dips_with} of {dips}, "
        "and in {others_with} of {others}.",
        strength="Strong" if evidence.strength == "strong" else "Weak",
        what=_COINCIDENCE[evidence.signal],
        dips_with=f"{evidence.dips_with:,}",
        dips=plural(evidence.dips, "dip"),
        others_with=f"{evidence.others_with:,}",
        others=plural(evidence.others, "other iteration"),
    )


def _no_signals(dips: OverlapDips) -> str:
    """Return why nothing that `rocm-smi` read can be compared."""
    if not dips.gpus:
        return "no output of `rocm-smi` was recorded (`--enable-rocm-metrics`)"
    if not dips.gpu_known:
        return f"`rocm-smi` lists {dips.gpus} GPUs, and which one a rank used isn't recorded"
    return "`rocm-smi` recorded no clock, temperature or memory (`--showclocks`, ...)"
