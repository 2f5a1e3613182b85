"""The modules of a model as rows (the tree and the table by class), and which of them take the time, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from torch_tb_profiler.analyses.modules.times import (
    ClassTimes,
    DeviceWork,
    ModuleTimes,
    device_times_by_family,
    largest_families,
    subtree_sums,
)
from torch_tb_profiler.analyses.roofline.speeds import Speed, class_speeds, missing_work_reason, place_speeds
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.model.modules import Modules
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text

MAX_DEPTH = 200
"""Deepest level of the tree; deeper places are left out, and their times are in the totals above them."""


HIERARCHY = "only operators name these modules (`Module Hierarchy`); their calls weren't recorded"
NO_LAUNCH = "has no recorded launch"
REPLAYED = "a graph replayed these modules: the host didn't call them"
_HOST_FIELDS = (
    "operators",
    "host_total_ns",
    "operators_ns",
    "host_share",
    "host_exclusive_ns",
    "backward_host_total_ns",
    "backward_host_self_ns",
)


class FamilyPart(msgspec.Struct, frozen=True):
    """Device time of one family of kernels."""

    family: str
    device_ns: int


class ModuleRow(msgspec.Struct, frozen=True):
    """A place in the model: an instance of a module, called from the place around it. Times in ns.

    place             number of the place, as `modules/instances` takes it
    class_name        "Linear" of "Linear_75"
    module_id         `Python module id`, null where the trace gives none
    event             row of its longest call, for the timeline
    calls             null where only operators name the module (`Module Hierarchy`), or replays of a graph
    operators, host_*, backward_host_*  null where only replays of a graph name it: the host didn't call it
    operators         operators called directly by it, forward
    host_total_ns     of the calls, with all that happens in them
    host_self_ns      of the calls, outside of modules and operators inside: Python and framework
    operators_ns      host time of its operators: total = self + operators + totals of the modules inside
    host_mean_ns      total / calls
    host_share        total / total of the outermost modules
    device_*          device work that it launched, forward and backward: self without the modules inside
    device_share      device total / all device time of the trace; null if there is none
    forward_device_*, backward_device_*  the two parts of it
    backward_host_*   host time of its backward operators; not part of `host_*`
    families          parts of device_total_ns by family of kernels, largest first
    speed             of its device work, with the modules inside; null where the trace says nothing about work
    """

    place: int
    name: str
    class_name: str
    module_id: int | None
    event: int | None
    calls: int | None
    operators: int | None
    host_total_ns: int | None
    host_self_ns: int | None
    operators_ns: int | None
    host_mean_ns: float | None
    host_share: float | None
    device_total_ns: int
    device_self_ns: int
    device_share: float | None
    forward_device_total_ns: int
    forward_device_self_ns: int
    backward_device_total_ns: int
    backward_device_self_ns: int
    backward_host_total_ns: int | None
    backward_host_self_ns: int | None
    families: list[FamilyPart]
    speed: Speed | None
    children: list[ModuleRow]


class ModuleClass(msgspec.Struct, frozen=True):
    """All modules of a class; times in ns, without those of modules inside, so that nothing counts twice.

    modules            how many; one that is called in several places counts once
    calls, operators, host times  null where only replays of a graph name these modules
    host_exclusive_ns  host self + operators
    place              the one with the most device time, of those without any the one with the most host time
    families           parts of device_self_ns by family of kernels, largest first
    speed              of its device self time; null where the trace says nothing about work
    """

    name: str
    modules: int
    calls: int | None
    operators: int | None
    device_self_ns: int
    forward_device_self_ns: int
    backward_device_self_ns: int
    host_exclusive_ns: int | None
    backward_host_self_ns: int | None
    place: int
    families: list[FamilyPart]
    speed: Speed | None


class UnplacedWork(msgspec.Struct, frozen=True):
    """Device work of no module."""

    events: int
    device_ns: int


def build_module_rows(trace: Trace, model: Modules, times: ModuleTimes, order: list[int]) -> list[ModuleRow]:
    """Build the tree: the outermost places, each with those inside it, in the given order of places."""
    outermost = sum(int(times.host_total[code]) for code in order if model.parent[code] == NO_CODE)
    speeds = place_speeds(trace, model.code, model.parent)
    totals = subtree_sums(device_times_by_family(trace, model), model.parent)
    rows = [
        _build_row(model, times, code, outermost, largest_families(totals[code]), speed)
        for code, speed in enumerate(speeds)
    ]
    depth = [0] * len(rows)
    roots: list[ModuleRow] = []
    for code in order:
        parent = int(model.parent[code])
        depth[code] = depth[parent] + 1 if parent != NO_CODE else 0
        if depth[code] < MAX_DEPTH:
            (roots if parent == NO_CODE else rows[parent].children).append(rows[code])
    return roots


def _build_row(
    model: Modules, times: ModuleTimes, code: int, outermost: int, families: dict[str, int], speed: Speed | None
) -> ModuleRow:
    calls, on_host = int(times.calls[code]), bool(times.on_host[code])
    total = int(times.host_total[code]) if on_host else None
    forward_total, backward_total = int(times.forward_total[code]), int(times.backward_total[code])
    forward_self, backward_self = int(times.forward_self[code]), int(times.backward_self[code])
    device = times.device_time
    event = int(times.event[code])
    return ModuleRow(
        place=code,
        name=model.names[code],
        class_name=model.classes[code],
        module_id=None if model.ids[code] == ABSENT else model.ids[code],
        event=None if event == NO_CODE else event,
        calls=calls or None,
        operators=int(times.operators[code]) if on_host else None,
        host_total_ns=total,
        host_self_ns=int(times.host_self[code]) if calls else None,
        operators_ns=int(times.operators_time[code]) if on_host else None,
        host_mean_ns=total / calls if calls and total is not None else None,
        host_share=total / outermost if outermost and total is not None else None,
        device_total_ns=forward_total + backward_total,
        device_self_ns=forward_self + backward_self,
        device_share=(forward_total + backward_total) / device if device else None,
        forward_device_total_ns=forward_total,
        forward_device_self_ns=forward_self,
        backward_device_total_ns=backward_total,
        backward_device_self_ns=backward_self,
        backward_host_total_ns=int(times.backward_host_total[code]) if on_host else None,
        backward_host_self_ns=int(times.backward_host_self[code]) if on_host else None,
        families=[FamilyPart(*part) for part in families.items()],
        speed=speed,
        children=[],
    )


def build_class_rows(trace: Trace, model: Modules, classes: Sequence[ClassTimes]) -> list[ModuleClass]:
    """Build the table by class."""
    speeds = class_speeds(trace, model.code, [each.places for each in classes])
    times = device_times_by_family(trace, model)
    return [
        _build_class_row(each, largest_families(times[list(each.places)].sum(axis=0)), speed)
        for each, speed in zip(classes, speeds, strict=True)
    ]


def _build_class_row(times: ClassTimes, families: dict[str, int], speed: Speed | None) -> ModuleClass:
    return ModuleClass(
        name=times.name,
        modules=times.modules,
        calls=times.calls if times.on_host else None,
        operators=times.operators if times.on_host else None,
        device_self_ns=times.device,
        forward_device_self_ns=times.forward,
        backward_device_self_ns=times.backward,
        host_exclusive_ns=times.host if times.on_host else None,
        backward_host_self_ns=times.backward_host if times.on_host else None,
        place=times.longest,
        families=[FamilyPart(*part) for part in families.items()],
        speed=speed,
    )


def build_unplaced_work(work: DeviceWork) -> UnplacedWork:
    """Build the payload for device work that belongs to no module."""
    return UnplacedWork(work.events, work.time)


def missing_reasons(trace: Trace, model: Modules, times: ModuleTimes) -> dict[str, str]:
    """Return why fields of the rows are null."""
    missing_reasons: dict[str, str] = {}
    if (silent := missing_work_reason(trace)) is not None:
        missing_reasons["speed"] = silent
    if (times.calls == 0).any():
        is_replayed = not times.on_host.all()
        text = REPLAYED if is_replayed else HIERARCHY
        missing_reasons |= dict.fromkeys(("calls", "host_self_ns", "host_mean_ns"), text)
        if is_replayed:
            missing_reasons |= dict.fromkeys(_HOST_FIELDS, text)
    if ABSENT in model.ids:
        missing_reasons["module_id"] = "the trace has no module ids"
    if not times.device_time:
        missing_reasons["device_share"] = "no device work was recorded"
    if not len(model.tasks):
        missing_reasons["backward"] = "no backward operator could be linked to a forward operator inside a module"
    return missing_reasons


def unlinked_words(trace: Trace) -> str:
    """Return what to say of device work whose module is unknown."""
    return f"{NO_LAUNCH} or graph capture" if replayed_mask(trace).any() else NO_LAUNCH


def modules_headline(tab: str, classes: Sequence[ModuleClass], device: str | None) -> Text:
    """Name the class of modules with the most device time, or the most host time without a device.

    device  noun of the devices ("GPU"), None where no device work is recorded
    """
    time = _module_time(device is not None)
    total = sum(map(time, classes))
    if total == 0:
        if device is None:
            return text("No time was recorded in modules.")
        return text("No {device} work was launched inside a module.", device=device)
    top = max(classes, key=time)
    name = top.name.rpartition(".")[2]
    if top.modules == 1:
        template = "{modules} is the top module: {share} of module {kind} time."
        modules = Phrase(name, link(tab, place=top.place))
    else:
        template = "The {modules} make up {share} of module {kind} time."
        modules = Phrase(f"{top.modules:,} {name} modules", link(tab, group_by="class", place=top.place))
    return text(template, modules=modules, share=format_ratio(time(top) / total), kind=device or "host")


def modules_details(
    classes: Sequence[ModuleClass],
    has_backward: bool,
    device: str | None,
    device_ns: int,
    outside: UnplacedWork,
    unlinked: UnplacedWork,
    why_unlinked: str = NO_LAUNCH,
) -> Text:
    """Give forward and backward time, and how much device time belongs to no module."""
    split: Text = ()
    if has_backward:
        if device_ns:
            forward = sum(row.forward_device_self_ns for row in classes)
            backward = sum(row.backward_device_self_ns for row in classes)
        else:
            forward = sum(row.host_exclusive_ns or 0 for row in classes)
            backward = sum(row.backward_host_self_ns or 0 for row in classes)
        split = text(
            "Forward takes {forward}, backward {backward}.",
            forward=format_duration(forward),
            backward=format_duration(backward),
        )
    return sentences(split, _unplaced_sentence(device or "device", device_ns, outside, unlinked, why_unlinked))


def _unplaced_sentence(
    device: str, device_ns: int, outside: UnplacedWork, unlinked: UnplacedWork, why_unlinked: str
) -> Text:
    if not device_ns:
        return ()
    shares = [
        f"{format_ratio(work.device_ns / device_ns)} of {device} time {what}"
        for work, what in (
            (outside, "was launched outside any module"),
            (unlinked, why_unlinked),
        )
        if work.device_ns
    ]
    if not shares:
        return text("All {device} work was launched in modules.", device=device)
    return text("{shares}.", shares=" and ".join(shares))


def _module_time(has_device: bool) -> Callable[[ModuleClass], int]:
    if has_device:
        return lambda row: row.device_self_ns
    return lambda row: (row.host_exclusive_ns or 0) + (row.backward_host_self_ns or 0)
