"""The sentences of the Trace tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.timeline.window import DeviceUsage, WindowSummary, busiest_device
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.kinds import Kind
from torch_tb_profiler.model.trace import ClockKind, Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, shorten_name, text
from torch_tb_profiler.views._shared.wording import CAUSE_TEXTS, unrecorded_wait_sentence
from torch_tb_profiler.views.trace.payload import TraceCounts

_SINGLE_TIME_NS = 1
"""Length of the range of a recording whose events all have the same time, ns."""


def headline(
    devices: Sequence[DeviceUsage], labels: Mapping[int, str], counts: TraceCounts, begin: int, end: int
) -> Text:
    """Say how busy the busiest device is over a recording [begin, end), or what was recorded instead.

    labels  names of devices, by device number
    """
    drawable = counts.slices + counts.instants - counts.untimed
    if drawable == 0 and counts.counters:
        samples = plural(counts.counters, "sample")
        if end - begin <= _SINGLE_TIME_NS:
            return text("Counters only: {samples}, all at the same time.", samples=samples)
        length = format_duration(end - begin)
        return text("Counters only: {samples} in {length}.", samples=samples, length=length)
    if drawable == 0:
        return text("No slice or instant in this trace has a timestamp, so there is nothing to draw.")
    total = format_duration(end - begin)
    evidence = link("trace", area=f"{begin}-{end}")
    top = busiest_device(devices)
    if top is None:
        amount = plural(counts.slices, "slice") if counts.slices else plural(counts.instants, "instant")
        # The count includes Python frames, so the link unfolds them.
        shown = link("trace", area=f"{begin}-{end}", python="true" if counts.python_slices else None)
        return text("CPU only: {amount} in {total}, no GPU work.", amount=Phrase(amount, shown), total=total)
    return text(
        "{subject} is busy {share} of the {total} recorded.",
        subject=_subject(top, devices, labels),
        share=Phrase(format_ratio(top.busy / (end - begin)), evidence),
        total=total,
    )


def window(summary: WindowSummary, top_name: str, labels: Mapping[int, str], begin: int, end: int) -> Text:
    """Say how [begin, end) is spent: by the busiest device, else by `top_name`, the most self time."""
    if summary.top is None:
        return text("No device work runs in this window." if summary.on_device else "Nothing runs in this window.")
    area = f"{begin}-{end}"
    top = Phrase(_name_or_placeholder(top_name), link("trace", event=summary.top.row, at=area))
    device = busiest_device(summary.devices)
    if device is None:
        share = format_ratio(summary.top.self_time / summary.length)
        return text("{top} has the most self time: {share} of this window.", top=top, share=share)
    return text(
        "{subject} is busy {share} of this window; {top} takes the most time.",
        subject=_subject(device, summary.devices, labels),
        share=Phrase(format_ratio(min(device.busy / summary.length, 1)), link("trace", area=area, at=area)),
        top=top,
    )


def _name_or_placeholder(name: str) -> str:
    return shorten_name(name) or "an unnamed slice"


def _subject(device: DeviceUsage, devices: Sequence[DeviceUsage], labels: Mapping[int, str]) -> str:
    label = _device_label(device, labels)
    return label if len(devices) == 1 else f"{label}, the busiest of {len(devices)} devices,"


def _device_label(device: DeviceUsage, labels: Mapping[int, str]) -> str:
    return labels.get(device.device, device_name("other", device.device))


def truncated_window(summary: WindowSummary, top_name: str, begin: int, end: int) -> Text:
    """Say what takes the most time in what remains of a truncated file; how busy a device is stays unknown."""
    if summary.top is None:
        return text("The file is truncated and has nothing left in this window.")
    top = Phrase(_name_or_placeholder(top_name), link("trace", event=summary.top.row, at=f"{begin}-{end}"))
    return text("The file is truncated. In what remains of this window, {top} takes the most time.", top=top)


def window_detail(summary: WindowSummary, length: int, truncated: bool = False) -> Text:
    """Say how much is in a window of `length` ns, and how much of the communication is overlapped.

    The communication is that of the busiest device; it is left out if the file is truncated.
    """
    amount = text(
        "{length} shown: {slices} with {names}{place}.",
        length=format_duration(length),
        slices=plural(summary.slices, "slice"),
        names=plural(summary.names, "name"),
        place=" on streams" if summary.on_device else " on threads",
    )
    device = busiest_device(summary.devices)
    if truncated or device is None or device.communication == 0:
        return amount
    overlap = format_ratio(device.overlap / device.communication)
    return sentences(amount, text("{overlap} of its communication overlaps compute.", overlap=overlap))


def devices(times: Sequence[DeviceUsage], labels: Mapping[int, str]) -> list[Text]:
    """Say how each device spends a window."""
    return [_device_sentence(device, labels) for device in times] or [text("No device work was recorded.")]


def truncated_devices(times: Sequence[DeviceUsage], labels: Mapping[int, str]) -> list[Text]:
    """Say how much work each device has in a truncated file, where shares and idle time are unknown."""
    return [
        text(
            "{label}: {busy} of work in what remains of the file.",
            label=_device_label(device, labels),
            busy=format_duration(device.busy),
        )
        for device in times
    ] or [text("The file is truncated and has no device work left.")]


def _device_sentence(device: DeviceUsage, labels: Mapping[int, str]) -> Text:
    busy = text(
        "{label}: busy {busy} ({share}), idle {idle}",
        label=_device_label(device, labels),
        busy=format_duration(device.busy),
        share=format_ratio(device.busy / (device.busy + device.idle)),
        idle=format_duration(device.idle),
    )
    if device.communication == 0:
        return text("{busy}.", busy=busy)
    return text(
        "{busy}; communication {communication}, {overlap} overlapped with compute.",
        busy=busy,
        communication=format_duration(device.communication),
        overlap=format_duration(device.overlap),
    )


_NO_TIME_OF_DAY: Mapping[ClockKind, str] = {
    "epoch": "No time of day: the file doesn't record when its clock started.",
    "boot": "No time of day: times count from boot, and the file doesn't record when the machine booted.",
    "iteration": "No time of day: each iteration's times count from its own start.",
    "local": "No time of day: the file doesn't record its time zone.",
}


def missing_reasons(
    *, steps: bool, sm_efficiency: bool, memory: bool, trace: Trace, clock: ClockKind | None
) -> dict[str, Text]:
    """Explain what is missing in a trace: a sentence by name.

    clock  kind of clock if the trace has no time of day, else None
    """
    reasons = {
        "steps": f"No steps in this trace ({recording_option(trace, 'steps')}), so it's shown as one.",
        "sm_efficiency": "No SM efficiency: the kernels in this trace have no `blocks per SM`.",
        "memory": f"No allocations were recorded ({recording_option(trace, 'memory')}).",
    }
    absent = {"steps": steps, "sm_efficiency": sm_efficiency, "memory": memory}
    texts = {name: text(reason) for name, reason in reasons.items() if absent[name]}
    return texts if clock is None else {**texts, "wall": text(_NO_TIME_OF_DAY[clock])}


_KIND_TEXTS = {
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
    Kind.METRICS: "Hardware metrics of a kernel",
    Kind.GRAPH_HOST: "Host function that a CUDA graph calls",
    Kind.GRAPH_EVENT: "Event that a CUDA graph records",
}


def event(kind: Kind, duration: int | None, self_time: int | None, step: str | None, noun: str = "step") -> Text:
    """Say what an event is, how long it took, and in which step it started; `noun`: see `steps.step_noun`."""
    sentence = _KIND_TEXTS.get(kind, "Event")
    if duration is not None:
        sentence += f", {format_duration(duration)}"
    if duration is not None and self_time is not None and self_time != duration:
        sentence += f" ({format_duration(self_time)} self time)"
    return text("{sentence}{step}.", sentence=sentence, step="" if step is None else f", in {noun} {step}")


def missing_links(
    trace: Trace, *, launch: bool, operator: bool, stack: bool, is_replayed: bool = False
) -> dict[str, Text]:
    """Explain why an event has no launch, operator or stack: a sentence by field."""
    reasons = {
        "launch": "No launch: no runtime or driver call with the same `correlation` was recorded.",
        "operator": "No operator encloses the launch.",
        "stack": "No Python stack: a graph launch ran this, not a call of the program."
        if is_replayed
        else f"No Python stack was recorded here ({recording_option(trace, 'stacks')}).",
    }
    absent = {"launch": launch, "operator": operator, "stack": stack}
    return {name: text(reason) for name, reason in reasons.items() if absent[name]}


def missing_module(trace: Trace, recorded: bool) -> Text:
    """Explain why an event belongs to no module; `recorded`: whether the trace has any."""
    if recorded:
        return text("This runs outside any module.")
    return text("No `nn.Module` was recorded ({option}).", option=recording_option(trace, "modules"))


def flows(delay: int | None, launched: int) -> Text:
    """Say how long an event waited between its launch and its start, and how many it launched itself."""
    return sentences(
        _queue_delay(delay),
        text("It launched {slices}.", slices=plural(launched, "device slice")) if launched else (),
    )


def _queue_delay(delay: int | None) -> Text:
    if delay is None:
        return ()
    if delay < 0:
        return text(
            "Its timestamps put its start {early} before its launch: the host and device clocks disagree.",
            early=format_duration(-delay),
        )
    return text("It waited {delay} in the queue.", delay=format_duration(delay))


def search(query: str, regex: bool, hits: int, tracks: int) -> Text:
    """Say how many slices and instants match."""
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


def device_runs(device: str, name: str | None, time: int) -> Text:
    """Say what a device runs at a moment; `name`: of the kernel, copy or memset."""
    return text(
        "{device} runs {name} for {time}.",
        device=device,
        name=shorten_name(name or "an unnamed item"),
        time=format_duration(time),
    )


_CAUSES_WITHOUT_WAITING = {
    "kernel_gap": "between queued kernels",
    "graph_gap": "inside a graph",
    "tail": "with no further work",
}
"""Causes of idle time that aren't something a device waits for."""


