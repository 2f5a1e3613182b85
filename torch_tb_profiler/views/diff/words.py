"""What explains the change: categories and operators, in words."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.base.units import format_ratio
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text
from torch_tb_profiler.views.diff.payload import (
    DiffBar,
    DiffLevel,
    DiffOperator,
    DiffWaterfall,
)
from torch_tb_profiler.views.diff.verdicts import signed_duration

CATEGORIES = {
    "kernel": "kernels",
    "memcpy": "memcpy",
    "memset": "memset",
    "communication": "exposed communication",
    "runtime": "runtime calls",
    "dataloader": "data loading",
    "cpu_exec": "host operators",
    "other": "time in which nothing is recorded",
}

_STATUS = {
    "added": ", added",
    "removed": ", removed",
    "moved_in": ", before in processes that were not recorded",
    "moved_out": ", now in processes that are not recorded",
}

NEARLY_ALL = 0.9
"""A category that explains at least this share of the difference explains nearly all of it."""

MOST_OPERATORS = 3


def explanation(step: Change, categories: DiffWaterfall, root: DiffLevel) -> list[Text]:
    """The categories and the operators that explain the change, a sentence each."""
    return [*_categories(step, categories, root), *_operators(root.operators)]


def _categories(step: Change, waterfall: DiffWaterfall, root: DiffLevel) -> list[Text]:
    significant = [bar for bar in waterfall.bars if bar.verdict in ("slower", "faster")]
    if not _has_direction(step):
        listed = _joined([_bar(bar, root) for bar in significant])
        return [text("Significant changes within the step: {bars}.", bars=listed)] if significant else []
    if not waterfall.delta_ns or not (step.base_ns and step.candidate_ns):
        return []
    largest = max(waterfall.bars, key=lambda bar: bar.delta_ns / waterfall.delta_ns)
    sentences = [_largest(largest, largest.delta_ns / waterfall.delta_ns, root)]
    others = [_bar(bar, root) for bar in significant if bar is not largest]
    return [*sentences, text("Also significant: {bars}.", bars=_joined(others))] if others else sentences


def _has_direction(step: Change) -> bool:
    """Whether the step differs as far as is known, and its mean in the same direction as a typical step."""
    low, high, delta = step.low_ns, step.high_ns, step.delta_ns or 0
    if step.verdict in ("unchanged", "equal", "unknown"):
        return False
    return low is None or high is None or (low > 0 and delta > 0) or (high < 0 and delta < 0)


def _largest(bar: DiffBar, share: float, root: DiffLevel) -> Text:
    if share > 2 - NEARLY_ALL:
        template = "More than all of the change comes from {bar}{doubt}; other categories offset part of it."
    elif share >= NEARLY_ALL:
        template = "Nearly all of the change comes from {bar}{doubt}."
    else:
        template = "The largest part of the change, {share}, comes from {bar}{doubt}."
    doubt = ", which by itself is not proven" if bar.verdict == "cannot_tell" else ""
    return text(template, share=format_ratio(share), bar=_bar(bar, root), doubt=doubt)


def _bar(bar: DiffBar, root: DiffLevel) -> Text:
    name = Phrase(CATEGORIES[bar.name], _evidence(bar.name, root))
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
            status = {**_STATUS, "renamed": f", now {row.candidate_name}"}
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
