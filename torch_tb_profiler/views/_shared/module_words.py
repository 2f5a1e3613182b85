"""Which modules take the time, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.views._shared.module_rows import ModuleClass, UnplacedWork
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text


def modules_headline(tab: str, classes: Sequence[ModuleClass], has_device: bool) -> Text:
    """Which class of modules takes the most device time; without a device, host time."""
    time = _time(has_device)
    total = sum(map(time, classes))
    if total == 0:
        return text(
            "No device work was launched inside a module." if has_device else "No time was recorded in modules."
        )
    top = max(classes, key=time)
    name = top.name.rpartition(".")[2]
    if top.modules == 1:
        subject = text("{name} takes", name=Phrase(name, link(tab, place=top.place)))
    else:
        modules = Phrase(f"{top.modules:,} {name} modules", link(tab, group_by="class", place=top.place))
        subject = text("The {modules} take", modules=modules)
    return text(
        "{subject} {share} of the {kind} time of all modules.",
        subject=subject,
        share=format_ratio(time(top) / total),
        kind="device" if has_device else "host",
    )


def modules_details(
    classes: Sequence[ModuleClass],
    has_backward: bool,
    device_ns: int,
    outside: UnplacedWork,
    unlinked: UnplacedWork,
) -> Text:
    """Forward and backward time, and how much of the device time is of no module."""
    split: Text = ()
    if has_backward:
        if device_ns:
            forward = sum(row.forward_device_self_ns for row in classes)
            backward = sum(row.backward_device_self_ns for row in classes)
        else:
            forward = sum(row.host_exclusive_ns for row in classes)
            backward = sum(row.backward_host_self_ns for row in classes)
        split = text(
            "Forward {forward}, backward {backward}.",
            forward=format_duration(forward),
            backward=format_duration(backward),
        )
    return sentences(split, _unplaced(device_ns, outside, unlinked))


def _unplaced(device_ns: int, outside: UnplacedWork, unlinked: UnplacedWork) -> Text:
    if not device_ns:
        return ()
    shares = [
        f"{format_ratio(work.device_ns / device_ns)} {what}"
        for work, what in (
            (outside, "was launched outside of any module"),
            (unlinked, "is not linked to a launch"),
        )
        if work.device_ns
    ]
    if not shares:
        return text("All device work was launched in modules.")
    return text("Of all device time, {shares}.", shares=" and ".join(shares))


def _time(has_device: bool) -> Callable[[ModuleClass], int]:
    if has_device:
        return lambda row: row.device_self_ns
    return lambda row: row.host_exclusive_ns + row.backward_host_self_ns
