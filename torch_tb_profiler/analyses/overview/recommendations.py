"""What to do about it: rules with a threshold, the number that fired them, and where to look."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from torch_tb_profiler.analyses.shared.breakdown import Breakdown, breakdown
from torch_tb_profiler.analyses.shared.memory_curve import levels, peak
from torch_tb_profiler.analyses.shared.utilization import utilizations
from torch_tb_profiler.base.markers import DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.events import communication_calls
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.kinds import Kind, ends, kinds, names_of
from torch_tb_profiler.model.tensor_cores import YES, eligible_operators, uses_tensor_cores
from torch_tb_profiler.model.trace import Trace, distinct

DATA_LOADING_SHARE = 0.05
COMMUNICATION_SHARE = 0.10
LOW_UTILIZATION = 0.50
MEMORY_SHARE = 0.90
NCCL_CAPABILITY = (3, 5)
TENSOR_CORE_CAPABILITY = 7


class Finding(msgspec.Struct, frozen=True):
    """A rule that fired. `value` is the number in question (a ratio), `gain_ns` the most a step can gain."""

    id: str
    severity: str
    value: float
    gain_ns: float | None = None
    subject: str = ""


def findings(trace: Trace) -> list[Finding]:
    """All rules that fire on this trace, the largest gain first."""
    found = breakdown(trace)
    fired = [
        *_data_loading(found),
        *_data_parallel(trace),
        *_backend(trace),
        *_communication(found),
        *_low_utilization(trace),
        *_mixed_precision(trace),
        *_memory_limit(trace),
    ]
    return sorted(fired, key=lambda finding: -(finding.gain_ns or 0))


def mean_share(found: Breakdown, category: str) -> tuple[float, float]:
    """(share of the average complete step, mean ns) of a category."""
    kept = found.steps.complete
    total = float(found.durations[kept].sum())
    if total == 0:
        return 0.0, 0.0
    times = found.times[category][kept]
    return float(times.sum()) / total, float(times.mean())


def _data_loading(found: Breakdown) -> Iterator[Finding]:
    share, mean = mean_share(found, "dataloader")
    if share > DATA_LOADING_SHARE:
        yield Finding("data_loading", "warning", share, mean)


def _communication(found: Breakdown) -> Iterator[Finding]:
    share, mean = mean_share(found, "communication")
    if share > COMMUNICATION_SHARE:
        yield Finding("communication", "warning", share, mean)


def _data_parallel(trace: Trace) -> Iterator[Finding]:
    if DATA_PARALLEL in names_of(trace, Kind.CPU_OP, Kind.ANNOTATION) and len(devices(trace)) > 1:
        yield Finding("data_parallel", "warning", len(devices(trace)))


def _backend(trace: Trace) -> Iterator[Finding]:
    if DISTRIBUTED_DATA_PARALLEL not in names_of(trace, Kind.CPU_OP, Kind.ANNOTATION) or not devices(trace):
        return
    info = trace.metadata.get("distributedInfo")
    backend = str(info.get("backend", "")) if isinstance(info, dict) else ""
    calls = communication_calls(trace)
    names = {trace.strings[code].lower() for code in distinct(trace.events.name[calls])}
    if "nccl" in backend.lower() or any("nccl" in name or "rccl" in name for name in names):
        return
    slow = backend.lower() in ("gloo", "mpi") or any(name.startswith(("gloo:", "mpi:")) for name in names)
    capable = any(
        tuple(map(int, device.compute_capability.split("."))) >= NCCL_CAPABILITY
        for device in devices(trace)
        if device.compute_capability
    )
    if slow and capable:
        yield Finding("nccl_backend", "warning", 0.0, subject=backend or "gloo")


def _low_utilization(trace: Trace) -> Iterator[Finding]:
    low = [
        entry
        for entry in utilizations(trace)
        if entry.utilization is not None and entry.utilization < LOW_UTILIZATION
    ]
    if low:
        ids = ", ".join(str(entry.device.id) for entry in low)
        lowest = min(entry.utilization for entry in low if entry.utilization is not None)
        yield Finding("low_utilization", "info", lowest, subject=ids)


def _mixed_precision(trace: Trace) -> Iterator[Finding]:
    capable = [
        device
        for device in devices(trace)
        if device.kind == "CUDA"
        and device.compute_capability
        and int(device.compute_capability.split(".")[0]) >= TENSOR_CORE_CAPABILITY
    ]
    if not capable:
        return
    links = device_links(trace)
    kernels = (kinds(trace)[links.rows] == Kind.KERNEL) & (links.operator >= 0)
    rows, operators = links.rows[kernels], links.operator[kernels]
    time = (ends(trace) - trace.events.start)[rows]
    if time.sum() == 0 or (uses_tensor_cores(trace)[rows] == YES).any():
        return
    share = float(time[eligible_operators(trace)[operators]].sum() / time.sum())
    if share > 0:
        yield Finding("mixed_precision", "info", share)


def _memory_limit(trace: Trace) -> Iterator[Finding]:
    for level in levels(trace):
        found, capacity = peak(level.allocated), level.device.capacity
        if not level.relative and found and capacity and found.bytes > MEMORY_SHARE * capacity:
            yield Finding("memory_limit", "warning", found.bytes / capacity, subject=level.device.name)
            return
