from __future__ import annotations

import numpy as np
import pytest

from tests.support.memory_traces import CALLS, memory, three_steps
from tests.support.traces import draw
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.views._shared.availability import memory_reason as unavailable
from torch_tb_profiler.views.memory.curve import MemoryCurve, MemoryCurveParams, build_curve
from torch_tb_profiler.views.memory.tables import LiveParams, build_live


def column(content: bytes) -> list[float | None]:
    return [None if np.isnan(value) else value for value in np.frombuffer(content, "<f8").tolist()]


def test_the_curve_of_few_events_is_the_events() -> None:
    curve = build_curve(three_steps(), MemoryCurveParams(device="GPU0"))
    assert curve.exact and curve.events == 8
    assert column(curve.time) == [t * 1000.0 for t in (20, 30, 60, 61, 115, 120, 150, 215)]
    assert column(curve.allocated_last) == [1512, 1612, 1512, 1312, 1612, 2612, 1612, 1912]
    assert curve.allocated_min == curve.allocated_max == curve.allocated_last
    assert column(curve.reserved_last) == [4096] * 5 + [8192] * 3


def test_a_window_begins_with_what_holds() -> None:
    curve = build_curve(three_steps(), MemoryCurveParams(begin=100_000, end=119_000))
    assert column(curve.time) == [100_000, 115_000]
    assert column(curve.allocated_last) == [1312, 1612]
    assert curve.peak_allocated is not None and curve.peak_allocated.time_ns == 115_000
    still = build_curve(three_steps(), MemoryCurveParams(begin=130_000, end=140_000))
    assert still.peak_allocated is not None
    assert (still.peak_allocated.bytes, still.peak_allocated.time_ns) == (2612, 130_000)


def test_buckets_lose_no_peak() -> None:
    curve = build_curve(three_steps(), MemoryCurveParams(begin=0, end=299_999, points=3))
    assert not curve.exact
    assert column(curve.time) == [0, 100_000, 200_000]
    assert column(curve.allocated_min) == [1312, 1312, 1612]
    assert column(curve.allocated_max) == [1612, 2612, 1912]
    assert column(curve.allocated_last) == [1312, 1612, 1912]


def test_before_the_first_event_nothing_is_known() -> None:
    curve = build_curve(three_steps(), MemoryCurveParams(begin=0, end=299_999, points=7))
    known = column(curve.allocated_last)
    assert known[0] is not None  # the first bucket holds the first events
    early = build_curve(three_steps(), MemoryCurveParams(begin=0, end=19_999, points=1))
    assert column(early.time) == [] and early.peak_allocated is None


def test_mistakes_are_named() -> None:
    with pytest.raises(NotFoundError, match="GPU7"):
        build_curve(three_steps(), MemoryCurveParams(device="GPU7"))
    with pytest.raises(UsageError, match="range"):
        build_curve(three_steps(), MemoryCurveParams(begin=5, end=4))
    assert "profile_memory" in (unavailable(draw(CALLS)) or "")


def test_the_curve_is_a_step_function_whatever_the_points() -> None:
    """Between the buckets' extremes lie all values; the last of a bucket is what holds when the next begins."""
    whole = build_curve(three_steps(), MemoryCurveParams(begin=0, end=300_000))
    times, values = np.frombuffer(whole.time), np.frombuffer(whole.allocated_last)
    for points in range(1, 8):
        curve: MemoryCurve = build_curve(three_steps(), MemoryCurveParams(begin=0, end=300_000, points=points))
        edges = np.append(np.frombuffer(curve.time), 300_001)
        for i, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            held = [v for t, v in zip(times, values, strict=True) if t < low][-1:]
            inside = [v for t, v in zip(times, values, strict=True) if low <= t < high]
            if held + inside:
                assert np.frombuffer(curve.allocated_max)[i] == max(held + inside)
                assert np.frombuffer(curve.allocated_min)[i] == min(held + inside)
                assert np.frombuffer(curve.allocated_last)[i] == (held + inside)[-1]


def test_times_beyond_reason_break_nothing() -> None:
    wild = draw("", *memory("1 GPU0 a 5 5 9\n9e15 GPU0 a -5 0 9"))
    assert build_curve(wild, MemoryCurveParams()).events == 2
    assert build_curve(wild, MemoryCurveParams(points=1)).peak_allocated is not None
    assert build_live(wild, LiveParams()).blocks == 1
    with pytest.raises(UsageError, match="range"):
        build_curve(wild, MemoryCurveParams(begin=-(2**70), end=2**70))
