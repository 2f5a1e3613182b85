"""What the file itself records: its steps, devices and configuration, what is not known, and what is doubtful."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_tb_profiler.analyses.overview.average import average_step
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown
from torch_tb_profiler.analyses.shared.utilization import Utilization
from torch_tb_profiler.model.calls.calltree import count_unexplained_overlaps
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.health import HealthNote, is_truncated
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.views._shared.call_payloads import build_tensor_core_time
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.overview.payload import Average, Categories, Configuration, Device, Step


def step_list(times: Breakdown) -> list[Step]:
    """Every step, in order."""
    spans = times.steps
    starts, durations, complete = spans.starts.tolist(), times.durations.tolist(), spans.complete.tolist()
    of_category = {key: values.tolist() for key, values in times.times.items()}
    return [
        Step(
            name=name,
            start_ns=starts[i],
            duration_ns=durations[i],
            complete=complete[i],
            categories=_categories({key: values[i] for key, values in of_category.items()}, times),
        )
        for i, name in enumerate(spans.names)
    ]


def _categories(values: Mapping[str, float], times: Breakdown) -> Categories:
    return Categories(**{key: None if key in times.unknown else values[key] for key in CATEGORIES})


def average_of(times: Breakdown) -> Average | None:
    """None if there is no complete step."""
    average = average_step(times)
    if average is None:
        return None
    return Average(
        average.duration,
        _categories(average.categories, times),
        average.steps,
        [times.steps.names[at] for at in average.outliers],
        average.typical,
        times.steps.names[0] if average.filling else None,
    )


def device(entry: Utilization) -> Device:
    """A device, and why what is not known of it is not."""
    info = entry.device
    reasons = dict(entry.unknown)
    for field in ("name", "memory_bytes", "compute_capability", "multiprocessors"):
        if getattr(info, field) is None:
            reasons[field] = "the trace does not describe the device"
    return Device(
        id=info.id,
        kind=info.kind,
        name=info.name,
        memory_bytes=info.memory_bytes,
        compute_capability=info.compute_capability,
        multiprocessors=info.multiprocessors,
        streams=entry.streams,
        utilization=entry.utilization,
        computing=entry.computing,
        sm_efficiency=entry.sm_efficiency,
        achieved_occupancy=entry.achieved_occupancy,
        tensor_core_ratio=entry.tensor_core_ratio,
        tensor_cores=build_tensor_core_time(entry.cores),
        reasons=reason_texts(reasons),
    )


def configuration(trace: Trace) -> Configuration:
    """What was recorded, and of what job."""
    known = bool(devices(trace)) and missing_kernels_reason(trace) is None
    recorded = {
        "host": len(rows_of_kind(trace, Kind.CPU_OP)) > 0,
        "device": known,
        "python": len(rows_of_kind(trace, Kind.PYTHON)) > 0 or "Call stack" in trace.args,
        "shapes": bool({"Input Dims", "Input dims"} & trace.args.keys()),
        "memory": "[memory]" in trace.strings,
    }
    info: Any = trace.metadata.get("distributedInfo")
    info = info if isinstance(info, Mapping) else {}
    world, backend = info.get("world_size"), info.get("backend")
    return Configuration(
        workers=1,
        device_type=_device_type(trace, known),
        rank=trace_rank(trace),
        world_size=world if isinstance(world, int) else None,
        backend=backend if isinstance(backend, str) else None,
        recorded={key: here for key, here in recorded.items() if here or not is_truncated(trace.health)},
    )


def _device_type(trace: Trace, known: bool) -> str | None:
    if known:
        return device_kind(trace)
    if missing_kernels_reason(trace) is not None:  # devices worked, and only the calls of the host tell
        kind = device_kind(trace)
        return None if kind == "other" else kind
    return None if is_truncated(trace.health) else "CPU"


def busy_type(configured: Configuration) -> str | None:
    """The devices whose work is recorded, None where there is none."""
    return configured.device_type if configured.recorded.get("device", False) else None


def unknown(trace: Trace, times: Breakdown) -> dict[str, str]:
    """Why categories, steps or the average are not known."""
    reasons = dict(times.unknown)
    if not times.steps.recorded:
        reasons["steps"] = (
            f"no step is recorded ({recording_option(trace, 'steps')}): the whole trace is shown as one step"
        )
    if not times.steps.complete.any():
        reasons["average"] = "there is no complete step"
    return reasons


def doubts(trace: Trace, times: Breakdown) -> list[HealthNote]:
    """What the analyses noticed."""
    notes = []
    stray = count_unexplained_overlaps(trace)
    if stray:
        message = "host events overlap on their thread without nesting; they are kept on side lanes"
        notes.append(HealthNote("overlap", "info", message, stray))
    links = device_links(trace)
    unlinked = int((links.launch < 0).sum())
    if unlinked and len(rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)):
        message = "device events without a recorded launch; counted as device time, linked to no operator"
        notes.append(HealthNote("unlinked", "info", message, unlinked))
    incomplete = int((~times.steps.complete).sum())
    if incomplete:
        message = "trailing steps without their device work; drawn, but not averaged"
        notes.append(HealthNote("incomplete_step", "info", message, incomplete))
    return notes
