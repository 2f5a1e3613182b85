"""Rules about the memory of the devices: how full it is, whether it grows, and where it peaks. None saves time."""

from __future__ import annotations

from collections.abc import Iterator

from torch_tb_profiler.analyses.overview.finding import Finding, job_kind
from torch_tb_profiler.analyses.shared.memory_curve import MemoryLevels, first_peak, memory_levels
from torch_tb_profiler.analyses.shared.memory_trends import memory_trends
from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.model.trace import Trace

MEMORY_LIMIT_SHARE = 0.90
"""Share of a device's memory above which the peak of its allocations is nearly full."""

MIN_OUTSIDE_SHARE = 0.5
"""Smallest share of a device's memory that a peak outside of the steps reaches to be worth lowering,"""

MIN_OUTSIDE_RATIO = 1.1
"""and smallest ratio of it to the peak in the steps."""


def find_memory_problems(trace: Trace) -> Iterator[Finding]:
    """Find the first device of which each rule applies."""
    for rule in (_find_nearly_full, _find_peak_outside, _find_live_growth, _find_reserved_growth):
        found = (each for level in memory_levels(trace) if not level.relative for each in rule(trace, level))
        first = next(found, None)
        if first is not None:
            yield first


def _find_nearly_full(trace: Trace, level: MemoryLevels) -> Iterator[Finding]:
    """Find allocations that nearly fill a device in its steps: the next larger batch may not fit."""
    highest, capacity = first_peak(level.allocated), level.device.capacity
    if highest is None or not capacity or highest.bytes <= MEMORY_LIMIT_SHARE * capacity:
        return
    if not any(_find_peak_outside(trace, level)):
        case = "training" if job_kind(trace).training else "inference"
        yield Finding("memory_limit", case=case, subject=level.device.name, value=highest.bytes / capacity)


def _find_peak_outside(trace: Trace, level: MemoryLevels) -> Iterator[Finding]:
    """Find a high peak outside of the steps, which decides what fits."""
    highest, capacity = first_peak(level.allocated), level.device.capacity
    in_steps = memory_trends(trace, level).peak_in_steps
    if highest is None or not capacity or in_steps is None or highest.bytes < MIN_OUTSIDE_SHARE * capacity:
        return
    if highest.bytes >= MIN_OUTSIDE_RATIO * in_steps:
        yield Finding(
            "memory_peak", subject=level.device.name, place=format_bytes(in_steps), value=highest.bytes / capacity
        )


def _find_live_growth(trace: Trace, level: MemoryLevels) -> Iterator[Finding]:
    """Find live memory that rises from step to step."""
    rising = memory_trends(trace, level).live
    if rising is not None:
        yield Finding(
            "memory_growth",
            subject=level.device.name,
            place=format_bytes(rising.per_step),
            operator="code outside operators" if rising.name == "" else rising.name or "",
        )


def _find_reserved_growth(trace: Trace, level: MemoryLevels) -> Iterator[Finding]:
    """Find reserved memory that rises while tensors use much less more; NVIDIA's allocator has a setting."""
    rise = memory_trends(trace, level).reserved
    if rise is not None:
        yield Finding(
            "reserved_growth",
            case="segments" if level.device.kind == "CUDA" else "sizes",
            subject=level.device.name,
            place=format_bytes(rise.per_step),
            value=rise.used,
        )
