"""The average step and the use of the devices, over all workers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import asdict

from torch_tb_profiler.summary.payload import DeviceUse, StepTime
from torch_tb_profiler.views.overview.payload import Average, Overview


def step_time(overviews: Mapping[str, Overview]) -> StepTime | None:
    """None if no worker has a complete step."""
    known = {worker: each.average for worker, each in overviews.items() if each.average is not None}
    if not known:
        return None
    slowest = max(known, key=lambda worker: known[worker].duration_ns)
    return StepTime(
        mean_ns=_mean([average.duration_ns for average in known.values()]),
        workers=len(known),
        steps=max(average.steps for average in known.values()),
        slowest=slowest,
        slowest_ns=known[slowest].duration_ns,
        breakdown=_breakdown([*known.values()]),
        recorded=all(overviews[worker].steps_recorded for worker in known),
    )


def _breakdown(averages: list[Average]) -> dict[str, float | None]:
    parts = [asdict(average.categories) for average in averages]
    means: dict[str, float | None] = {}
    for name in parts[0]:
        known = [part[name] for part in parts if part[name] is not None]
        means[name] = _mean(known) if known else None
    return means


def device_use(overviews: Mapping[str, Overview]) -> DeviceUse | None:
    """None without a device."""
    devices = [(worker, device) for worker, each in overviews.items() for device in each.devices]
    if not devices:
        return None
    used = [(device.utilization, worker) for worker, device in devices if device.utilization is not None]
    names = {device.name for _, device in devices}
    least, worker = min(used) if used else (None, None)
    return DeviceUse(
        devices=len(devices),
        name=names.pop() if len(names) == 1 else None,
        mean_utilization=_mean([share for share, _ in used]) if used else None,
        least_utilization=least,
        least_worker=worker,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
