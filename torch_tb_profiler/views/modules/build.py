"""Modules: the model as it ran, with the time of each nn.Module on host and device, forward and backward."""

from __future__ import annotations

from torch_tb_profiler.analyses.modules.classes import class_times
from torch_tb_profiler.analyses.modules.order import call_order
from torch_tb_profiler.analyses.modules.times import module_times
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.modules.modules import has_modules, modules
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.records import option
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.module_rows import class_rows, module_rows, reasons, unplaced
from torch_tb_profiler.views._shared.module_words import modules_details, modules_headline
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.modules.payload import ModulesPayload


def build(trace: Trace, _: NoParams) -> ModulesPayload:
    """The module tree of one trace."""
    model = modules(trace)
    times, order = module_times(trace, model), call_order(trace, model)
    classes = class_rows(trace, model, class_times(model, times, order))
    outside, unlinked = unplaced(times.outside), unplaced(times.unlinked)
    has_device, has_backward = times.device_time > 0, len(model.tasks) > 0
    return ModulesPayload(
        headline=modules_headline("modules", classes, has_device),
        details=modules_details(classes, has_backward, times.device_time, outside, unlinked),
        rows=module_rows(trace, model, times, order),
        classes=classes,
        device_ns=times.device_time,
        outside=outside,
        unlinked=unlinked,
        has_device=has_device,
        has_backward=has_backward,
        reasons=reason_texts(reasons(trace, model, times)),
    )


def unavailable(trace: Trace) -> str | None:
    """Modules need Python frames, or a scripted model."""
    if has_modules(trace):
        return None
    if len(rows_of_kind(trace, Kind.PYTHON)):
        return (
            "Python frames are recorded, but none of them is a call of an `nn.Module`: profile a part of the "
            "program that calls the model"
        )
    return f"no module call is recorded: {option(trace, 'calls')}"
