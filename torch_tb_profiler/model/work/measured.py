"""Work of operators as measured by hardware counters, which takes precedence over work from shapes."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.trace import Bool, Float64, Trace
from torch_tb_profiler.model.work.ownership import work_owners


class MeasuredWork(msgspec.Struct, frozen=True):
    """Columns over device events or calls; NaN where one, or one of its kernels, was not counted.

    double  most of the FLOPs are in double precision
    """

    flops: Float64
    bytes: Float64
    double: Bool


@derived
def measured_event_work(trace: Trace) -> MeasuredWork | None:
    """Return the work of the m device events of `work_owners`, or None if no kernel has counters."""
    ranges = counter_ranges(trace)
    has_kernel = ranges.kernel >= 0
    if not has_kernel.any():
        return None
    from torch_tb_profiler.model.counters.measures import counter_work  # few traces have counters

    place = np.full(len(trace), -1, np.int32)
    place[ranges.kernel[has_kernel]] = np.flatnonzero(has_kernel)
    at = place[work_owners(trace).events]  # -1 takes the last cell, which is unknown
    work = counter_work(trace)
    return MeasuredWork(
        np.append(work.flops, np.nan)[at],
        np.append(work.bytes, np.nan)[at],
        np.append(work.double, False)[at],
    )


@derived
def measured_call_work(trace: Trace) -> MeasuredWork | None:
    """Return the work of the k calls of `work_owners`, summed over kernels; None if no kernel has counters."""
    events, owners = measured_event_work(trace), work_owners(trace)
    if events is None:
        return None
    kernels = (owners.call >= 0) & (event_kinds(trace)[owners.events] == Kind.KERNEL)
    call, count = owners.call[kernels], len(owners.calls)
    without_kernel = np.bincount(call, minlength=count) == 0

    def call_sums(values: Float64) -> Float64:
        return np.where(without_kernel, np.nan, np.bincount(call, values[kernels], minlength=count))

    flops = call_sums(events.flops)
    double = call_sums(np.where(events.double, events.flops, 0.0))
    return MeasuredWork(flops, call_sums(events.bytes), double > 0.5 * flops)
