"""Views that a tab of modules opens later: the flame graph, and the calls of one module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from torch_tb_profiler.analyses.modules.calls import list_module_calls
from torch_tb_profiler.analyses.modules.flame import build_module_flame
from torch_tb_profiler.analyses.modules.times import NEVER_CALLED
from torch_tb_profiler.model.modules import Modules
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import Page, TraceView, View


class FlameParams(msgspec.Struct, frozen=True):
    """Parameters of the flame graph; `time` is what its widths show."""

    time: Literal["host", "device"] = "host"


class ModuleFrame(msgspec.Struct, frozen=True):
    """A frame of the flame graph.

    kind      module; operator: the operators of that name that the module calls directly; backward: of the
              module itself
    parent    index of the frame around it, null for the outermost
    value_ns  with all frames inside; frames beside each other share no time
    place     the module, also of its operators and its backward pass
    event     row of the longest of its events
    first_ns  when the first of them begins, null if none is recorded
    """

    name: str
    kind: Literal["module", "operator", "backward"]
    parent: int | None
    value_ns: int
    place: int
    event: int | None
    first_ns: int | None


class ModuleFlame(msgspec.Struct, frozen=True):
    """The flame graph: frames, each after the one around it. `total_ns` is the sum of the outermost."""

    time: str
    total_ns: int
    frames: list[ModuleFrame]


class InstancesParams(Page, frozen=True):
    """Parameters of one module's calls: its `place`, and which page of them (all by default), longest first."""

    place: int


class ModuleCallRow(msgspec.Struct, frozen=True):
    """One call of a module; `recomputed` if backward called it to recompute activations."""

    event: int
    thread: str
    start_ns: int
    duration_ns: int
    device_ns: int
    recomputed: bool


class ModuleInstances(msgspec.Struct, frozen=True):
    """One page of the calls of a module; `path` has the names from the outermost module down to it."""

    path: list[str]
    total: int
    rows: list[ModuleCallRow]


def build_flame(model: Modules, trace: Trace, params: FlameParams) -> ModuleFlame:
    """Build the flame graph of the model."""
    flame = build_module_flame(trace, model, params.time)
    columns = (flame.parent, flame.value, flame.place, flame.event, flame.first)
    frames = [
        ModuleFrame(
            name,
            kind,
            _none_if_missing(parent),
            value,
            place,
            _none_if_missing(event),
            None if first == NEVER_CALLED else first,
        )
        for name, kind, parent, value, place, event, first in zip(
            flame.names, flame.kinds, *(column.tolist() for column in columns), strict=True
        )
    ]
    return ModuleFlame(params.time, sum(frame.value_ns for frame in frames if frame.parent is None), frames)


def build_instances(model: Modules, trace: Trace, params: InstancesParams) -> ModuleInstances:
    """Build the page of one module's calls. Raises NotFoundError for an unknown place."""
    total, page = list_module_calls(trace, model, params.place, params.rows)
    rows = [
        ModuleCallRow(
            event=call.event,
            thread=trace.threads[call.thread].label,
            start_ns=call.start,
            duration_ns=call.duration,
            device_ns=call.device,
            recomputed=call.recomputed,
        )
        for call in page
    ]
    return ModuleInstances(list(model.path(params.place)), total, rows)


def _none_if_missing(value: int) -> int | None:
    return None if value == NO_CODE else value


def module_views(tab: str, source: Callable[[Trace], Modules]) -> tuple[View, ...]:
    """Return the views of one tab; `source` gives the modules of a trace that the tab shows."""
    return (
        TraceView(
            f"{tab}/flame",
            "Module flame graph",
            FlameParams,
            ModuleFlame,
            lambda trace, params: build_flame(source(trace), trace, params),
            answers="The modules as a flame graph.",
        ),
        TraceView(
            f"{tab}/instances",
            "Module calls",
            InstancesParams,
            ModuleInstances,
            lambda trace, params: build_instances(source(trace), trace, params),
            answers="The calls of one module, longest first.",
        ),
    )
