"""The memory of a device in a window, sampled to a number of points."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.memory.devices import Moment, highest
from torch_tb_profiler.analyses.shared.memory_curve import Levels, records_in, sample, unused
from torch_tb_profiler.analyses.shared.packing import float64_bytes
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace


class Band(msgspec.Struct, frozen=True):
    """Least, greatest and last value of each sample, packed as float64; empty where no value is known."""

    least: bytes
    greatest: bytes
    last: bytes


class Curve(msgspec.Struct, frozen=True):
    """A step function (`memory_curve.Samples`) and the exact peaks of its window.

    begin, end  of the window, ns
    events      in the window
    time        packed like the bands
    """

    begin: int
    end: int
    events: int
    exact: bool
    time: bytes
    allocated: Band
    reserved: Band
    peak_allocated: Moment | None
    peak_reserved: Moment | None
    peak_unused: Moment | None


def curve(trace: Trace, level: Levels, begin: int | None, end: int | None, points: int) -> Curve:
    """[begin, end] in ns, by default all; UsageError if it is not a range."""
    window = records_in(level.time, begin, end)
    samples = sample(level.time, level.allocated, window, points)

    def band(values: Int64) -> Band:
        if (values == ABSENT).all():
            return Band(b"", b"", b"")
        column = sample(level.time, values, window, points)
        return Band(float64_bytes(column.least), float64_bytes(column.most), float64_bytes(column.last))

    return Curve(
        begin=window.begin,
        end=window.end,
        events=window.high - window.low,
        exact=samples.exact,
        time=float64_bytes(samples.time),
        allocated=band(level.allocated),
        reserved=band(level.reserved),
        peak_allocated=highest(trace, level, level.allocated, window),
        peak_reserved=highest(trace, level, level.reserved, window),
        peak_unused=highest(trace, level, unused(level), window),
    )