def device_idle(device: str, cause: str, time: int, gap: int) -> Text:
    """Say how long a device is idle for a cause, and how much of a gap that is; `time` and `gap` in ns."""
    return text(
        "{device} is idle for {time}{of_gap}, {cause}.",
        device=device,
        time=format_duration(time),
        of_gap=", the entire gap" if time == gap else f" of this {format_duration(gap)} gap",
        cause=_CAUSES_WITHOUT_WAITING.get(cause, f"waiting for {CAUSE_TEXTS[cause]}"),
    )


def queue_drained(device: str, call: str | None, event: int | None, *, waits_unrecorded: bool = False) -> Text:
    """Say which call drained the queue before a gap; `call` is None if none did.

    waits_unrecorded  the host waits for the device although no call is recorded that does
    """
    if call is None and waits_unrecorded:
        return unrecorded_wait_sentence(device)
    if call is None:
        return text("No sync caused this: {device} simply caught up with the host.", device=device)
    return text(
        "{call} drained the queue before this gap.", call=Phrase(shorten_name(call), link("trace", event=event))
    )


def idle_row_link(cause: str, subject: str | None, device: int) -> Text:
    """Link to the row of the Idle time view that a part of a gap counts in."""
    row = f"{cause}/{subject or ''}"
    return (Phrase("All idle time with this cause and subject", link("idle", device=device, select=row)),)
