"""The diff in words: what changed, what explains it, and what to keep in mind."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.base.units import format_duration, format_ratio
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text
from torch_tb_profiler.views.diff.payload import (
    DiffBar,
    DiffLevel,
    DiffOperator,
    DiffSide,
    DiffWaterfall,
)

_CATEGORIES = {
    "kernel": "kernels",
    "memcpy": "memcpy",
    "memset": "memset",
    "communication": "exposed communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_exec": "host operators",
    "other": "time in which nothing is recorded",
}

NEARLY_ALL = 0.9
"""A category that explains at least this share of the difference explains nearly all of it."""

MOST_OPERATORS = 3


def headline(step: Change, base: DiffSide, candidate: DiffSide) -> Text:
    """How the step changed."""
    empty = [name for name, side in (("base", base), ("candidate", candidate)) if not side.steps]
    if empty:
        sides = " or the ".join(empty)
        return text("Step times cannot be compared: there is no complete step in the {sides}.", sides=sides)
    return _step(step)


def _step(step: Change) -> Text:
    base, delta = format_duration(step.base_ns), step.delta_ns or 0
    if step.verdict == "equal" or not delta:
        return text("Step time is the same on both sides: {now}.", now=Phrase(base, link("overview")))
    candidate = Phrase(format_duration(step.candidate_ns), link("overview"))
    parts = link("diff", table="parts")
    if step.verdict == "noise":
        return text(
            "No significant change in step time: {before} before, {now} now ({delta} is within noise).",
            before=base,
            now=candidate,
            delta=Phrase(signed_duration(delta), parts),
        )
    ratio = "" if step.delta_ratio is None else f" ({format_ratio(abs(step.delta_ratio))})"
    change = f"{format_duration(abs(delta))}{ratio} {'slower' if delta > 0 else 'faster'}"
    doubt = ". A side has fewer than two steps, so this may be chance" if step.verdict == "unknown" else ""
    return text(
        "The step is {change}: {before} before, {now} now{doubt}.",
        change=Phrase(change, parts),
        before=base,
        now=candidate,
        doubt=doubt,
    )


def explanation(step: Change, categories: DiffWaterfall, root: DiffLevel) -> list[Text]:
    """The categories and the operators that explain the change, a sentence each."""
    return [*_categories(step, categories, root), *_operators(root.operators)]


def _categories(step: Change, waterfall: DiffWaterfall, root: DiffLevel) -> list[Text]:
    significant = [bar for bar in waterfall.bars if bar.verdict in ("slower", "faster")]
    if step.verdict == "noise":
        listed = _joined([_bar(bar, root) for bar in significant])
        return [text("Significant changes within the step: {bars}.", bars=listed)] if significant else []
    if step.verdict == "equal" or not waterfall.delta_ns or not (step.base_ns and step.candidate_ns):
        return []
    largest = max(waterfall.bars, key=lambda bar: bar.delta_ns / waterfall.delta_ns)
    sentences = [_largest(largest, largest.delta_ns / waterfall.delta_ns, root)]
    others = [_bar(bar, root) for bar in significant if bar is not largest]
    return [*sentences, text("Also significant: {bars}.", bars=_joined(others))] if others else sentences


def _largest(bar: DiffBar, share: float, root: DiffLevel) -> Text:
    if share > 2 - NEARLY_ALL:
        template = "More than all of the change comes from {bar}{doubt}; other categories offset part of it."
    elif share >= NEARLY_ALL:
        template = "Nearly all of the change comes from {bar}{doubt}."
    else:
        template = "The largest part of the change, {share}, comes from {bar}{doubt}."
    doubt = ", which by itself is within noise" if bar.verdict == "noise" else ""
    return text(template, share=format_ratio(share), bar=_bar(bar, root), doubt=doubt)


def _bar(bar: DiffBar, root: DiffLevel) -> Text:
    name = Phrase(_CATEGORIES[bar.name], _evidence(bar.name, root))
    return text("{name} ({delta})", name=name, delta=signed_duration(bar.delta_ns))


def _evidence(category: str, root: DiffLevel) -> str:
    """What a category opens: the table or the part of what it is made of, else the timeline."""
    if category == "kernel":
        return link("diff", table="kernels")
    if category == "cpu_exec":
        return link("diff", table="operators")
    loader = next((part for part in root.parts if part.kind == "dataloader"), None)
    if category == "dataloader" and loader is not None and loader.parts:
        return link("diff", part=loader.path)
    return link("trace")


def _operators(operators: Sequence[DiffOperator]) -> list[Text]:
    changed = []
    for row in operators:
        time = max(("host_self", "device_self"), key=lambda name: abs(getattr(row, name).delta_ns or 0))
        change: Change = getattr(row, time)
        if change.significant:
            name = Phrase(row.name, link("diff", metric=None if time == "host_self" else time, q=row.name))
            status = {"renamed": f", now {row.candidate_name}", "added": ", added", "removed": ", removed"}
            delta = signed_duration(change.delta_ns)
            changed.append(
                text("{name} ({delta}{status})", name=name, delta=delta, status=status.get(row.status, ""))
            )
    if not changed:
        return []
    rest = len(changed) - MOST_OPERATORS
    more = text(" and {more}", more=Phrase(f"{rest} more", link("diff", only=1))) if rest > 0 else ()
    names = _joined(changed[:MOST_OPERATORS])
    return [text("Operators that changed most: {names}{more}.", names=names, more=more)]


def _joined(texts: Sequence[Text]) -> Text:
    """With commas between them."""
    joined: Text = ()
    for each in texts:
        joined = text("{before}, {each}", before=joined, each=each) if joined else each
    return joined


def signed_duration(ns: float | None) -> str:
    """+12.3 ms; less than a nanosecond is the rounding of means."""
    whole = None if ns is None else round(ns)
    return ("+" if (whole or 0) > 0 else "") + format_duration(whole)


def notes(base: DiffSide, candidate: DiffSide, batch_sizes: tuple[int, int] | None) -> list[Text]:
    """What differs between the recordings, and what cannot be concluded from them."""
    lines: list[str] = []
    counts = len(base.steps), len(candidate.steps)
    if counts[0] != counts[1]:
        lines.append(f"Steps: {counts[0]} in the base, {counts[1]} in the candidate. All numbers are per step.")
    for side, name in ((base, "base"), (candidate, "candidate")):
        lines += _side_notes(side, name)
    if min(counts) < 2:
        lines.append(
            "A side has fewer than two steps, so changes cannot be told from chance. Record several steps "
            "(`schedule(active=...)`)."
        )
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
    if not side.steps_recorded:
        lines.append(f"The {name} has no ProfilerStep: the whole trace counts as one step.")
    if side.left_out:
        lines.append(f"Steps of the {name} not counted because their device work is missing: {side.left_out}.")
    if side.outside_calls:
        lines.append(f"Operator calls of the {name} outside the counted steps: {side.outside_calls:,}.")
    return lines


def _named(*sides: DiffSide) -> bool:
    """Whether the devices are known by more than their numbers."""
    return not any(name.startswith(f"{side.device_type} ") for side in sides for name in side.devices)
