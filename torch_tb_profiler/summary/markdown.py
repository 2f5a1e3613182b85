"""A summary as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from torch_tb_profiler.base.format import format_bytes, format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.summary.payload import Communication, DeviceUse, Memory, StepTime, Summary, Top
from torch_tb_profiler.views.overview.words import CATEGORY_NAMES


def markdown(summary: Summary) -> str:
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: Summary) -> Iterator[str]:
    read = plural(summary.workers, "worker") if summary.read == summary.workers else _some(summary)
    yield f"# {_escaped(summary.run)}"
    yield ""
    yield f"{read}, span {_escaped(summary.span)}."
    bound = summary.bound if summary.workers == 1 else f"{summary.bound_worker}: {summary.bound}"
    sentences = (
        [*summary.headline, bound] if summary.bound and summary.bound not in " ".join(summary.headline) else []
    )
    yield from (f"- {_escaped(sentence)}" for sentence in sentences or summary.headline)
    steps = summary.step is None or summary.step.recorded
    if summary.step is not None:
        yield from _step(summary.step)
    if summary.devices is not None:
        yield f"- {_devices(summary.devices, steps)}"
    if summary.communication is not None:
        yield f"- {_communication(summary.communication, steps)}"
    if summary.memory is not None:
        yield from _memory(summary.memory)
    tables = {"Operators": summary.operators, "Kernels": summary.kernels, "Modules": summary.modules}
    for title, rows in tables.items():
        if rows:
            yield from _table(title, rows, " of all workers" if summary.workers > 1 else "")
    if summary.advice:
        yield from ("", "## What to change first", "")
        for each in summary.advice:
            gain = f"{each.gain or 'no time to gain'}, {_escaped(each.worker)}"
            yield f"1. **{_escaped(each.title)}** ({gain}): {_escaped(each.text)}"
    yield from ("", "## Health", "")
    health = summary.health
    if not health.notes:
        yield "Nothing is wrong with the files."
    yield from (f"- {_escaped(note)}" for note in health.notes)
    if summary.reasons:
        yield from ("", "## Not known", "")
        yield from (f"- {section}: {_escaped(reason)}" for section, reason in summary.reasons.items())


def _some(summary: Summary) -> str:
    return f"{summary.read} of {plural(summary.workers, 'worker')}"


def _step(step: StepTime) -> Iterator[str]:
    slowest = (
        f", the slowest {format_duration(step.slowest_ns)} ({_escaped(step.slowest)})" if step.workers > 1 else ""
    )
    yield from ("", f"## {step.whole.capitalize()} takes {format_duration(step.mean_ns)}{slowest}", "")
    known = {name: time for name, time in step.breakdown.items() if time is not None}
    parts = sorted(((name, time) for name, time in known.items() if time), key=lambda part: -part[1])
    shown = [
        f"{CATEGORY_NAMES.get(name, name)} {format_duration(time)} ({format_ratio(time / step.mean_ns)})"
        for name, time in parts
        if time
    ]
    yield f"- {', '.join(shown)}"
    unknown = [CATEGORY_NAMES.get(name, name) for name, time in step.breakdown.items() if time is None]
    if unknown:
        yield f"- not known: {', '.join(unknown)}"


def _devices(use: DeviceUse, steps: bool) -> str:
    named = f" ({_escaped(use.name)})" if use.name else ""
    if use.mean_utilization is None:
        return f"{plural(use.devices, 'device')}{named}; how long kernels run on them is not known"
    least = ""
    if use.devices > 1 and use.least_utilization is not None:
        least = f", the least {format_ratio(use.least_utilization)} ({_escaped(use.least_worker or '')})"
    used = f"kernels run for {format_ratio(use.mean_utilization)} of the {'time in steps' if steps else 'trace'}"
    return f"{plural(use.devices, 'device')}{named}: {used}{least}"


def _communication(spent: Communication, steps: bool) -> str:
    share = (
        f"{format_duration(spent.exposed_ns)}{' per step' if steps else ''} ({format_ratio(spent.exposed_share)})"
    )
    explanation = f". {_escaped(spent.text)}" if spent.text else ""
    return f"Exposed communication: {share}{explanation}"


def _memory(memory: Memory) -> Iterator[str]:
    capacity = f" of {format_bytes(memory.capacity_bytes)}" if memory.capacity_bytes else ""
    where = f"{_escaped(memory.device)}, {_escaped(memory.worker)}"
    yield f"- Memory peaks at {format_bytes(memory.peak_bytes)}{capacity} ({where})"
    yield from (f"- {_escaped(text)}" for text in memory.growth)


def _table(title: str, rows: list[Top], whose: str) -> Iterator[str]:
    yield from ("", f"| {title}{whose} | calls | own time | share |", "|---|--:|--:|--:|")
    for row in rows:
        cells = f"{row.calls:,} | {format_duration(row.time_ns)} | {format_ratio(row.share)}"
        yield f"| {_code(row.name)} | {cells} |"


def _escaped(text: str) -> str:
    """Names in a trace are no markup: neither tags nor links, whose pictures would be fetched."""
    return text.replace("<", "\\<").replace("](", "]\\(")


def _code(name: str) -> str:
    """A name as code in a cell of a table."""
    return "`" + name.replace("`", "'").replace("|", "\\|") + "`"
