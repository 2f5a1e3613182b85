"""Lightning: the hooks of a training run and the modules of its model, as Lightning's own profiler marks them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.modules.times import module_times
from torch_tb_profiler.model.modules.lightning import has_marks, lightning_hooks, lightning_modules
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views.modules.build import ModuleRest, ModuleRow, module_rows, reasons, rest
from torch_tb_profiler.views.modules.parts import parts


class HookRow(msgspec.Struct, frozen=True):
    """A hook, called from the hook around it. Times in ns.

    place           number of the hook
    name            "L.training_step"; `owner` is what Lightning puts before it: LightningModule, Strategy,
                    Callback, ...; "" if nothing
    event           row of its longest call, for the timeline
    operators       operators called directly by it
    host_self_ns    outside of hooks and operators inside
    operators_ns    host time of its operators: total = self + operators + totals of the hooks inside
    host_share      total / total of the outermost hooks
    device_*        device work launched while it ran, by the backward pass that it waited for too
    """

    place: int
    name: str
    owner: str
    event: int | None
    occurrences: int
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
    """Hooks and modules, the outermost in order of their first call.

    rows      the model: dotted names, `class_name` in full; modules inside the module their name says
    device_ns all device time = sum of `device_self_ns` of `rows` + outside + unlinked
    reasons   field -> why it is null or empty
    """

    hooks: list[HookRow]
    rows: list[ModuleRow]
    device_ns: int
    outside: ModuleRest
    unlinked: ModuleRest
    has_device: bool
    has_backward: bool
    reasons: Mapping[str, str]


def build(trace: Trace, params: NoParams) -> LightningPayload:
    """Hooks and modules of one trace."""
    found = lightning_modules(trace)
    times = module_times(trace, found)
    hooks = lightning_hooks(trace)
    missing = reasons(found, times) if found.names else {}
    if not found.names:
        missing["rows"] = "no `[pl][module]` is recorded (`PyTorchProfiler(record_module_names=True)`)"
    if not hooks.names:
        missing["hooks"] = "no `[pl][profile]` is recorded (`Trainer(profiler=PyTorchProfiler(...))`)"
    return LightningPayload(
        hooks=[_hook(row) for row in module_rows(trace, hooks, module_times(trace, hooks))],
        rows=module_rows(trace, found, times),
        device_ns=times.device_time,
        outside=rest(times.outside),
        unlinked=rest(times.unlinked),
        has_device=times.device_time > 0,
        has_backward=len(found.tasks) > 0,
        reasons=missing,
    )


def _hook(row: ModuleRow) -> HookRow:
    return HookRow(
        place=row.place,
        name=row.name,
        owner=row.class_name,
        event=row.event,
        occurrences=row.occurrences or 0,
        operators=row.operators,
        host_total_ns=row.host_total_ns,
        host_self_ns=row.host_self_ns or 0,
        operators_ns=row.operators_ns,
        host_mean_ns=row.host_mean_ns or 0.0,
        host_share=row.host_share,
        device_total_ns=row.device_total_ns,
        device_self_ns=row.device_self_ns,
        device_share=row.device_share,
        children=[_hook(child) for child in row.children],
    )


def unavailable(trace: Trace) -> str | None:
    """Lightning's profiler must have marked something."""
    if has_marks(trace):
        return None
    return (
        "no mark of Lightning's profiler (`[pl][profile]`, `[pl][module]`) is recorded: train with "
        "`Trainer(profiler=PyTorchProfiler(record_module_names=True))`"
    )


TAB = Tab(
    "Where the time goes",
    TraceView("lightning", "Lightning", NoParams, LightningPayload, build),
    unavailable,
    parts("lightning", lightning_modules),
)
