"""What a tab of modules asks for once it is open: the flame graph, and the calls of one module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.modules.calls import calls
from torch_tb_profiler.analyses.modules.flame import module_flame
from torch_tb_profiler.analyses.modules.times import recomputed
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.kinds import ends
from torch_tb_profiler.model.modules.modules import Modules
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import Page, TraceView, View
from torch_tb_profiler.views.modules.calls import thread_name


class FlameParams(msgspec.Struct, frozen=True):
    """`time`: "host" or "device"."""

    time: Literal["host", "device"] = "host"


class ModuleFrame(msgspec.Struct, frozen=True):
    """A frame of the flame graph.

    kind      module; operator: the operators of that name that the module calls directly; backward: of the
              module itself
    parent    index of the frame around it, null for the outermost
    value_ns  with all frames inside; frames beside each other share no time
    place     the module, also of its operators and its backward pass
    event     row of the longest of its events
    """

    name: str
    kind: Literal["module", "operator", "backward"]
    parent: int | None
    value_ns: int
    place: int
    event: int | None


class ModuleFlame(msgspec.Struct, frozen=True):
    """Frames, each after the one around it; `total_ns` is the sum of the outermost."""

    time: str
    total_ns: int
    frames: list[ModuleFrame]


class InstancesParams(Page, frozen=True):
    """`place` of a module; `limit` calls from `first` on, all by default. Longest calls come first."""

    place: int


class ModuleCall(msgspec.Struct, frozen=True):
    """One call of a module; `recomputed` if backward made it, to compute activations again."""

    event: int
    thread: str
    start_ns: int
    duration_ns: int
    device_ns: int
    recomputed: bool


class ModuleInstances(msgspec.Struct, frozen=True):
    """Calls of one place; `path` leads from the outermost module to it."""

    path: list[str]
    total: int
    rows: list[ModuleCall]


def build_flame(found: Modules, trace: Trace, params: FlameParams) -> ModuleFlame:
    """The flame graph of the model."""
    flame = module_flame(trace, found, "host" if params.time == "host" else "device")
    frames = [
        ModuleFrame(name, kind, _known(parent), value, place, _known(event))
        for name, kind, parent, value, place, event in zip(
            flame.names,
            flame.kinds,
            flame.parent.tolist(),
            flame.value.tolist(),
            flame.place.tolist(),
            flame.event.tolist(),
            strict=True,
        )
    ]
    return ModuleFlame(params.time, sum(each.value_ns for each in frames if each.parent is None), frames)


def build_instances(found: Modules, trace: Trace, params: InstancesParams) -> ModuleInstances:
    """The calls of one module."""
    if not 0 <= params.place < len(found.names):
        raise NotFoundError(f"there is no module {params.place}", hint=f"places: 0 to {len(found.names) - 1}")
    rows = found.calls[found.code[found.calls] == params.place]
    lasting = (ends(trace) - trace.events.start)[rows]
    rows = rows[np.lexsort((rows, -lasting))]
    device = calls(trace).device
    again = recomputed(trace, found)
    listed = [
        ModuleCall(
            event=row,
            thread=thread_name(trace, int(trace.events.thread[row])),
            start_ns=int(trace.events.start[row]),
            duration_ns=int(ends(trace)[row] - trace.events.start[row]),
            device_ns=int(device[row]),
            recomputed=bool(again[row]),
        )
        for row in rows[params.rows].tolist()
    ]
    return ModuleInstances(list(found.path(params.place)), len(rows), listed)


def _known(value: int) -> int | None:
    return None if value == NO_CODE else value


def parts(tab: str, source: Callable[[Trace], Modules]) -> tuple[View, ...]:
    """The parts of a tab that shows these places."""
    return (
        TraceView(
            f"{tab}/flame",
            "Module flame graph",
            FlameParams,
            ModuleFlame,
            lambda trace, params: build_flame(source(trace), trace, params),
        ),
        TraceView(
            f"{tab}/instances",
            "Module calls",
            InstancesParams,
            ModuleInstances,
            lambda trace, params: build_instances(source(trace), trace, params),
        ),
    )
