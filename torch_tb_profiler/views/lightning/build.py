"""Lightning: the hooks of a training run and the modules of its model, as Lightning's own profiler marks them."""

from __future__ import annotations

from torch_tb_profiler.analyses.modules.times import call_order, class_times, module_times
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.lightning import has_lightning_marks, lightning_hooks, lightning_modules
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.modules import (
    ModuleRow,
    build_class_rows,
    build_module_rows,
    build_unplaced_work,
    missing_reasons,
    modules_details,
    modules_headline,
)
from torch_tb_profiler.views._shared.text import device_noun, reason_texts
from torch_tb_profiler.views.lightning.payload import HookRow, LightningPayload
from torch_tb_profiler.views.lightning.words import hooks_details, hooks_headline


def build(trace: Trace, _: NoParams) -> LightningPayload:
    """Hooks and modules of one trace."""
    model = lightning_modules(trace)
    times, order = module_times(trace, model), call_order(trace, model)
    classes = build_class_rows(trace, model, class_times(model, times, order))
    outside, unlinked = build_unplaced_work(times.outside), build_unplaced_work(times.unlinked)
    has_device, has_backward = times.device_time > 0, len(model.tasks) > 0
    device = device_noun(device_kind(trace)) if has_device else None
    hooks = _hooks(trace)
    missing = missing_reasons(trace, model, times) if model.names else {}
    if not model.names:
        missing["rows"] = "no `[pl][module]` is recorded (`PyTorchProfiler(record_module_names=True)`)"
    if not hooks:
        missing["hooks"] = "no `[pl][profile]` is recorded (`Trainer(profiler=PyTorchProfiler(...))`)"
    return LightningPayload(
        headline=hooks_headline(hooks) if hooks else modules_headline("lightning", classes, device),
        details=hooks_details(hooks)
        if hooks
        else modules_details(classes, has_backward, device, times.device_time, outside, unlinked),
        hooks=hooks,
        rows=build_module_rows(trace, model, times, order),
        classes=classes,
        device_ns=times.device_time,
        outside=outside,
        unlinked=unlinked,
        has_device=has_device,
        has_backward=has_backward,
        reasons=reason_texts(missing),
    )


def _hooks(trace: Trace) -> list[HookRow]:
    hooks = lightning_hooks(trace)
    return [
        _hook(row) for row in build_module_rows(trace, hooks, module_times(trace, hooks), call_order(trace, hooks))
    ]


def _hook(row: ModuleRow) -> HookRow:
    return HookRow(
        place=row.place,
        name=row.name,
        owner=row.class_name,
        event=row.event,
        calls=row.calls or 0,
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
    if has_lightning_marks(trace):
        return None
    return (
        "no mark of Lightning's profiler (`[pl][profile]`, `[pl][module]`) is recorded: train with "
        "`Trainer(profiler=PyTorchProfiler(record_module_names=True))`"
    )
