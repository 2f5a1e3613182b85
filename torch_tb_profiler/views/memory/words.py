"""Sentences of the Memory tab: headlines, details, verdicts on leaks, and why fields are null or empty."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.memory.devices import DeviceMemory, PeakMoment
from torch_tb_profiler.analyses.memory.growth import MIN_PEAK_SHARE, MIN_STEPS, DeviceGrowth, GrowthHolder
from torch_tb_profiler.analyses.memory.live import LiveMemory
from torch_tb_profiler.analyses.memory.snapshot.allocators import DeviceAllocator
from torch_tb_profiler.analyses.shared.call_stacks import has_stacks
from torch_tb_profiler.analyses.shared.memory_trends import MemoryTrends, ReservedRise, RisingLive
from torch_tb_profiler.base.format import format_bytes, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.memory.blocks import has_addresses
from torch_tb_profiler.model.modules import has_modules
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.views._shared.availability import no_memory_reason
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text
from torch_tb_profiler.views._shared.wording import used_more

MIN_HEADLINE_BYTES = 2**20
"""A peak below this is no finding; the headline says how little was used."""

MIN_PEAK_DIFFERENCE = 0.05
"""A peak is worth naming beside what is in use at the end if that is lower by at least this share."""

NO_ADDRESSES = "the file has no addresses (PyTorch before 1.10), so allocations and releases can't be matched"


def no_events(trace: Trace) -> Text:
    """Return the headline where the trace has no memory events, only memory files beside it."""
    if trace.snapshot is not None:
        return text("This recording is a memory snapshot.")
    return text("No memory events were recorded ({option}).", option=recording_option(trace, "memory"))


def device_headline(
    memory: DeviceMemory,
    at_peak: LiveMemory,
    top_operator: str | None,
    peak_in_steps: int | None = None,
    noun: str = "step",
) -> Text:
    """Return the peak of a device, its share of the capacity, and what allocated most of it.

    at_peak       live memory at the peak, with the operator that allocated most
    top_operator  the name of that operator, None outside operators
    peak_in_steps  the highest allocated memory in steps, if the peak is outside of them
    noun           what a step is, see `steps.step_noun`
    """
    peak = memory.allocated
    if peak is None:
        return text(
            "{size} were allocated during the trace; the peak wasn't recorded.",
            size=format_bytes(memory.allocated_in_trace),
        )
    if peak.bytes < MIN_HEADLINE_BYTES:
        return _small_peak_sentence(memory, peak, at_peak)
    share = ""
    if memory.device.capacity is not None:
        share = f", {format_ratio(peak.bytes / memory.device.capacity)} of its capacity"
    return text(
        "Memory on {device} peaks at {peak}{outside}{most}.",
        device=memory.device.name,
        peak=Phrase(format_bytes(peak.bytes) + share, _peak_link(memory, peak)),
        outside=""
        if peak_in_steps is None
        else f" outside of the {noun}s, which reach {format_bytes(peak_in_steps)}",
        most=_largest_part_sentence(memory.device.name, at_peak, top_operator, peak.bytes),
    )


def failure_headline(memory: DeviceMemory) -> Text:
    """Return how many allocations of a device failed and whether others held its memory; empty if none did."""
    if not memory.failures:
        return ()
    count = Phrase(plural(memory.failures, "allocation"), link("trace", event=memory.first_failure))
    return sentences(
        text("{count} on {device} ran out of memory.", count=count, device=memory.device.name),
        () if memory.elsewhere is None else elsewhere_sentence(memory.device.name, memory.elsewhere),
    )


def elsewhere_sentence(device: str, held: int) -> Text:
    """Say how much memory of a device was held outside of the allocator when an allocation failed.

    That is known only if the device refused the request, rather than a limit of the process.
    """
    return text(
        "At least {held} of {device} were held outside PyTorch's allocator then, likely by other processes, "
        "unless a limit of this process refused the request.",
        held=format_bytes(held, "down"),
        device=device,
    )


def rising_headline(trends: MemoryTrends, noun: str) -> Text:
    """Return the sentence of the headline on memory that rises although no block stays; empty if none does.

    noun  what a step is, see `steps.step_noun`; also in the functions below
    """
    if trends.live is not None:
        return text("Live memory rises by {size} per {noun}.", size=format_bytes(trends.live.per_step), noun=noun)
    if trends.reserved is not None:
        return text(
            "Reserved memory rises by {size} per {noun}.",
            size=format_bytes(trends.reserved.per_step),
            noun=noun,
        )
    return ()


_OUTSIDE = "code outside operators"


def rising_sentence(device: str, rising: RisingLive, noun: str) -> Text:
    """Say by how much live memory rises although no block stays, which operator allocates it, and what to do."""
    if rising.name is None:
        return text(
            "Live memory rises by {size} per {noun}: more is allocated in each {noun} than the last one "
            "released, most of it by no single operator.",
            size=format_bytes(rising.per_step),
            noun=noun,
        )
    what = Phrase(rising.name, link("memory", device=device, q=rising.name)) if rising.name else _OUTSIDE
    if rising.stays:
        return text(
            "Live memory rises by {size} per {noun}: most of what {name} allocates stays for more than a {noun}.",
            size=format_bytes(rising.per_step),
            noun=noun,
            name=what,
        )
    return text(
        "Live memory rises by {size} per {noun}: {name} allocates more in each {noun} than the last one "
        "released. Collect results in a list or a preallocated tensor instead of concatenating them.",
        size=format_bytes(rising.per_step),
        noun=noun,
        name=what,
    )


def reserved_sentence(kind: str, reserved: ReservedRise, noun: str) -> Text:
    """Say by how much more reserved memory rises than what tensors use, and what to do.

    kind  of the device: not all allocators have expandable segments
    """
    return sentences(
        text(
            "Reserved memory rises by {size} per {noun} while tensors use {used}: memory is fragmented.",
            size=format_bytes(reserved.per_step),
            noun=noun,
            used=used_more(reserved.used),
        ),
        text("Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.")
        if kind == "CUDA"
        else text("Allocate fewer different sizes (pad or bucket the inputs)."),
    )


def _small_peak_sentence(memory: DeviceMemory, peak: PeakMoment, at_peak: LiveMemory) -> Text:
    """Return how little memory is used; the total of the trace where nothing is older, else the peak."""
    if not at_peak.older and memory.start in (None, 0) and memory.allocated_in_trace < MIN_HEADLINE_BYTES:
        size = Phrase(format_bytes(memory.allocated_in_trace), link("memory", device=memory.device.name))
        return text(
            "Only {size} were allocated on {device} during the trace.", size=size, device=memory.device.name
        )
    size = Phrase(format_bytes(peak.bytes, "up"), _peak_link(memory, peak))
    return text("No more than {size} are in use on {device} at any time.", size=size, device=memory.device.name)


def _peak_link(memory: DeviceMemory, peak: PeakMoment) -> str:
    return link("memory", device=memory.device.name, at=peak.time)


def _largest_part_sentence(device: str, at_peak: LiveMemory, top_operator: str | None, peak: int) -> Text:
    older = at_peak.older or 0
    top = at_peak.groups[0] if at_peak.groups else None
    if top is not None and top.bytes > older and top_operator is not None:
        name = Phrase(top_operator, link("memory", device=device, q=top_operator))
        return text("; {name} allocated {size} of it", name=name, size=format_bytes(top.bytes))
    if older > 0:
        size = format_bytes(older)
        if older == peak or size == format_bytes(peak):
            part = "all of it was" if older == peak else "nearly all of it was"
        else:
            part = f"{size} were"
        return text("; {part} allocated before the trace started", part=part)
    return ()


def device_details(memory: DeviceMemory) -> Text:
    """Return the failed allocations, the others and whether they were released, and the worst fragmentation."""
    return sentences(_failures_sentence(memory), _allocations_sentence(memory), _fragmentation_sentence(memory))


def _failures_sentence(memory: DeviceMemory) -> Text:
    if not memory.failures:
        return ()
    count = Phrase(plural(memory.failures, "allocation"), link("trace", event=memory.first_failure))
    return text("{count} ran out of memory.", count=count)


def _allocations_sentence(memory: DeviceMemory) -> Text:
    name = memory.device.name
    released: str | Text = ""
    if memory.unreleased:
        count = Phrase(f"{memory.unreleased:,}", link("memory", device=name, state="unreleased"))
        released = text("; {count} still live at the end of the trace", count=count)
    elif memory.allocations and memory.unreleased == memory.unknown == 0:
        released = f"; {'released' if memory.allocations == 1 else 'all released'} before the trace ends"
    return text(
        "{allocations}{released}.",
        allocations=f"{plural(memory.allocations, 'allocation')} on {name}",
        released=released,
    )


def _fragmentation_sentence(memory: DeviceMemory) -> Text:
    worst = memory.unused
    if worst is None or worst.bytes <= 0:
        return ()
    size = Phrase(format_bytes(worst.bytes, "up"), link("memory", device=memory.device.name, at=worst.time))
    return text("Up to {size} is reserved by the allocator but unused.", size=size)


def growth_headline(device: str, growth: DeviceGrowth, noun: str, where: str = "") -> Text:
    """Return the sentence of the headline on a leak: its rate, and the code that allocates most of it.

    where  " on " and the device, unless the headline is about it
    """
    first, total = growth.holders[0], sum(holder.growth for holder in growth.holders)
    return text(
        "Memory{where} may leak {size} per {noun}, {most}from {name}.",
        where=where,
        noun=noun,
        size=_leak_rate(device, growth),
        most="" if len(growth.holders) == 1 else "mostly " if 2 * first.growth > total else "most of all ",
        name=_place(device, first),
    )


def growth_verdict(device: str, growth: DeviceGrowth, noun: str, rises: bool = False) -> Text:
    """Return whether memory may leak. A cache that fills looks the same, so a leak is only a possibility.

    rises  live memory does although no operator leaks: then `rising_sentence` is the verdict
    """
    if len(growth.live) < MIN_STEPS:
        return text(
            "Too few {noun}s to check for leaks; record at least {count}.", noun=noun, count=str(MIN_STEPS)
        )
    if not growth.traced:
        return text("Can't check for leaks: {reason}.", reason=NO_ADDRESSES)
    if growth.negligible:
        return text(
            "No significant leak: blocks of several {noun}s stay allocated, but hold at most {share} of the peak.",
            noun=noun,
            share=format_ratio(MIN_PEAK_SHARE),
        )
    if growth.offset:
        first = growth.holders[0]
        return text(
            "No sign of a leak: blocks that {name} allocated in {born} of {steps} {noun}s stay ({live}), but "
            "other memory is released instead.",
            name=_place(device, first),
            born=str(first.born),
            steps=str(len(growth.live)),
            noun=noun,
            live=format_bytes(first.growth),
        )
    if not growth.growing and rises:
        return ()
    if not growth.growing:
        return text("No sign of a leak: no operator keeps allocating blocks that are never released.")
    first, *others = growth.holders
    return sentences(
        text(
            "Memory may leak {size} per {noun}: blocks that {name} allocated in {born} of {steps} {noun}s "
            "are still live at the end of the last one ({live}).",
            size=_leak_rate(device, growth),
            noun=noun,
            name=_place(device, first),
            born=str(first.born),
            steps=str(len(growth.live)),
            live=format_bytes(first.growth),
        ),
        text("The same goes for {places}.", places=plural(len(others), "other place")) if others else (),
    )


def _leak_rate(device: str, growth: DeviceGrowth) -> Phrase:
    return Phrase(format_bytes(growth.per_step or 0), link("memory", device=device, table="growth"))


def _place(device: str, holder: GrowthHolder) -> str | Phrase:
    if holder.name is None:
        return "code outside operators"
    return Phrase(holder.name, link("memory", device=device, q=holder.name))


def holder_summary(holder: GrowthHolder, event: int, since: str, last: str, noun: str) -> Text:
    """Return what a holder has allocated and since when.

    since, last  names of the first step that adds to it and of the last step
    event        row of its newest block
    """
    return text(
        "Holds {size} at the end of {noun} {last}: {blocks}, allocated in {steps} since {noun} {since}.",
        noun=noun,
        size=format_bytes(holder.growth),
        last=last,
        since=since,
        blocks=Phrase(plural(holder.blocks, "block"), link("trace", event=event)),
        steps=plural(holder.born, noun),
    )


def snapshot_headline(allocator: DeviceAllocator, peak: int) -> Text:
    """Return how much the allocator of a device reserves, how much of it tensors use, and the most they used.

    peak  bytes in the history, 0 without one; requested ones where the file records them, which are fewer than the
          allocator hands out (`torch.cuda.max_memory_allocated`)
    """
    requested = allocator.requested
    used = allocator.allocated if requested is None else requested
    is_lower = used < (1 - MIN_PEAK_DIFFERENCE) * peak
    counted = "" if requested is None else f" requested (now {format_bytes(requested)})"
    return text(
        "{device} had {reserved} reserved, {allocated} of it in use{peak}.",
        peak=f", after a peak of {format_bytes(peak)}{counted}" if is_lower else "",
        device=device_name("CUDA", allocator.device),
        reserved=format_bytes(allocator.reserved),
        allocated=format_bytes(allocator.allocated),
    )


def snapshot_details(allocator: DeviceAllocator) -> Text:
    """Return the blocks, the cached bytes, and the failed allocations of a device."""
    failed = allocator.out_of_memory
    return sentences(
        text(
            "{blocks} in {segments}; {free} cached for reuse, the largest block {largest}.",
            blocks=plural(allocator.blocks, "block"),
            segments=plural(allocator.segments, "segment"),
            free=format_bytes(allocator.free),
            largest=format_bytes(allocator.largest_free),
        ),
        text("{count} ran out of memory.", count=plural(failed, "allocation")) if failed else (),
    )


def timeline_headline(categories: Sequence[str], peak_sizes: Sequence[int], peak: int) -> Text:
    """Return the peak of all categories together, and the largest category then."""
    if peak <= 0:
        return text("The timeline records no memory in use.")
    size, category = max(zip(peak_sizes, categories, strict=True), key=lambda pair: pair[0])
    is_small = peak < MIN_HEADLINE_BYTES
    lead = "No more than {peak} are in use at any time" if is_small else "Memory peaks at {peak}"
    return text(
        lead + "; {share} of it is {category}.",
        peak=format_bytes(peak, "up" if is_small else "half"),
        share=format_ratio(size / peak),
        category=category,
    )


def field_reasons(trace: Trace, devices: Sequence[DeviceMemory], with_growth: int) -> dict[str, str]:
    """Return why fields are null or empty; `with_growth` is the number of devices whose growth is known."""
    if not devices:
        return {"devices": no_memory_reason(trace)}
    return {
        **_device_reasons(devices),
        **_recording_reasons(trace),
        **_growth_reasons(trace, with_growth == len(devices)),
    }


def _device_reasons(devices: Sequence[DeviceMemory]) -> dict[str, str]:
    reasons = {}
    hosts = [memory for memory in devices if memory.device.name == "CPU"]
    if any(memory.device.capacity is None for memory in devices if memory not in hosts):
        reasons["capacity_bytes"] = "the file does not describe the device (`deviceProperties`)"
    elif hosts:
        reasons["capacity_bytes"] = "the capacity of host memory is not recorded"
    if any(memory.relative for memory in devices):
        reasons["peak_allocated"] = reasons["peak_reserved"] = "the file has no totals (PyTorch before 1.10)"
        reasons["curve"] = "change since the start of the trace; totals were not recorded"
    if all(memory.unused is None for memory in devices):
        reasons["fragmentation"] = "no reserved memory was recorded; the CPU allocator reserves none"
    return reasons


def _recording_reasons(trace: Trace) -> dict[str, str]:
    reasons = {}
    if not has_addresses(trace):
        reasons["unreleased"] = reasons["older"] = "the file has no addresses (PyTorch before 1.10)"
    if not has_stacks(trace):
        reasons["stacks"] = f"no call stacks were recorded ({recording_option(trace, 'stacks')})"
    if not has_modules(trace):
        reasons["modules"] = f"no nn.Module was recorded ({recording_option(trace, 'modules')})"
    return reasons


def _growth_reasons(trace: Trace, known: bool) -> dict[str, str]:
    recorded = steps(trace)
    if not recorded.recorded:
        return {"growth": f"no steps were recorded ({recording_option(trace, 'steps')})"}
    if len(recorded.names) < MIN_STEPS:
        noun = step_noun(trace)
        return {"growth": f"growth needs {MIN_STEPS} {noun}s; this trace has {len(recorded.names)}"}
    if not has_addresses(trace):
        return {"growth": NO_ADDRESSES}
    return {} if known else {"growth": "the first memory events of a device have no totals"}
