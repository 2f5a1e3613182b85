"""Memory of a device over time, in a window."""

from __future__ import annotations

from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.memory.devices import sample_curve
from torch_tb_profiler.analyses.shared.memory_curve import device_levels
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Float64s, TraceView
from torch_tb_profiler.views.memory.build import build_peak_moment
from torch_tb_profiler.views.memory.payload import MemoryMoment

Points = Annotated[int, msgspec.Meta(ge=1, le=20_000)]
"""How many points of a curve are requested."""


class MemoryCurveParams(msgspec.Struct, frozen=True):
    """A device ("": the default one), a window [begin, end] in ns (default: its first to its last event)."""

    device: str = ""
    begin: int | None = None
    end: int | None = None
    points: Points = 1000


class MemoryCurve(msgspec.Struct, frozen=True):
    """Allocated and reserved memory of one device in a window, as a step function.

    Columns are little-endian float64 arrays of equal length (`bytes`, base64 on the wire): whole numbers, exact
    up to 2^53; NaN before the first recorded total.

    `exact`: entry i is an event and its values hold until time i + 1 (the first entry: what holds at begin_ns).
    Otherwise entry i is the bucket that begins at time i, with the minimum, maximum and last value in it,
    counting the value at its beginning. The columns of `reserved` are empty where the file records no totals.

    peak_allocated, peak_reserved, fragmentation  exact, of this window, whatever the sampling
    """

    device: str
    begin_ns: int
    end_ns: int
    events: int
    exact: bool
    relative: bool
    time: Float64s
    allocated_min: Float64s
    allocated_max: Float64s
    allocated_last: Float64s
    reserved_min: Float64s
    reserved_max: Float64s
    reserved_last: Float64s
    peak_allocated: MemoryMoment | None
    peak_reserved: MemoryMoment | None
    fragmentation: MemoryMoment | None


def build_curve(trace: Trace, params: MemoryCurveParams) -> MemoryCurve:
    """Sample the curve. NotFoundError for an unknown device."""
    level = device_levels(trace, params.device)
    sampled = sample_curve(trace, level, params.begin, params.end, params.points)
    return MemoryCurve(
        device=level.device.name,
        begin_ns=sampled.begin,
        end_ns=sampled.end,
        events=sampled.events,
        exact=sampled.exact,
        relative=level.relative,
        time=sampled.time,
        allocated_min=sampled.allocated.min,
        allocated_max=sampled.allocated.max,
        allocated_last=sampled.allocated.last,
        reserved_min=sampled.reserved.min,
        reserved_max=sampled.reserved.max,
        reserved_last=sampled.reserved.last,
        peak_allocated=build_peak_moment(sampled.peak_allocated),
        peak_reserved=build_peak_moment(sampled.peak_reserved),
        fragmentation=build_peak_moment(sampled.peak_unused),
    )


CURVE = TraceView("memory/curve", "Memory curve", MemoryCurveParams, MemoryCurve, build_curve)
