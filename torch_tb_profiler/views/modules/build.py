"""Modules: the model as it ran, with the time of each nn.Module on host and device, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.modules.times import DeviceWork, ModuleTimes, module_times
from torch_tb_profiler.model.kinds import Kind, of_kind
from torch_tb_profiler.model.modules.modules import Modules, has_modules, modules
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views.modules.calls import CallsParams, ModuleCalls, build_calls
from torch_tb_profiler.views.modules.parts import parts

MAX_DEPTH = 200
"""Places nested deeper are left out of the tree; their times are in the totals above them."""


class ModuleRow(msgspec.Struct, frozen=True):
    """A place in the model: an instance of a module, called from the place around it. Times in ns.

    place             number of the place, as `modules/instances` takes it
    class_name        "Linear" of "Linear_75"
    module_id         `Python module id`, null where the trace gives none
    event             row of its longest call, for the timeline
    occurrences       calls; null where only operators tell of the module (`Module Hierarchy`)
    operators         operators called directly by it, forward
    host_total_ns     of the calls, with all that happens in them
    host_self_ns      of the calls, outside of modules and operators inside: Python and framework
    operators_ns      host time of its operators: total = self + operators + totals of the modules inside
    host_mean_ns      total / occurrences
    host_share        total / total of the outermost modules
    device_*          device work that it launched, forward and backward: self without the modules inside
    device_share      device total / all device time of the trace; null if there is none
    forward_device_*, backward_device_*  the two parts of it
    backward_host_*   host time of its backward operators; not part of `host_*`
    """

    place: int
    name: str
    class_name: str
    module_id: int | None
    event: int | None
    occurrences: int | None
    operators: int
    host_total_ns: int
    host_self_ns: int | None
    operators_ns: int
    host_mean_ns: float | None
    host_share: float | None
    device_total_ns: int
    device_self_ns: int
    device_share: float | None
    forward_device_total_ns: int
    forward_device_self_ns: int
    backward_device_total_ns: int
    backward_device_self_ns: int
    backward_host_total_ns: int
    backward_host_self_ns: int
    children: list[ModuleRow]


class ModuleRest(msgspec.Struct, frozen=True):
    """Device work of no module."""

    calls: int
    device_ns: int


class ModulesPayload(msgspec.Struct, frozen=True):
    """The outermost modules in order of their first call.

    device_ns    all device time = sum of all `device_self_ns` + outside + unlinked
    outside      launched outside of any module
    unlinked     no launch and no operator is recorded for it
    has_device   the trace holds device work; has_backward: some backward work has its module
    reasons      field -> why it is null
    """

    rows: list[ModuleRow]
    device_ns: int
    outside: ModuleRest
    unlinked: ModuleRest
    has_device: bool
    has_backward: bool
    reasons: Mapping[str, str]


def build(trace: Trace, params: NoParams) -> ModulesPayload:
    """The module tree of one trace."""
    found = modules(trace)
    times = module_times(trace, found)
    return ModulesPayload(
        rows=module_rows(trace, found, times),
        device_ns=times.device_time,
        outside=rest(times.outside),
        unlinked=rest(times.unlinked),
        has_device=times.device_time > 0,
        has_backward=len(found.tasks) > 0,
        reasons=reasons(found, times),
    )


def module_rows(trace: Trace, found: Modules, times: ModuleTimes) -> list[ModuleRow]:
    """The outermost places, each with those inside it, in order of their first call."""
    outermost = int(times.host_total[found.parent == NO_CODE].sum())
    depth = np.zeros(len(found.names), np.int64)
    rows = [_row(found, times, code, outermost) for code in range(len(found.names))]
    roots: list[ModuleRow] = []
    for code in np.argsort(_first_seen(trace, found), kind="stable").tolist():
        parent = int(found.parent[code])
        depth[code] = depth[parent] + 1 if parent != NO_CODE else 0
        if depth[code] < MAX_DEPTH:
            (roots if parent == NO_CODE else rows[parent].children).append(rows[code])
    return roots


def _first_seen(trace: Trace, found: Modules) -> np.ndarray:
    """When each place is first met, ns; never before the place around it."""
    seen = np.full(len(found.names), np.iinfo(np.int64).max)
    rows = np.flatnonzero((found.code >= 0) & ~found.backward & (trace.events.start != ABSENT))
    np.minimum.at(seen, found.code[rows], trace.events.start[rows])
    for code in range(len(seen) - 1, -1, -1):
        if found.parent[code] != NO_CODE:
            seen[found.parent[code]] = min(seen[found.parent[code]], seen[code])
    return seen


def _row(found: Modules, times: ModuleTimes, code: int, outermost: int) -> ModuleRow:
    calls, total = int(times.calls[code]), int(times.host_total[code])
    forward_total, backward_total = int(times.forward_total[code]), int(times.backward_total[code])
    forward_self, backward_self = int(times.forward_self[code]), int(times.backward_self[code])
    device = times.device_time
    event = int(times.event[code])
    return ModuleRow(
        place=code,
        name=found.names[code],
        class_name=found.classes[code],
        module_id=None if found.ids[code] == ABSENT else found.ids[code],
        event=None if event == NO_CODE else event,
        occurrences=calls or None,
        operators=int(times.operators[code]),
        host_total_ns=total,
        host_self_ns=int(times.host_self[code]) if calls else None,
        operators_ns=int(times.operators_time[code]),
        host_mean_ns=total / calls if calls else None,
        host_share=total / outermost if outermost else None,
        device_total_ns=forward_total + backward_total,
        device_self_ns=forward_self + backward_self,
        device_share=(forward_total + backward_total) / device if device else None,
        forward_device_total_ns=forward_total,
        forward_device_self_ns=forward_self,
        backward_device_total_ns=backward_total,
        backward_device_self_ns=backward_self,
        backward_host_total_ns=int(times.backward_host_total[code]),
        backward_host_self_ns=int(times.backward_host_self[code]),
        children=[],
    )


def rest(work: DeviceWork) -> ModuleRest:
    """Device work of no module."""
    return ModuleRest(work.events, work.time)


def reasons(found: Modules, times: ModuleTimes) -> dict[str, str]:
    """Why fields of the rows are null."""
    found_null: dict[str, str] = {}
    if (times.calls == 0).any():
        text = "only operators tell of these modules (`Module Hierarchy`), not their calls"
        found_null |= dict.fromkeys(("occurrences", "host_self_ns", "host_mean_ns"), text)
    if (np.array(found.ids) == ABSENT).any():
        found_null["module_id"] = "the trace numbers no instances"
    if not times.device_time:
        found_null["device_share"] = "the trace holds no device work"
    if not len(found.tasks):
        found_null["backward"] = "no backward operator could be linked to a forward operator inside a module"
    return found_null


def unavailable(trace: Trace) -> str | None:
    """Modules need Python frames, or a scripted model."""
    if has_modules(trace):
        return None
    if len(of_kind(trace, Kind.PYTHON)):
        return (
            "Python frames are recorded, but none of them is a call of an `nn.Module`: profile a part of the "
            "program that calls the model"
        )
    return (
        "no module call is recorded: set `with_stack=True` in `torch.profiler.profile(...)` "
        "(`with_modules=True` alone records modules of scripted models only)"
    )


TAB = Tab(
    "Where the time goes",
    TraceView("modules", "Modules", NoParams, ModulesPayload, build),
    unavailable,
    (*parts("modules", modules), TraceView("modules/calls", "Call tree", CallsParams, ModuleCalls, build_calls)),
)
