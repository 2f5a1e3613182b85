"""What hardware counters measured of the work of calls: it wins over what the shapes say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.counters.measures import counter_work
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.trace import Bool, Float64, Trace
from torch_tb_profiler.model.work.ownership import owners


class Measured(NamedTuple):
    """Columns of device events or of calls; NaN where they, or one of their kernels, were not counted.

    double  most of the FLOPs are in double precision
    """

    flops: Float64
    bytes: Float64
    double: Bool


@derived
def measured_events(trace: Trace) -> Measured | None:
    """Of the m device events of `owners`; None in a trace without counters beside its kernels."""
    profiled = counter_ranges(trace)
    counted = profiled.kernel >= 0
    if not counted.any():
        return None
    place = np.full(len(trace), -1, np.int32)
    place[profiled.kernel[counted]] = np.flatnonzero(counted)
    at = place[owners(trace).events]  # -1 takes the last cell, which is unknown
    figures = counter_work(trace)
    return Measured(
        np.append(figures.flops, np.nan)[at],
        np.append(figures.bytes, np.nan)[at],
        np.append(figures.double, False)[at],
    )


@derived
def measured_calls(trace: Trace) -> Measured | None:
    """Of the k calls of `owners`: sums over their kernels. None as of `measured_events`."""
    events, own = measured_events(trace), owners(trace)
    if events is None:
        return None
    kernels = (own.call >= 0) & (event_kinds(trace)[own.events] == Kind.KERNEL)
    call, count = own.call[kernels], len(own.calls)
    none = np.bincount(call, minlength=count) == 0

    def sums(values: Float64) -> Float64:
        return np.where(none, np.nan, np.bincount(call, values[kernels], minlength=count))

    flops = sums(events.flops)
    double = sums(np.where(events.double, events.flops, 0.0))
    return Measured(flops, sums(events.bytes), double > 0.5 * flops)
