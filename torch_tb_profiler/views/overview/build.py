"""Overview: how an average step is spent, on what device, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overview.recommendations import findings
from torch_tb_profiler.analyses.shared import utilization
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown, breakdown
from torch_tb_profiler.analyses.shared.utilization import utilizations
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.health import Note
from torch_tb_profiler.model.kinds import Kind, of_kind
from torch_tb_profiler.model.ranks import rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views.overview.advice import Recommendation, advise


class Categories(msgspec.Struct, frozen=True):
    """Time per category, ns; the eight sum to the step. None: not known, see `reasons`."""

    kernel: float | None
    memcpy: float | None
    memset: float | None
    communication: float | None
    runtime: float | None
    dataloader: float | None
    cpu_exec: float | None
    other: float | None


class Step(msgspec.Struct, frozen=True):
    """One step. `complete` is False where its device work is missing; such steps are in no average."""

    name: str
    start_ns: int
    duration_ns: int
    complete: bool
    categories: Categories


class Average(msgspec.Struct, frozen=True):
    """Mean over the complete steps, ns (not rounded)."""

    duration_ns: float
    categories: Categories
    steps: int


class Device(msgspec.Struct, frozen=True):
    """One accelerator with work in this trace. Ratios are 0..1; None is explained in `reasons`."""

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None
    multiprocessors: int | None
    streams: int
    utilization: float | None
    sm_efficiency: float | None
    achieved_occupancy: float | None
    tensor_core_ratio: float | None
    reasons: Mapping[str, str]


class Configuration(msgspec.Struct, frozen=True):
    """What was recorded, and how."""

    workers: int
    device_type: str
    rank: int | None
    world_size: int | None
    backend: str | None
    recorded: Mapping[str, bool]


class Overview(msgspec.Struct, frozen=True):
    """The payload. `reasons` says of a category (or of `steps`, `average`) why it is null."""

    trace_start_ns: int
    base_ns: int
    steps: list[Step]
    average: Average | None
    steps_recorded: bool
    devices: list[Device]
    configuration: Configuration
    recommendations: list[Recommendation]
    reasons: Mapping[str, str]
    health: list[Note]


def build(trace: Trace, params: NoParams) -> Overview:
    """The overview of one trace."""
    found = breakdown(trace)
    return Overview(
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        steps=_steps(found),
        average=_average(found),
        steps_recorded=found.steps.recorded,
        devices=[_device(entry) for entry in utilizations(trace)],
        configuration=_configuration(trace),
        recommendations=[advise(finding) for finding in findings(trace)],
        reasons=_reasons(found),
        health=[*trace.health, *_doubts(trace, found)],
    )


def _steps(found: Breakdown) -> list[Step]:
    spans = found.steps
    return [
        Step(
            name=name,
            start_ns=int(spans.starts[i]),
            duration_ns=int(found.durations[i]),
            complete=bool(spans.complete[i]),
            categories=_categories({key: int(times[i]) for key, times in found.times.items()}, found),
        )
        for i, name in enumerate(spans.names)
    ]


def _categories(times: Mapping[str, float], found: Breakdown) -> Categories:
    return Categories(**{key: None if key in found.unknown else times[key] for key in CATEGORIES})


def _average(found: Breakdown) -> Average | None:
    kept = found.steps.complete
    if not kept.any():
        return None
    times = {key: float(np.mean(found.times[key][kept])) for key in CATEGORIES}
    return Average(float(np.mean(found.durations[kept])), _categories(times, found), int(kept.sum()))


def _device(entry: utilization.Utilization) -> Device:
    info = entry.device
    reasons = dict(entry.unknown)
    for field in ("name", "memory_bytes", "compute_capability", "multiprocessors"):
        if getattr(info, field) is None:
            reasons[field] = "`deviceProperties` of the trace does not say"
    return Device(
        id=info.id,
        kind=info.kind,
        name=info.name,
        memory_bytes=info.memory_bytes,
        compute_capability=info.compute_capability,
        multiprocessors=info.multiprocessors,
        streams=entry.streams,
        utilization=entry.utilization,
        sm_efficiency=entry.sm_efficiency,
        achieved_occupancy=entry.achieved_occupancy,
        tensor_core_ratio=entry.tensor_core_ratio,
        reasons=reasons,
    )


def _configuration(trace: Trace) -> Configuration:
    info: Any = trace.metadata.get("distributedInfo")
    info = info if isinstance(info, Mapping) else {}
    world, backend = info.get("world_size"), info.get("backend")
    return Configuration(
        workers=1,
        device_type=device_kind(trace) if devices(trace) else "CPU",
        rank=rank(trace),
        world_size=world if isinstance(world, int) else None,
        backend=backend if isinstance(backend, str) else None,
        recorded={
            "host": len(of_kind(trace, Kind.CPU_OP)) > 0,
            "device": bool(devices(trace)),
            "python": len(of_kind(trace, Kind.PYTHON)) > 0 or "Call stack" in trace.args,
            "shapes": bool({"Input Dims", "Input dims"} & trace.args.keys()),
            "memory": "[memory]" in trace.strings,
        },
    )


def _reasons(found: Breakdown) -> dict[str, str]:
    reasons = dict(found.unknown)
    if not found.steps.recorded:
        reasons["steps"] = (
            "no `ProfilerStep` is recorded (call `prof.step()` in the training loop): "
            "the whole trace is shown as one step"
        )
    if not found.steps.complete.any():
        reasons["average"] = "there is no complete step"
    return reasons


def _doubts(trace: Trace, found: Breakdown) -> list[Note]:
    doubts = []
    overlaps = call_tree(trace).overlaps
    if overlaps:
        message = "host events overlap on their thread without nesting; they are kept on side lanes"
        doubts.append(Note("overlap", "info", message, overlaps))
    links = device_links(trace)
    unlinked = int((links.launch < 0).sum())
    if unlinked and len(of_kind(trace, Kind.RUNTIME, Kind.DRIVER)):
        message = "device events without a recorded launch; counted as device time, linked to no operator"
        doubts.append(Note("unlinked", "info", message, unlinked))
    incomplete = int((~found.steps.complete).sum())
    if incomplete:
        message = "trailing steps without their device work; drawn, but left out of averages"
        doubts.append(Note("incomplete_step", "info", message, incomplete))
    return doubts


def _unavailable(trace: Trace) -> str | None:
    if len(steps(trace).names) == 0:
        return "the trace has no event with a time and a duration, so there is nothing to break down"
    return None


TAB = Tab("", TraceView("overview", "Overview", NoParams, Overview, build, eager=True), _unavailable)
