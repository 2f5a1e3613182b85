"""A summary as text that fits: shorter names, sentences and lists, until it does."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.format import replace_unprintable, shorten_middle
from torch_tb_profiler.summary.markdown import markdown
from torch_tb_profiler.summary.payload import Summary, Top

MAX_BYTES = 4000

_LEVELS = ((5, 300, 60), (4, 240, 56), (3, 200, 48), (2, 150, 40), (1, 100, 32), (1, 60, 20), (0, 40, 12))
"""(rows of a list, characters of a sentence, characters of a name), from the most generous on."""


def as_markdown(summary: Summary) -> str:
    """At most `MAX_BYTES` of UTF-8."""
    return _fitting(summary, markdown)


def as_json(summary: Summary) -> str:
    """At most `MAX_BYTES` of UTF-8; `Summary` is the schema."""
    return _fitting(summary, lambda short: msgspec.json.encode(short).decode())


def _fitting(summary: Summary, render: Callable[[Summary], str]) -> str:
    texts = (render(_shortened(summary, *level)) for level in _LEVELS)
    return next(text for text in texts if len(text.encode()) <= MAX_BYTES)


def _shortened(summary: Summary, rows: int, sentence: int, name: int) -> Summary:
    def said(text: str) -> str:
        return _end_cut(replace_unprintable(text), sentence)

    def named(text: str) -> str:
        return shorten_middle(replace_unprintable(text), name)

    def top(listed: list[Top]) -> list[Top]:
        return [replace(each, name=named(each.name)) for each in listed[:rows]]

    step, memory, communication = summary.step, summary.memory, summary.communication
    advice = [
        replace(
            each, title=said(each.title), text=said(each.text), gain=said(each.gain), worker=named(each.worker)
        )
        for each in summary.advice[: min(rows, 3)]
    ]
    return replace(
        summary,
        run=named(summary.run),
        headline=[said(text) for text in summary.headline],
        bound=said(summary.bound),
        bound_worker=named(summary.bound_worker),
        step=step and replace(step, slowest=named(step.slowest)),
        operators=top(summary.operators),
        kernels=top(summary.kernels),
        modules=top(summary.modules),
        devices=summary.devices
        and replace(
            summary.devices,
            name=summary.devices.name and named(summary.devices.name),
            least_worker=summary.devices.least_worker and named(summary.devices.least_worker),
        ),
        communication=communication
        and replace(
            communication,
            text=said(communication.text),
            late_worker=communication.late_worker and named(communication.late_worker),
        ),
        memory=memory
        and replace(
            memory,
            worker=named(memory.worker),
            device=named(memory.device),
            growth=[said(text) for text in memory.growth[:rows]],
        ),
        advice=advice,
        health=replace(summary.health, notes=[said(text) for text in summary.health.notes[:rows]]),
        reasons={key: said(text) for key, text in summary.reasons.items()},
    )


def _end_cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
