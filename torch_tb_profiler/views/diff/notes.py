"""What to keep in mind: how the recordings differ, what is left out, what cannot be concluded."""

from __future__ import annotations

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.shared.step_means import WARM_UP
from torch_tb_profiler.base.units import format_duration, format_number
from torch_tb_profiler.views._shared.text import Phrase, Text
from torch_tb_profiler.views.diff.payload import DiffSide

CORRELATED = 0.2
"""Autocorrelation of steps from which on it is said."""


def notes(
    step: Change,
    base: DiffSide,
    candidate: DiffSide,
    batch_sizes: tuple[int, int] | None,
    autocorrelation: float,
    one_run: bool,
) -> list[Text]:
    """A sentence or two each."""
    lines: list[str] = []
    counts = len(base.steps), len(candidate.steps)
    if counts[0] != counts[1]:
        lines.append(f"Steps: {counts[0]} in the base, {counts[1]} in the candidate. All numbers are per step.")
    for side, name in ((base, "base"), (candidate, "candidate")):
        lines += _side_notes(side, name)
    lines += _doubts(step, base, candidate, autocorrelation, one_run)
    if base.device_type != candidate.device_type or (
        base.devices != candidate.devices and _named(base, candidate)
    ):
        sides = [", ".join(side.devices) or side.device_type for side in (base, candidate)]
        lines.append(f"Different hardware: {sides[0]} in the base, {sides[1]} in the candidate.")
    if base.rank != candidate.rank and base.rank is not None and candidate.rank is not None:
        lines.append(f"Different ranks: {base.rank} in the base, {candidate.rank} in the candidate.")
    if batch_sizes is not None:
        lines.append(
            f"The first dimension of inputs (often the batch) is {batch_sizes[0]} in the base and "
            f"{batch_sizes[1]} in the candidate."
        )
    return [(Phrase(line),) for line in lines]


def _side_notes(side: DiffSide, name: str) -> list[str]:
    lines: list[str] = []
    if side.warm_up_ns:
        times = ", ".join(format_duration(ns) for ns in side.warm_up_ns)
        lines.append(
            f"The first step of the {name} ({times}) is left out as warm-up: it takes more than "
            f"{format_number(WARM_UP, 2)} times the median of the others."
        )
    if not side.steps_recorded:
        lines.append(f"The {name} has no ProfilerStep: the whole trace counts as one step.")
    if side.left_out:
        lines.append(f"Steps of the {name} not counted because their device work is missing: {side.left_out}.")
    if side.outside_calls:
        lines.append(f"Operator calls of the {name} outside the counted steps: {side.outside_calls:,}.")
    return lines


def _doubts(step: Change, base: DiffSide, candidate: DiffSide, autocorrelation: float, one_run: bool) -> list[str]:
    if step.low_ns is None or step.high_ns is None:
        return [
            "A side has fewer than two steps, so changes cannot be told from chance. Record several steps "
            "(`schedule(active=...)`)."
        ]
    lines = []
    typical, mean = candidate.typical_ns - base.typical_ns, step.delta_ns or 0
    if abs(mean - typical) > (step.high_ns - step.low_ns) / 2:
        lines.append(
            "A few steps are much longer or shorter than the others. The verdict is about typical steps, without "
            "the longest and the shortest fifth; means over all steps are "
            f"{format_duration(step.base_ns)} and {format_duration(step.candidate_ns)}."
        )
    if autocorrelation >= CORRELATED:
        lines.append(
            f"Steps resemble the one before (autocorrelation {format_number(autocorrelation, 2)}), so they count "
            "as fewer and the intervals are wider."
        )
    if not one_run and max(len(base.recordings), len(candidate.recordings)) < 2:
        lines.append(
            "One recording of each side: how far recordings of one program differ from each other is not known. "
            "Several of each side tell."
        )
    return lines


def _named(*sides: DiffSide) -> bool:
    """Whether the devices are known by more than their numbers."""
    return not any(name.startswith(f"{side.device_type} ") for side in sides for name in side.devices)
