"""What the file itself records: its steps, devices and configuration, what is missing, and health notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, Breakdown, breakdown, listed_steps
from torch_tb_profiler.analyses.shared.typical_steps import average_step
from torch_tb_profiler.analyses.shared.utilization import DeviceUtilization
from torch_tb_profiler.model.calls.calltree import count_unexplained_overlaps
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.health import HealthNote, is_truncated
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.origins.compiled import has_indirect_kernels
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.serving.labeled import unknown_labels
from torch_tb_profiler.model.steps import step_noun
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.gaudi import (
    contradictions,
    describe_config,
    find_omissions,
    recorded_config,
)
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.views._shared.call_payloads import build_tensor_core_time
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.overview.payload import (
    Average,
    Categories,
    Configuration,
    Device,
    RecorderConfiguration,
    Step,
)


def build_steps(times: Breakdown) -> list[Step]:
    """Build the list of all steps, in order."""
    spans = times.steps
    starts, durations, complete = spans.starts.tolist(), times.durations.tolist(), spans.complete.tolist()
    times_by_category = {key: values.tolist() for key, values in times.times.items()}
    return [
        Step(
            name=name,
            start_ns=starts[i],
            duration_ns=durations[i],
            complete=complete[i],
            categories=_categories({key: values[i] for key, values in times_by_category.items()}, times),
        )
        for i, name in enumerate(spans.names)
    ]


def select_steps(all_steps: list[Step], times: Breakdown, average: Average | None) -> list[Step]:
    """Return the steps that the overview lists, in order; with the odd ones, which are named elsewhere."""
    named = set() if average is None else {*average.outliers, average.filling}
    listed = {*listed_steps(times), *(i for i, step in enumerate(all_steps) if step.name in named)}
    return [all_steps[i] for i in sorted(listed)]


def _categories(values: Mapping[str, float], times: Breakdown) -> Categories:
    return Categories(**{key: None if key in times.unknown else values[key] for key in CATEGORIES})


def build_average(trace: Trace) -> Average | None:
    """Build the average step; None if there is no complete step."""
    average, times = average_step(trace), breakdown(trace)
    if average is None:
        return None
    return Average(
        average.duration,
        _categories(average.categories, times),
        average.steps,
        [times.steps.names[i] for i in average.odd],
        average.duration,
        times.steps.names[0] if average.filling else None,
    )


_DESCRIPTION = ("name", "memory_bytes", "compute_capability", "multiprocessors")


def build_device(entry: DeviceUtilization) -> Device:
    """Build the card of a device, with the reasons of missing figures."""
    info = entry.device
    reasons = dict(entry.unknown)
    absent = [field for field in _DESCRIPTION if getattr(info, field) is None]
    if len(absent) == len(_DESCRIPTION):
        reasons |= dict.fromkeys(absent, "the trace doesn't describe the device")
    else:
        reasons |= dict.fromkeys(absent, "the trace's description of the device lacks it")
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


def build_configuration(trace: Trace) -> Configuration:
    """Build what was recorded, and of what job."""
    has_device_work = bool(devices(trace)) and missing_kernels_reason(trace) is None
    recorded = {
        "host": len(rows_of_kind(trace, Kind.CPU_OP)) > 0,
        "device": has_device_work,
        "python": len(rows_of_kind(trace, Kind.PYTHON)) > 0 or "Call stack" in trace.args,
        "shapes": bool({"Input Dims", "Input dims"} & trace.args.keys()),
        "memory": "[memory]" in trace.strings,
    }
    info: Any = trace.metadata.get("distributedInfo")
    info = info if isinstance(info, Mapping) else {}
    world, backend = info.get("world_size"), info.get("backend")
    return Configuration(
        workers=1,
        device_type=_device_type(trace, has_device_work),
        rank=trace_rank(trace),
        world_size=world if isinstance(world, int) else None,
        backend=backend if isinstance(backend, str) else None,
        recorded={key: value for key, value in recorded.items() if value or not is_truncated(trace.health)},
        recorder=_build_recorder(trace),
    )


def _build_recorder(trace: Trace) -> RecorderConfiguration | None:
    config = recorded_config(trace)
    if config is None:
        return None
    return RecorderConfiguration(
        config.file,
        dict(describe_config(config)),
        [each.sentence for each in find_omissions(config)],
        contradictions(trace, config),
    )


def _device_type(trace: Trace, has_device_work: bool) -> str | None:
    if has_device_work:
        return device_kind(trace)
    if missing_kernels_reason(trace) is not None:  # devices worked, but only calls of the host were recorded
        kind = device_kind(trace)
        return None if kind == "other" else kind
    return None if is_truncated(trace.health) else "CPU"


def recorded_device_type(build_configuration: Configuration) -> str | None:
    """Return the type of the devices whose work is recorded, None where there is none."""
    return build_configuration.device_type if build_configuration.recorded.get("device", False) else None


def missing_reasons(trace: Trace, times: Breakdown) -> dict[str, str]:
    """Return why categories, steps or the average are missing."""
    reasons = dict(times.unknown)
    if not times.steps.recorded:
        reasons["steps"] = f"no steps in this trace, so it's shown as one: {recording_option(trace, 'steps')}"
    if not times.steps.complete.any():
        reasons["average"] = f"there is no complete {step_noun(trace)}"
    return reasons


def health_notes(trace: Trace, times: Breakdown) -> list[HealthNote]:
    """Return what the analyses noticed about the recording."""
    notes = []
    overlapping = count_unexplained_overlaps(trace)
    if overlapping:
        message = "host events overlap on their thread without nesting; they are drawn on side lanes"
        notes.append(HealthNote("overlap", "info", message, overlapping))
    links = device_links(trace)
    unlinked = int((links.launch < 0).sum())
    if unlinked and len(rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)):
        message = "device events have no recorded launch: they count as device time, but link to no operator"
        notes.append(HealthNote("unlinked", "info", message, unlinked))
    incomplete = int((~times.steps.complete).sum())
    if incomplete:
        message = f"{step_noun(trace)}s lack their device work: they are drawn, but not averaged"
        notes.append(HealthNote("incomplete_step", "info", message, incomplete))
    config = recorded_config(trace)
    if config is not None:
        if omitted := [each.sentence for each in find_omissions(config)]:
            notes.append(HealthNote("recorder_left_out", "info", f"{config.file}: {' '.join(omitted)}"))
        if contradicted := contradictions(trace, config):
            message = f"{config.file}: {' '.join(contradicted)}"
            notes.append(HealthNote("recorder_contradicted", "warning", message))
    unknown = unknown_labels(trace)
    if unknown:
        message = f"annotations read like an engine's iterations but have an unknown format: {unknown[0][:80]}"
        notes.append(HealthNote("unknown_iteration_label", "warning", message, len(unknown)))
    if has_indirect_kernels(trace):
        from torch_tb_profiler.views._shared.origins import origin_notes  # few traces get here

        notes += origin_notes(trace)
    return notes
