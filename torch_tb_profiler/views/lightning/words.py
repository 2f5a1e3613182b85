"""What the Lightning tab says in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text
from torch_tb_profiler.views.lightning.payload import HookRow


def hooks_headline(hooks: Sequence[HookRow]) -> Text:
    """Which hook takes the most host time that no hook inside it has."""
    rows = list(_flat(hooks))
    total = sum(map(_exclusive, rows))
    if total == 0:
        return text("No time was recorded in hooks.")
    top = max(rows, key=_exclusive)
    return text(
        "{name} takes {share} of the time in hooks.",
        name=Phrase(top.name, link("lightning", show="hooks", q=top.name)),
        share=format_ratio(_exclusive(top) / total),
    )


def hooks_details(hooks: Sequence[HookRow]) -> Text:
    """How many hooks ran how long."""
    rows = list(_flat(hooks))
    return text(
        "{hooks} ran {time} on the host; time inside a nested hook counts for that one only.",
        hooks=plural(len(rows), "hook"),
        time=format_duration(sum(map(_exclusive, rows))),
    )


def _flat(hooks: Sequence[HookRow]) -> Iterator[HookRow]:
    for hook in hooks:
        yield hook
        yield from _flat(hook.children)


def _exclusive(hook: HookRow) -> int:
    """Host time of a hook without the hooks inside it, ns."""
    return hook.host_self_ns + hook.operators_ns
