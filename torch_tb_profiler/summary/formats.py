"""A summary as Markdown or JSON within a size limit: names, sentences and lists get shorter until it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.format import (
    format_bytes,
    format_duration,
    format_ratio,
    replace_unprintable,
    shorten_middle,
)
from torch_tb_profiler.base.grammar import capitalize, join_words, plural
from torch_tb_profiler.summary.payload import Communication, DeviceUse, Memory, StepTime, Summary, Top
from torch_tb_profiler.views.overview.words import CATEGORY_NAMES, without_operators

MAX_BYTES = 4000
"""Size limit of a summary in UTF-8."""

MAX_ADVICE = 3
"""Most recommendations in a summary."""

_LEVELS = ((5, 300, 60), (4, 240, 56), (3, 200, 48), (2, 150, 40), (1, 100, 32), (1, 60, 20), (0, 40, 12))
"""Limits (rows of a list, characters of a sentence, characters of a name), the most generous first."""


def as_markdown(summary: Summary) -> str:
    """Return the summary as Markdown of at most `MAX_BYTES`."""
    return _fit(summary, lambda short: "\n".join(_format_markdown(short)) + "\n")


def as_json(summary: Summary) -> str:
    """Return the summary as JSON of at most `MAX_BYTES`; its schema is `Summary`."""
    return _fit(summary, lambda short: msgspec.json.encode(short).decode())


def _fit(summary: Summary, render: Callable[[Summary], str]) -> str:
    """Render `summary` at the most generous level that fits into `MAX_BYTES`."""
    texts = (render(_shorten(summary, *level)) for level in _LEVELS)
    return next(text for text in texts if len(text.encode()) <= MAX_BYTES)


def _shorten(summary: Summary, max_rows: int, max_sentence: int, max_name: int) -> Summary:
    def sentence(text: str) -> str:
        return _truncate(replace_unprintable(text), max_sentence)

    def name(text: str) -> str:
        return shorten_middle(replace_unprintable(text), max_name)

    def top_rows(listed: list[Top]) -> list[Top]:
        return [replace(each, name=name(each.name)) for each in listed[:max_rows]]

    step, memory, communication = summary.step, summary.memory, summary.communication
    advice = [
        replace(
            each,
            title=sentence(each.title),
            text=sentence(each.text),
            gain=sentence(each.gain),
            worker=name(each.worker),
        )
        for each in summary.advice[: min(max_rows, MAX_ADVICE)]
    ]
    return replace(
        summary,
        run=name(summary.run),
        headline=[sentence(text) for text in summary.headline],
        bound=sentence(summary.bound),
        bound_worker=name(summary.bound_worker),
        step=step
        and replace(
            step, slowest=name(step.slowest), left_out=[name(worker) for worker in step.left_out[:max_rows]]
        ),
        operators=top_rows(summary.operators),
        replayed=top_rows(summary.replayed),
        kernels=top_rows(summary.kernels),
        modules=top_rows(summary.modules),
        devices=summary.devices
        and replace(
            summary.devices,
            name=summary.devices.name and name(summary.devices.name),
            least_worker=summary.devices.least_worker and name(summary.devices.least_worker),
        ),
        communication=communication
        and replace(
            communication,
            text=sentence(communication.text),
            late_worker=communication.late_worker and name(communication.late_worker),
        ),
        memory=memory
        and replace(
            memory,
            worker=name(memory.worker),
            device=name(memory.device),
            growth=[sentence(text) for text in memory.growth[:max_rows]],
        ),
        advice=advice,
        health=replace(summary.health, notes=[sentence(text) for text in summary.health.notes[:max_rows]]),
        reasons={key: sentence(text) for key, text in summary.reasons.items()},
    )


def _truncate(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def _format_markdown(summary: Summary) -> Iterator[str]:
    workers = plural(summary.workers, "worker")
    missing = summary.ranks is not None and summary.ranks > summary.workers
    yield f"# {_escape(summary.run)}"
    yield ""
    if missing or summary.read < summary.workers:
        workers = f"{summary.read} of {plural(summary.ranks or 0, 'rank') if missing else workers}"
    if summary.workers:
        yield f"{workers}, span {_escape(summary.span)}."
    else:
        yield f"{plural(summary.ranks or 0, 'rank')}, flight recorder dumps."
    bound = summary.bound if summary.workers == 1 else f"{summary.bound_worker}: {summary.bound}"
    sentences = (
        [*summary.headline, bound] if summary.bound and summary.bound not in " ".join(summary.headline) else []
    )
    yield from (f"- {_escape(sentence)}" for sentence in sentences or summary.headline)
    has_steps = summary.step is None or summary.step.recorded
    noun = summary.step.noun if summary.step is not None else "step"
    typical = "typical " if summary.step is not None and summary.step.typical else ""
    if summary.step is not None:
        yield from _format_step(summary.step, "operators" not in summary.reasons)
    if summary.devices is not None:
        yield f"- {_format_devices(summary.devices, has_steps, typical + noun)}"
    if summary.communication is not None:
        yield f"- {_format_communication(summary.communication, has_steps, typical + noun)}"
    if summary.memory is not None:
        yield from _format_memory(summary.memory)
    tables = {
        "Operators": summary.operators,
        "Replayed operators": summary.replayed,
        "Kernels": summary.kernels,
        "Modules": summary.modules,
    }
    for title, rows in tables.items():
        if rows:
            yield from _format_table(title, rows, " of all workers" if summary.workers > 1 else "")
    if summary.advice:
        yield from ("", "## What to change first", "")
        for number, each in enumerate(summary.advice, 1):
            payoff = f"{each.gain}, {_escape(each.worker)}"
            explained = f": {_escape(each.text)}" if each.text else ""
            yield f"{number}. **{_escape(each.title)}** ({payoff}){explained}"
    yield from ("", "## Health", "")
    health = summary.health
    if not health.notes:
        yield "No problems with the files."
    yield from (f"- {_escape(note)}" for note in health.notes)
    if summary.reasons:
        yield from ("", "## Not shown", "")
        yield from (f"- {section}: {_escape(reason)}" for section, reason in summary.reasons.items())


def _format_step(step: StepTime, has_operators: bool) -> Iterator[str]:
    slowest = (
        f", the slowest {format_duration(step.slowest_ns)} ({_escape(step.slowest)})" if step.workers > 1 else ""
    )
    if step.left_out:
        slowest = f" on the workers that wait for {_escape(join_words(step.left_out))}{slowest}"
    yield from ("", f"## {capitalize(step.share_base)} takes {format_duration(step.mean_ns)}{slowest}", "")
    known = {name: time for name, time in step.breakdown.items() if time is not None}
    # A mean below a nanosecond, which no file resolves, is what is left of rounding.
    parts = sorted(((name, time) for name, time in known.items() if time >= 1), key=lambda part: -part[1])
    shown = [
        f"{_category(name, has_operators)} {format_duration(time)} ({format_ratio(time / step.mean_ns)})"
        for name, time in parts
    ]
    if shown:
        yield f"- {', '.join(shown)}"
    unknown = [_category(name, True) for name, time in step.breakdown.items() if time is None]
    if unknown:
        yield f"- unknown: {', '.join(unknown)}"


def _category(name: str, has_operators: bool) -> str:
    title = CATEGORY_NAMES.get(name, name)
    return title if has_operators else without_operators(title)


def _format_devices(use: DeviceUse, has_steps: bool, noun: str) -> str:
    named = f" ({_escape(use.name)})" if use.name else ""
    count = plural(use.devices, "device")
    if use.at_least < use.devices:
        count = f"{use.at_least:,} to {count}"
        named = f"{named}, as processes may share one"
    if use.mean_utilization is None:
        return f"{count}{named}; kernel times unknown"
    least = ""
    if use.devices > 1 and use.least_utilization is not None:
        least = f", lowest {format_ratio(use.least_utilization)} ({_escape(use.least_worker or '')})"
    base = f"time in {noun}s" if has_steps else "trace"
    utilization = f"kernels run for {format_ratio(use.mean_utilization)} of the {base}"
    return f"{count}{named}: {utilization}{least}"


def _format_communication(spent: Communication, has_steps: bool, noun: str) -> str:
    time = f"{format_duration(spent.exposed_ns)}{f' per {noun}' if has_steps else ''}"
    share = f"{time} ({format_ratio(spent.exposed_share)})"
    explanation = f". {_escape(spent.text)}" if spent.text else ""
    return f"{'Exposed communication' if spent.exposed else 'Communication'}: {share}{explanation}"


def _format_memory(memory: Memory) -> Iterator[str]:
    capacity = f" of {format_bytes(memory.capacity_bytes)}" if memory.capacity_bytes else ""
    where = f"{_escape(memory.device)}, {_escape(memory.worker)}"
    counted = " requested, before the allocator's rounding" if memory.requested else ""
    yield f"- Memory peaks at {format_bytes(memory.peak_bytes)}{capacity}{counted} ({where})"
    yield from (f"- {_escape(text)}" for text in memory.growth)


def _format_table(title: str, rows: list[Top], scope: str) -> Iterator[str]:
    yield from ("", f"| {title}{scope} | calls | self time | share |", "|---|--:|--:|--:|")
    for row in rows:
        calls = "unknown" if row.calls is None else f"{row.calls:,}"
        cells = f"{calls} | {format_duration(row.time_ns)} | {format_ratio(row.share)}"
        yield f"| {_code(row.name)} | {cells} |"


def _escape(text: str) -> str:
    """Escape tags and links in text that may come from a trace; a viewer would fetch linked images."""
    return text.replace("<", "\\<").replace("](", "]\\(")


def _code(name: str) -> str:
    """Return a name as code in a table cell."""
    return "`" + name.replace("`", "'").replace("|", "\\|") + "`"
