"""Overview: how an average step is spent, on what device, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.analyses.overview.average import average_step
from torch_tb_profiler.analyses.overview.job import no_advice
from torch_tb_profiler.analyses.overview.unrecorded import unrecorded
from torch_tb_profiler.analyses.schedule.categories import bound_times
from torch_tb_profiler.analyses.schedule.what_if import unexplained
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown, breakdown
from torch_tb_profiler.analyses.shared.utilization import Utilization, utilizations
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.events import host_communication
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.health import Note, is_truncated
from torch_tb_profiler.model.kinds import Kind, of_kind
from torch_tb_profiler.model.ranks import rank
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams, RankView, Tab, TraceView
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES
from torch_tb_profiler.views._shared.tensor_cores import tensor_core_time
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences
from torch_tb_profiler.views._shared.truncated import truncated
from torch_tb_profiler.views.overview import words
from torch_tb_profiler.views.overview.advice import recommendation
from torch_tb_profiler.views.overview.hardware import hardware_use
from torch_tb_profiler.views.overview.payload import (
    Average,
    Categories,
    Configuration,
    Device,
    HardwareUse,
    Overview,
    Step,
)
from torch_tb_profiler.views.overview.ranks import build as beside


def build(trace: Trace, params: NoParams) -> Overview:
    """The overview of one trace."""
    times = breakdown(trace)
    step_list, average, reasons = _steps(times), _average(times), _reasons(times)
    whole = "the average step" if times.steps.recorded else "the trace"
    recommendations = [recommendation(each, whole) for each in advice(trace)]
    configuration = _configuration(trace)
    hardware = _hardware(trace, reasons)
    spent = _spent(trace, average, configuration.device_type, whole, hardware)
    return Overview(
        headline=words.headline(spent, recommendations),
        spent=spent,
        explanation=words.explanation(step_list, average, reasons),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        steps=step_list,
        average=average,
        steps_recorded=times.steps.recorded,
        devices=[_device(entry) for entry in utilizations(trace)],
        hardware=hardware,
        configuration=configuration,
        gains=words.gains(recommendations, schedule(trace).explained, unexplained(trace)),
        recommendations=recommendations,
        no_advice=() if recommendations else words.no_advice(average, no_advice(trace)),
        beside=(),
        waiting=None,
        reasons=reasons,
        health=[*trace.health, *_doubts(trace, times)],
    )


def _hardware(trace: Trace, reasons: dict[str, str]) -> HardwareUse | None:
    """None, with its reason, where nothing can be said."""
    found = hardware_use(trace)
    if isinstance(found, str):
        reasons["hardware"] = found
        return None
    return found


def _spent(
    trace: Trace, average: Average | None, device_type: str, whole: str, hardware: HardwareUse | None
) -> Text:
    if is_truncated(trace.health):
        return truncated()
    frame = unrecorded(trace)
    name = None if frame is None else Phrase(frame.name, link("trace", event=frame.event))
    bound = bound_times(trace) if unexplained(trace) is None else None
    bounds = words.bound(bound, whole, _exposed(trace, average))
    return sentences(words.spent(average, device_type, whole, name, hardware), bounds)


def _exposed(trace: Trace, average: Average | None) -> float:
    """Share of the average step in communication of the device that nothing hides; 0 where the host communicates:
    on the path, that is time of the host."""
    if average is None or average.duration_ns <= 0 or len(host_communication(trace)):
        return 0.0
    return (average.categories.communication or 0.0) / average.duration_ns


def _steps(times: Breakdown) -> list[Step]:
    spans = times.steps
    return [
        Step(
            name=name,
            start_ns=int(spans.starts[i]),
            duration_ns=int(times.durations[i]),
            complete=bool(spans.complete[i]),
            categories=_categories({key: int(values[i]) for key, values in times.times.items()}, times),
        )
        for i, name in enumerate(spans.names)
    ]


def _categories(values: Mapping[str, float], times: Breakdown) -> Categories:
    return Categories(**{key: None if key in times.unknown else values[key] for key in CATEGORIES})


def _average(times: Breakdown) -> Average | None:
    average = average_step(times)
    if average is None:
        return None
    return Average(
        average.duration,
        _categories(average.categories, times),
        average.steps,
        [times.steps.names[at] for at in average.outliers],
        average.typical,
    )


def _device(entry: Utilization) -> Device:
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
        tensor_cores=tensor_core_time(entry.cores),
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


def _reasons(times: Breakdown) -> dict[str, str]:
    reasons = dict(times.unknown)
    if not times.steps.recorded:
        reasons["steps"] = (
            "no `ProfilerStep` is recorded (call `prof.step()` in the training loop): "
            "the whole trace is shown as one step"
        )
    if not times.steps.complete.any():
        reasons["average"] = "there is no complete step"
    return reasons


def _doubts(trace: Trace, times: Breakdown) -> list[Note]:
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
    incomplete = int((~times.steps.complete).sum())
    if incomplete:
        message = "trailing steps without their device work; drawn, but not averaged"
        doubts.append(Note("incomplete_step", "info", message, incomplete))
    return doubts


def _unavailable(trace: Trace) -> str | None:
    if len(steps(trace).names) == 0:
        return "the trace has no event with a time and a duration, so there is nothing to break down"
    return None


_ALONE = TraceView("overview", "Overview", NoParams, Overview, build, eager=True, rows="steps")

TAB = Tab(
    "",
    _ALONE,
    _unavailable,
    (
        RankView(
            "overview/ranks",
            "Overview beside other ranks",
            NoParams,
            Overview,
            beside,
            _ALONE,
            RANK_SUMMARIES,
            rows="steps",
        ),
    ),
)
