"""Rules about memory: no time is to gain, but the next larger batch may not fit."""

from __future__ import annotations

from collections.abc import Iterator

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.job import job
from torch_tb_profiler.analyses.shared.memory_curve import levels, peak
from torch_tb_profiler.model.trace import Trace

MEMORY_SHARE = 0.90


def memory_limit(trace: Trace) -> Iterator[Finding]:
    """Allocations peak above this share of a device's memory."""
    for level in levels(trace):
        highest, capacity = peak(level.allocated), level.device.capacity
        if not level.relative and highest and capacity and highest.bytes > MEMORY_SHARE * capacity:
            case = "training" if job(trace).training else "inference"
            yield Finding("memory_limit", case=case, subject=level.device.name, value=highest.bytes / capacity)
            return
