"""The timeline in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.timeline.device_times import DeviceTime
from torch_tb_profiler.analyses.timeline.summary import WindowSummary, busiest
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.kinds import Kind
from torch_tb_profiler.model.trace import ClockKind, Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, shorten_name, text
from torch_tb_profiler.views._shared.wording import CAUSE_TEXTS
from torch_tb_profiler.views.trace.payload import TraceCounts

NO_TIME = "no event of this trace has a time (`ts`), so nothing can be placed on a timeline"

_MOMENT_NS = 1
"""How long the window of a recording is whose events all have the same time."""


def headline(
    devices: Sequence[DeviceTime], labels: Mapping[int, str], counts: TraceCounts, begin: int, end: int
) -> Text:
    """The busiest device of a recording [begin, end), or what is recorded instead; `labels` by device."""
    drawn = counts.slices + counts.instants - counts.untimed
    if drawn == 0 and counts.counters:
        samples = plural(counts.counters, "sample")
        if end - begin <= _MOMENT_NS:
            return text("Nothing but counters is recorded: {samples} at one time.", samples=samples)
        length = format_duration(end - begin)
        return text("Nothing but counters is recorded: {samples} in {length}.", samples=samples, length=length)
    if drawn == 0:
        return text("No slice or instant of this trace has a time, so there is nothing to draw.")
    whole = format_duration(end - begin)
    evidence = link("trace", area=f"{begin}-{end}")
    top = busiest(devices)
    if top is None:
        amount = plural(counts.slices, "slice") if counts.slices else plural(counts.instants, "instant")
        # Folded frames are not added up, but they are slices that are counted here.
        shown = link("trace", area=f"{begin}-{end}", python="true" if counts.python_slices else None)
        return text("{amount} in {whole}; no device work is recorded.", amount=Phrase(amount, shown), whole=whole)
    return text(
        "{subject} is busy {share} of the {whole} recorded.",
        subject=_subject(top, devices, labels),
        share=Phrase(format_ratio(top.busy / (end - begin)), evidence),
        whole=whole,
    )


def window(summary: WindowSummary, top_name: str, labels: Mapping[int, str], begin: int, end: int) -> Text:
    """How [begin, end) is spent: by the busiest device, else by the name with the most self time, `top_name`."""
    if summary.top is None:
        return text("No device work runs in this window." if summary.on_device else "Nothing runs in this window.")
    at = f"{begin}-{end}"
    top = Phrase(_named(top_name), link("trace", event=summary.top.row, at=at))
    device = busiest(summary.devices)
    if device is None:
        share = format_ratio(summary.top.self_time / summary.length)
        return text("{top} has the most self time here: {share} of this window.", top=top, share=share)
    return text(
        "{subject} is busy {share} of this window; {top} takes the most time.",
        subject=_subject(device, summary.devices, labels),
        share=Phrase(format_ratio(min(device.busy / summary.length, 1)), link("trace", area=at, at=at)),
        top=top,
    )


def _subject(device: DeviceTime, devices: Sequence[DeviceTime], labels: Mapping[int, str]) -> str:
    label = _label(device, labels)
    return label if len(devices) == 1 else f"{label}, the busiest of {len(devices)} devices,"


def _label(device: DeviceTime, labels: Mapping[int, str]) -> str:
    return labels.get(device.device, device_name("other", device.device))


def cut_window(summary: WindowSummary, top_name: str, begin: int, end: int) -> Text:
    """The same of a file that is cut off: how busy a device is cannot be told from what is left."""
    if summary.top is None:
        return text("The file is cut off; nothing is left of this window.")
    top = Phrase(_named(top_name), link("trace", event=summary.top.row, at=f"{begin}-{end}"))
    return text("The file is cut off; of what is left of this window {top} takes the most time.", top=top)


def _named(name: str) -> str:
    return shorten_name(name) or "a slice without a name"


def window_detail(summary: WindowSummary, length: int, cut_off: bool = False) -> Text:
    """How much is in a window of `length` ns, and how much of the busiest device's communication is hidden, which
    a file that is cut off does not tell.
    """
    amount = text(
        "{length} shown: {slices} with {names}{place}.",
        length=format_duration(length),
        slices=plural(summary.slices, "slice"),
        names=plural(summary.names, "name"),
        place=" on streams" if summary.on_device else " on threads",
    )
    device = busiest(summary.devices)
    if cut_off or device is None or device.communication == 0:
        return amount
    overlap = format_ratio(device.overlap / device.communication)
    return sentences(amount, text("{overlap} of its communication overlaps compute.", overlap=overlap))


def devices(times: Sequence[DeviceTime], labels: Mapping[int, str]) -> list[Text]:
    """How each device spends a window."""
    return [_device(device, labels) for device in times] or [text("No device work is recorded.")]


def cut_devices(times: Sequence[DeviceTime], labels: Mapping[int, str]) -> list[Text]:
    """The same of a file that is cut off: work is missing from it, so no share and no idle time is known."""
    return [
        text(
            "{label}: {busy} of work in what is left of the file.",
            label=_label(device, labels),
            busy=format_duration(device.busy),
        )
        for device in times
    ] or [text("No device work is left in the file, which is cut off.")]


def _device(device: DeviceTime, labels: Mapping[int, str]) -> Text:
    busy = text(
        "{label}: busy {busy} ({share}), idle {idle}",
        label=_label(device, labels),
        busy=format_duration(device.busy),
        share=format_ratio(device.busy / (device.busy + device.idle)),
        idle=format_duration(device.idle),
    )
    if device.communication == 0:
        return text("{busy}.", busy=busy)
    return text(
        "{busy}; communication {communication}, of which {overlap} overlap compute.",
        busy=busy,
        communication=format_duration(device.communication),
        overlap=format_duration(device.overlap),
    )


_NO_WALL: Mapping[ClockKind, str] = {
    "epoch": "No time of day: the file does not say from when its times count.",
    "boot": "No time of day: times count from when the machine booted, and the file does not say when that was.",
    "iteration": "No time of day: the times of each iteration count from its own start.",
    "local": "No time of day: the file does not say of which time zone its times are.",
}


def missing(
    *, steps: bool, sm_efficiency: bool, memory: bool, trace: Trace, clock: ClockKind | None
) -> dict[str, Text]:
    """Why what is missing in a trace is missing.

    clock  that of a trace which does not know the time of day
    """
    reasons = {
        "steps": f"No step is recorded ({recording_option(trace, 'steps')}), so the "
        "whole trace is shown as one step.",
        "sm_efficiency": "The kernels of this trace have no `blocks per SM`.",
        "memory": f"No allocation is recorded ({recording_option(trace, 'memory')}).",
    }
    absent = {"steps": steps, "sm_efficiency": sm_efficiency, "memory": memory}
    absent_words = {name: text(reason) for name, reason in reasons.items() if absent[name]}
    return absent_words if clock is None else {**absent_words, "wall": text(_NO_WALL[clock])}


_KINDS = {
    Kind.CPU_OP: "Operator",
    Kind.ANNOTATION: "Annotation",
    Kind.PYTHON: "Python frame",
    Kind.RUNTIME: "Runtime call",
    Kind.DRIVER: "Driver call",
    Kind.KERNEL: "Kernel",
    Kind.MEMCPY: "Copy",
    Kind.MEMSET: "Memset",
    Kind.DEVICE_ANNOTATION: "Annotation on the device",
    Kind.SYNC: "Synchronization",
    Kind.METRICS: "Hardware metrics of a kernel,",
}


def event(kind: Kind, duration: int | None, self_time: int | None, step: str | None) -> Text:
    """What an event is, how long it took, in which step it began."""
    words = _KINDS.get(kind, "Event")
    if duration is not None:
        words += f" of {format_duration(duration)}"
    if duration is not None and self_time is not None and self_time != duration:
        words += f", {format_duration(self_time)} of it self time"
    return text("{words}{step}.", words=words, step="" if step is None else f", in step {step}")


def missing_links(trace: Trace, *, launch: bool, operator: bool, stack: bool) -> dict[str, Text]:
    """Why an event has no launch, operator or stack."""
    reasons = {
        "launch": "No runtime or driver call with the same `correlation` is recorded.",
        "operator": "No operator encloses the launch.",
        "stack": f"No Python source is recorded here ({recording_option(trace, 'stacks')}).",
    }
    absent = {"launch": launch, "operator": operator, "stack": stack}
    return {name: text(reason) for name, reason in reasons.items() if absent[name]}


def no_module(trace: Trace, recorded: bool) -> Text:
    """Why an event belongs to no module; `recorded`: whether the trace has any."""
    if recorded:
        return text("This runs outside of all modules.")
    return text("No `nn.Module` is recorded ({option}).", option=recording_option(trace, "modules"))


def flows(delay: int | None, launched: int) -> Text:
    """How long an event waited for its start after its launch, and how many it launched itself."""
    return sentences(
        _queue(delay), text("It launched {slices}.", slices=plural(launched, "device slice")) if launched else ()
    )


def _queue(delay: int | None) -> Text:
    if delay is None:
        return ()
    if delay < 0:
        ahead = format_duration(-delay)
        return text(
            "By its timestamps it began {ahead} before its launch: the clocks of host and device disagree.",
            ahead=ahead,
        )
    return text("It waited {delay} in the queue.", delay=format_duration(delay))


def search(query: str, regex: bool, hits: int, tracks: int) -> Text:
    """How many names of slices and instants match."""
    if hits == 0:
        template = (
            "No slice or instant matches “{query}”." if regex else "No slice or instant has “{query}” in its name."
        )
        return text(template, query=shorten_name(query))
    amount = f"{hits:,} slices and instants" if hits > 1 else "1 slice or instant"
    return text(
        "{amount} on {tracks} {match} “{query}”.",
        amount=amount,
        tracks=plural(tracks, "track"),
        match="match" if hits > 1 else "matches",
        query=shorten_name(query),
    )


def works(device: str, name: str | None, time: int) -> Text:
    """What a device does at a moment; `name` of the item that runs."""
    return text(
        "{device} runs {name} for {time}.",
        device=device,
        name=shorten_name(name or "an item without a name"),
        time=format_duration(time),
    )


def waits(device: str, cause: str, time: int, gap: int) -> Text:
    """What a device waits for in a part of a gap."""
    said = text(
        "{device} waits {time} for {cause}", device=device, time=format_duration(time), cause=CAUSE_TEXTS[cause]
    )
    return (
        text("{said}, all of this gap.", said=said)
        if time == gap
        else text("{said}, of a gap of {gap}.", said=said, gap=format_duration(gap))
    )


def emptied(call: str | None, event: int | None) -> Text:
    """What had emptied the queue before a gap, None if no call had."""
    if call is None:
        return text("No call had emptied the queue before: the device caught up with the host.")
    return text("{call} had emptied the queue.", call=Phrase(shorten_name(call), link("trace", event=event)))


def idle_row(cause: str, subject: str | None, device: int) -> Text:
    """Leads to the row of the Idle time view that a part of a gap counts in."""
    row = f"{cause}/{subject or ''}"
    return (Phrase("All idle time of this cause and subject", link("idle", device=device, select=row)),)
