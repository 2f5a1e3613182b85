"""What the Memory tab says in words."""

from __future__ import annotations

from torch_tb_profiler.analyses.memory.devices import DeviceMemory
from torch_tb_profiler.analyses.memory.growth import LEAST_SHARE, LEAST_STEPS, Growth, Holder
from torch_tb_profiler.analyses.memory.live import Live
from torch_tb_profiler.base.format import format_bytes, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text


def no_events(trace: Trace) -> Text:
    """Instead of a headline, where only memory files lie beside the trace."""
    return text("No memory events are recorded ({option}).", option=recording_option(trace, "memory"))


def headline(memory: DeviceMemory, at_peak: Live, holder: str | None) -> Text:
    """The peak, its share of the device, and who holds most of it.

    `at_peak` has the operator that holds most, `holder` is its name (None: outside of operators).
    """
    device, peak = memory.device, memory.allocated
    if peak is None:
        return text(
            "The trace allocates {size} in total; how much was in use at once is not recorded.",
            size=format_bytes(memory.allocated_in_trace),
        )
    share = ""
    if device.capacity is not None:
        whole = "GPU" if device.name.startswith("GPU") else "device"
        share = f", {format_ratio(peak.bytes / device.capacity)} of the {whole}"
    return text(
        "Memory peaks at {peak}{holder}.",
        peak=Phrase(format_bytes(peak.bytes) + share, link("memory", device=device.name, at=peak.time)),
        holder=_largest_part(device.name, at_peak, holder, peak.bytes),
    )


def _largest_part(device: str, at_peak: Live, holder: str | None, peak: int) -> Text:
    older = at_peak.older or 0
    top = at_peak.groups[0] if at_peak.groups else None
    if top is not None and top.bytes > older and holder is not None:
        name = Phrase(holder, link("memory", device=device, q=holder))
        return text("; {name} holds {size} of it", name=name, size=format_bytes(top.bytes))
    if older > 0:
        size = format_bytes(older)
        part = "all" if older == peak else "nearly all" if size == format_bytes(peak) else size
        return text("; {part} of it is from before the trace", part=part)
    return ()


def details(memory: DeviceMemory) -> Text:
    """Allocations that failed, all others and what became of them, the worst fragmentation."""
    return sentences(_failures(memory), _allocations(memory), _fragmentation(memory))


def _failures(memory: DeviceMemory) -> Text:
    if not memory.failures:
        return ()
    count = Phrase(plural(memory.failures, "allocation"), link("trace", event=memory.first_failure))
    return text("{count} failed for lack of memory.", count=count)


def _allocations(memory: DeviceMemory) -> Text:
    name = memory.device.name
    released: str | Text = ""
    if memory.unreleased:
        count = Phrase(f"{memory.unreleased:,}", link("memory", device=name, state="unreleased"))
        verb = "is" if memory.unreleased == 1 else "are"
        released = text("; {count} {verb} not released before the trace ends", count=count, verb=verb)
    elif memory.allocations and memory.unreleased == memory.unknown == 0:
        verb = "it is" if memory.allocations == 1 else "all are"
        released = f"; {verb} released before the trace ends"
    return text(
        "{allocations} on {name}{released}.",
        allocations=plural(memory.allocations, "allocation"),
        name=name,
        released=released,
    )


def _fragmentation(memory: DeviceMemory) -> Text:
    worst = memory.unused
    if worst is None or worst.bytes <= 0:
        return ()
    evidence = link("memory", device=memory.device.name, at=worst.time)
    return text(
        "At worst, the allocator holds {size} that no tensor uses.",
        size=Phrase(format_bytes(worst.bytes), evidence),
    )


def growth_verdict(device: str, growth: Growth) -> Text:
    """Whether memory may leak. A cache that fills looks the same, so that it stays a hint."""
    steps = len(growth.live)
    if steps < LEAST_STEPS:
        return text("Fewer than {count} steps do not tell whether memory leaks.", count=str(LEAST_STEPS))
    if not growth.traced:
        return text(
            "Whether memory leaks is not known: the file has no addresses that say which block is released."
        )
    if growth.negligible:
        return text(
            "Some blocks of several steps stay, but they hold no more than {share} of the peak.",
            share=format_ratio(LEAST_SHARE),
        )
    if not growth.growing:
        return text("No leak shows: no operator keeps allocating blocks that stay.")
    first, *others = growth.holders
    return sentences(
        text(
            "Memory may leak by {size} per step: blocks that {name} allocated in {born} of {steps} steps are "
            "still live at the end of the last, {held}.",
            size=Phrase(format_bytes(growth.per_step), link("memory", device=device, table="growth")),
            name=_place(device, first),
            born=str(first.born),
            steps=str(steps),
            held=format_bytes(first.growth),
        ),
        text("So are those of {places}.", places=plural(len(others), "other place")) if others else (),
    )


def _place(device: str, holder: Holder) -> str | Phrase:
    if holder.name is None:
        return "code outside of operators"
    return Phrase(holder.name, link("memory", device=device, q=holder.name))


def holder_summary(holder: Holder, event: int, since: str, last: str) -> Text:
    """`since`, `last`: names of the first step that adds to it and of the last step; `event`: its latest block."""
    return text(
        "Holds {size} at the end of step {last}: {blocks}, allocated in {steps} since step {since}.",
        size=format_bytes(holder.growth),
        last=last,
        since=since,
        blocks=Phrase(plural(holder.blocks, "block"), link("trace", event=event)),
        steps=plural(holder.born, "step"),
    )
