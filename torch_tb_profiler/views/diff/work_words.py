"""Whether more is computed, or the same more slowly, in words."""

from __future__ import annotations

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.comparison import Comparison
from torch_tb_profiler.base.units import format_number, format_ratio
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text

LIKE = 0.05
"""Shares of the device time whose work is known; further apart, more FLOPs may only be known, not done."""

COMPLETE = 0.995


def sentences(comparison: Comparison, min_effect: float) -> list[Text]:
    """About matrix operators; none where the FLOPs of a side are not known."""
    base, candidate = comparison.computed
    old, new = base.matrix.flops, candidate.matrix.flops
    if not (old and new) or base.coverage is None or candidate.coverage is None:
        return []
    known = format_ratio(base.coverage), format_ratio(candidate.coverage)
    if abs(candidate.coverage - base.coverage) > LIKE:
        said = text(
            "Whether more is computed cannot be told: the work of {old} of the device time is known in the base, "
            "of {new} in the candidate.",
            old=known[0],
            new=known[1],
        )
        return [said]
    change = new / old - 1
    operators = Phrase("Matrix operators", link("diff", metric="device_self"))
    speeds = _speed(old, base.matrix.busy_ns), _speed(new, candidate.matrix.busy_ns)
    part = ""
    if min(base.coverage, candidate.coverage) < COMPLETE:
        part = f" The work of {known[0]} and {known[1]} of the device time is known."
    if abs(change) <= min_effect:
        return [
            text("{who} compute the same{how}.{part}", who=operators, how=_same(comparison, speeds), part=part)
        ]
    more = f"{format_ratio(abs(change))} {'more' if change > 0 else 'fewer'} FLOPs, at {speeds[1]} TFLOP/s"
    before = "" if speeds[0] == speeds[1] else f" after {speeds[0]}"
    return [text("{who} compute {more}{before}.{part}", who=operators, more=more, before=before, part=part)]


def _same(comparison: Comparison, speeds: tuple[str, str]) -> str:
    """How fast the same is computed, as far as that is proven."""
    time: Change = comparison.matrix_time
    if time.significant and time.delta_ratio is not None:
        return f" {format_ratio(abs(time.delta_ratio))} {time.verdict}, at {speeds[1]} TFLOP/s after {speeds[0]}"
    if time.verdict in ("unchanged", "equal"):
        return f" as fast as before, at {speeds[1]} TFLOP/s"
    return f"; whether as fast, these steps cannot tell ({speeds[1]} TFLOP/s after {speeds[0]})"


def _speed(flops: float, ns: float) -> str:
    return format_number(flops / ns / 1000)
