"""The notes of the Diff tab: how the recordings differ, what is left out, and what limits the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.step_parts import no_device_work_reason
from torch_tb_profiler.analyses.shared.step_means import autocorrelation_error
from torch_tb_profiler.base.format import format_duration, format_number
from torch_tb_profiler.base.grammar import agree, capitalize, plural
from torch_tb_profiler.views._shared.text import Phrase, Text
from torch_tb_profiler.views.diff.payload import DiffOddStep, DiffSide

MAX_ODD_STEPS = 3
"""Most odd steps of a side that notes name one by one."""

ALIKE_RATIO = 0.1
"""Steps whose durations differ by at most this ratio are as long as each other."""

CORRELATED = 0.2
"""Autocorrelation of the steps from which on a note mentions it."""

_MIN_CLEAR_ERRORS = 2.0
"""From so many standard errors on, the steps show a correlation; of independent ones, fewer than 2% show one."""


def build_notes(
    step: Change,
    base: DiffSide,
    candidate: DiffSide,
    batch_sizes: tuple[int, int] | None,
    autocorrelation: float,
    one_run: bool,
    noun: str = "step",
    without_calls: Sequence[str] = (),
) -> list[Text]:
    """Say how the recordings differ, what is left out, and what limits the verdict, in a sentence or two each.

    without_calls  the sides that recorded no runtime calls where the other did
    """
    lines: list[str] = []
    counts = len(base.steps), len(candidate.steps)
    if counts[0] != counts[1]:
        lines.append(
            f"{plural(counts[0], noun)} in the base, {counts[1]} in the candidate. All numbers are per {noun}."
        )
    for side, name in ((base, "base"), (candidate, "candidate")):
        lines += _write_side_notes(side, name, noun)
    for side, other, names in (
        (base, candidate, ("base", "candidate")),
        (candidate, base, ("candidate", "base")),
    ):
        if _left_out_as_typical(side, other):
            left, counted = names
            lines.append(
                f"{capitalize(noun)}s as long as some that are left out of the {left} are typical of the "
                f"{counted}, and count there."
            )
    lines += _write_uncertainty_notes(step, base, candidate, autocorrelation, one_run, noun)
    hosts = [name for side, name in ((base, "base"), (candidate, "candidate")) if side.device_type == "CPU"]
    if len(hosts) == 1:
        lines.append(f"{capitalize(no_device_work_reason(hosts))}.")
    elif _differ_in_hardware(base, candidate):
        hardware = [", ".join(side.devices) or side.device_type for side in (base, candidate)]
        lines.append(f"Different hardware: {hardware[0]} in the base, {hardware[1]} in the candidate.")
    if without_calls:
        sides = " and ".join(f"the {name}" for name in without_calls)
        lines.append(f"Host self times include runtime calls, which {sides} didn't record separately.")
    if base.rank != candidate.rank and base.rank is not None and candidate.rank is not None:
        lines.append(f"Different ranks: {base.rank} in the base, {candidate.rank} in the candidate.")
    if batch_sizes is not None:
        lines.append(
            f"The first dimension of the inputs (often the batch size) is {batch_sizes[0]} in the base and "
            f"{batch_sizes[1]} in the candidate."
        )
    return [(Phrase(line),) for line in lines]


def _write_side_notes(side: DiffSide, name: str, noun: str) -> list[str]:
    lines: list[str] = []
    if side.warm_up_ns:
        times = ", ".join(format_duration(ns) for ns in side.warm_up_ns)
        lines.append(
            f"The first {noun} of the {name} ({times}) is left out, as it may be warm-up: a typical one takes "
            f"{format_duration(side.typical_ns)}."
        )
    lines += [_odd_step_note(step, name, noun) for step in side.odd_steps[:MAX_ODD_STEPS]]
    if len(side.odd_steps) > MAX_ODD_STEPS:
        more = len(side.odd_steps) - MAX_ODD_STEPS
        lines.append(f"{plural(more, f'more {noun}')} of the {name} {agree(more, 'is', 'are')} left out as well.")
    if not side.steps_recorded:
        lines.append(f"No steps in the {name} trace, so it counts as one. Call `prof.step()` once per iteration.")
    if side.left_out:
        lines.append(
            f"{plural(side.left_out, noun)} of the {name} {agree(side.left_out, 'is', 'are')} left out: "
            "device work is missing."
        )
    if side.outside_calls:
        calls, are = plural(side.outside_calls, "operator call"), agree(side.outside_calls, "is", "are")
        lines.append(f"{calls} in the {name} {are} outside the compared {noun}s.")
    return lines


def _left_out_as_typical(side: DiffSide, other: DiffSide) -> bool:
    """Return whether the other side has typical steps as long as an odd one of a side."""
    return any(
        abs(duration - (side.typical_ns + odd.extra_ns)) <= ALIKE_RATIO * duration
        for odd in side.odd_steps
        for duration in other.durations_ns
    )


def _odd_step_note(step: DiffOddStep, side: str, noun: str) -> str:
    more = "more" if step.extra_ns > 0 else "less"
    cause = f", mostly in {step.cause}" if step.cause else ""
    return (
        f"{capitalize(noun)} {step.step} of the {side} is left out: it takes "
        f"{format_duration(abs(step.extra_ns))} {more} than a typical {noun}{cause}."
    )


def _write_uncertainty_notes(
    step: Change, base: DiffSide, candidate: DiffSide, autocorrelation: float, one_run: bool, noun: str
) -> list[str]:
    if step.low_ns is None or step.high_ns is None:
        return [
            f"At least one side has fewer than two {noun}s, so there's no significance test. "
            f"Record several {noun}s (`schedule(active=...)`)."
        ]
    lines = []
    if autocorrelation >= CORRELATED:
        counts = [*base.recordings, *candidate.recordings]
        shown = autocorrelation >= _MIN_CLEAR_ERRORS * autocorrelation_error(counts)
        lines.append(
            f"Consecutive {noun}s {'are' if shown else 'may be'} correlated (autocorrelation "
            f"{format_number(autocorrelation, 2)}), so they count as fewer {noun}s and the intervals are wider."
        )
    if not one_run and max(len(base.recordings), len(candidate.recordings)) < 2:
        lines.append(
            "One recording per side, so run-to-run noise is unknown. Record each side two or three times."
        )
    return lines


def _differ_in_hardware(base: DiffSide, candidate: DiffSide) -> bool:
    """Return whether the sides are known to have run on other devices: "other" is a kind that no event tells."""
    kinds = {base.device_type, candidate.device_type}
    if len(kinds) > 1 and "other" not in kinds:
        return True
    return base.devices != candidate.devices and _have_device_names(base, candidate)


def _have_device_names(*sides: DiffSide) -> bool:
    """Return whether the devices are known by more than their numbers."""
    return not any(name.startswith(f"{side.device_type} ") for side in sides for name in side.devices)
