"""Lightning: the hooks of a training run and the modules of its model, as Lightning's own profiler marks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from torch_tb_profiler.analyses.modules.times import call_order, class_times, module_times
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.lightning import lightning_hooks, lightning_modules
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views._shared.availability import lightning_reason
from torch_tb_profiler.views._shared.module_parts import module_views
from torch_tb_profiler.views._shared.modules import (
    ModuleClass,
    ModuleRow,
    UnplacedWork,
    build_class_rows,
    build_module_rows,
    build_unplaced_work,
    missing_reasons,
    modules_details,
    modules_headline,
    unlinked_words,
)
from torch_tb_profiler.views._shared.text import Phrase, Text, device_noun, link, reason_texts, text


class HookRow(msgspec.Struct, frozen=True):
    """A hook and the hooks called inside it; times in ns.

    place           number of the hook
    name            "L.training_step"; `owner`: what Lightning puts before it (LightningModule, Strategy,
                    Callback, ...), "" if nothing
    event           row of its longest call, for the timeline
    operators       operators called directly by it
    host_self_ns    time outside the hooks and operators inside it
    operators_ns    host time of its operators: total = self + operators + totals of the hooks inside
    host_share      total / total of the outermost hooks
    device_*        device work launched while it ran, including by a backward pass that it waited for
    """

    place: int
    name: str
    owner: str
    event: int | None
    calls: int
    operators: int
    host_total_ns: int
    host_self_ns: int
    operators_ns: int
    host_mean_ns: float
    host_share: float | None
    device_total_ns: int
    device_self_ns: int
    device_share: float | None
    children: list[HookRow]


class LightningPayload(msgspec.Struct, frozen=True):
    """Hooks and modules of a Lightning run, the outermost in order of their first call.

    headline  the hook with the most host time, or without hooks the class of modules; details: how many ran
    rows      the model: dotted names, `class_name` in full; each module inside the module that its name says
    classes   sums over all modules of a class
    device_ns all device time = sum of `device_self_ns` of `rows` + outside + unlinked
    reasons   why fields are null or empty, by field
    """

    headline: Text
    details: Text
    hooks: list[HookRow]
    rows: list[ModuleRow]
    classes: list[ModuleClass]
    device_ns: int
    outside: UnplacedWork
    unlinked: UnplacedWork
    has_device: bool
    has_backward: bool
    reasons: Mapping[str, Text]


def build(trace: Trace, _: NoParams) -> LightningPayload:
    """Build the hooks and the modules of one trace."""
    model = lightning_modules(trace)
    times, order = module_times(trace, model), call_order(trace, model)
    classes = build_class_rows(trace, model, class_times(model, times, order))
    outside, unlinked = build_unplaced_work(times.outside), build_unplaced_work(times.unlinked)
    has_device, has_backward = times.device_time > 0, len(model.tasks) > 0
    device = device_noun(device_kind(trace)) if has_device else None
    hooks = _build_hooks(trace)
    reasons = missing_reasons(trace, model, times) if model.names else {}
    if not model.names:
        reasons["rows"] = "no `[pl][module]` was recorded; pass `PyTorchProfiler(record_module_names=True)`"
    if not hooks:
        reasons["hooks"] = "no `[pl][profile]` was recorded; pass `Trainer(profiler=PyTorchProfiler(...))`"
    return LightningPayload(
        headline=_hooks_headline(hooks) if hooks else modules_headline("lightning", classes, device),
        details=_hooks_details(hooks)
        if hooks
        else modules_details(
            classes, has_backward, device, times.device_time, outside, unlinked, unlinked_words(trace)
        ),
        hooks=hooks,
        rows=build_module_rows(trace, model, times, order),
        classes=classes,
        device_ns=times.device_time,
        outside=outside,
        unlinked=unlinked,
        has_device=has_device,
        has_backward=has_backward,
        reasons=reason_texts(reasons),
    )


def _build_hooks(trace: Trace) -> list[HookRow]:
    hooks = lightning_hooks(trace)
    rows = build_module_rows(trace, hooks, module_times(trace, hooks), call_order(trace, hooks))
    return [_build_hook(row) for row in rows]


def _build_hook(row: ModuleRow) -> HookRow:
    return HookRow(
        place=row.place,
        name=row.name,
        owner=row.class_name,
        event=row.event,
        calls=row.calls or 0,
        operators=row.operators or 0,
        host_total_ns=row.host_total_ns or 0,
        host_self_ns=row.host_self_ns or 0,
        operators_ns=row.operators_ns or 0,
        host_mean_ns=row.host_mean_ns or 0.0,
        host_share=row.host_share,
        device_total_ns=row.device_total_ns,
        device_self_ns=row.device_self_ns,
        device_share=row.device_share,
        children=[_build_hook(child) for child in row.children],
    )


def _hooks_headline(hooks: Sequence[HookRow]) -> Text:
    """Name the hook with the most host time outside nested hooks."""
    rows = list(_flatten(hooks))
    total = sum(map(_exclusive_time, rows))
    if total == 0:
        return text("No time was recorded in hooks.")
    top = max(rows, key=_exclusive_time)
    return text(
        "{name} is the top hook: {share} of the time in hooks.",
        name=Phrase(top.name, link("lightning", show="hooks", q=top.name)),
        share=format_ratio(_exclusive_time(top) / total),
    )


def _hooks_details(hooks: Sequence[HookRow]) -> Text:
    """Say how many hooks ran and for how long."""
    rows = list(_flatten(hooks))
    return text(
        "{hooks} ran for {time} on the host. Time in a nested hook counts only for that hook.",
        hooks=plural(len(rows), "hook"),
        time=format_duration(sum(map(_exclusive_time, rows))),
    )


def _flatten(hooks: Sequence[HookRow]) -> Iterator[HookRow]:
    for hook in hooks:
        yield hook
        yield from _flatten(hook.children)


def _exclusive_time(hook: HookRow) -> int:
    """Return the host time of a hook without the hooks inside it, in ns."""
    return hook.host_self_ns + hook.operators_ns


TAB = Tab(
    "Where the time goes",
    TraceView("lightning", "Lightning", NoParams, LightningPayload, build, cached="on_request"),
    lightning_reason,
    module_views("lightning", lightning_modules),
)
