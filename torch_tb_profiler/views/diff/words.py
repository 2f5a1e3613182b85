"""The diff in words: what changed, what explains it, and what to keep in mind."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.base.units import format_duration, format_ratio
from torch_tb_profiler.views.diff.payload import Change, DiffBar, DiffOperator, DiffSide, DiffWaterfall

_NAMES = {
    "kernel": "kernels",
    "memcpy": "copies",
    "memset": "fills",
    "communication": "exposed communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_exec": "operators on the host",
    "other": "time in which nothing is recorded",
}

WHOLE = 0.9
"""A part that explains at least this much of the difference explains nearly all of it."""

NAMED = 3


def summary(step: Change, waterfall: DiffWaterfall, operators: Sequence[DiffOperator]) -> list[str]:
    """The step, what explains its change, the operators that changed most."""
    return [_step(step), *_cause(step, waterfall), *_operators(operators)]


def _step(step: Change) -> str:
    times = f"{format_duration(step.base_ns)} before, {format_duration(step.candidate_ns)} now"
    if step.verdict == "equal":
        return f"The step takes the same time on both sides: {format_duration(step.base_ns)}."
    change = f"{format_duration(abs(step.delta_ns or 0))} ({format_ratio(abs(step.delta_ratio or 0))})"
    direction = "slower" if (step.delta_ns or 0) > 0 else "faster"
    if step.verdict == "unknown":
        return f"The step is {change} {direction}; with one step that cannot be told from chance: {times}."
    if step.verdict == "noise":
        return f"The step's change of {_signed(step.delta_ns)} is within noise: {times}."
    return f"The step is {change} {direction}: {times}."


def _cause(step: Change, waterfall: DiffWaterfall) -> list[str]:
    if step.verdict == "noise":
        real = [_bar(bar) for bar in waterfall.bars if bar.verdict in ("slower", "faster")]
        return [f"Real, though: {', '.join(real)}."] if real else []
    if step.verdict == "equal" or not waterfall.delta_ns:
        return []
    largest = max(waterfall.bars, key=lambda bar: bar.delta_ns / waterfall.delta_ns)
    share = largest.delta_ns / waterfall.delta_ns
    part = _NAMES.get(largest.name, largest.name)
    if share >= WHOLE:
        found = [f"Nearly all of it is {part} ({_signed(largest.delta_ns)})."]
    else:
        found = [f"Most of it, {format_ratio(share)}, is {part} ({_signed(largest.delta_ns)})."]
    others = [_bar(bar) for bar in waterfall.bars if bar is not largest and bar.verdict in ("slower", "faster")]
    return found + ([f"Also: {', '.join(others)}."] if others else [])


def _bar(bar: DiffBar) -> str:
    return f"{_NAMES.get(bar.name, bar.name)} {_signed(bar.delta_ns)}"


def _operators(operators: Sequence[DiffOperator]) -> list[str]:
    said = []
    for row in operators:
        metric = max(row.host_self, row.device_self, key=lambda change: abs(change.delta_ns or 0))
        if metric.verdict in ("slower", "faster"):
            name = f"{row.name} (now {row.candidate_name})" if row.candidate_name else row.name
            new = {"added": ", new", "removed": ", gone"}.get(row.status, "")
            said.append(f"{name} {_signed(metric.delta_ns)}{new}")
    more = f" and {len(said) - NAMED} more" if len(said) > NAMED else ""
    return [f"Operators that changed most: {', '.join(said[:NAMED])}{more}."] if said else []


def _signed(ns: float | None) -> str:
    return ("+" if (ns or 0) > 0 else "") + format_duration(ns)


def notes(base: DiffSide, candidate: DiffSide) -> list[str]:
    """What differs between the recordings, and what cannot be told from them."""
    found = []
    counts = len(base.steps), len(candidate.steps)
    if counts[0] != counts[1]:
        found.append(
            f"Counted steps: {counts[0]} of the base, {counts[1]} of the candidate; numbers are per step."
        )
    for side, name in ((base, "base"), (candidate, "candidate")):
        if not side.steps_recorded:
            found.append(f"The {name} has no ProfilerStep: the whole trace counts as one step.")
        if side.left_out:
            found.append(f"Steps of the {name} that lack their device work and are not counted: {side.left_out}.")
        if side.outside_calls:
            found.append(f"Operator calls of the {name} outside of the counted steps: {side.outside_calls:,}.")
    if min(counts) < 2:
        found.append(
            "With fewer than two steps on a side nothing can be told from chance: record several "
            "(`schedule(active=...)`)."
        )
    if base.device_type != candidate.device_type or (
        base.devices != candidate.devices and _named(base, candidate)
    ):
        sides = [", ".join(side.devices) or side.device_type for side in (base, candidate)]
        found.append(f"Different hardware: {sides[0]} and {sides[1]}.")
    if base.rank != candidate.rank and base.rank is not None and candidate.rank is not None:
        found.append(f"Different ranks: {base.rank} and {candidate.rank}.")
    return found


def _named(*sides: DiffSide) -> bool:
    """True if the devices are known by more than their numbers."""
    return not any(name.startswith(f"{side.device_type} ") for side in sides for name in side.devices)
