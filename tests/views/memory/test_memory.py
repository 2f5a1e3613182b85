from __future__ import annotations

import numpy as np
import pytest

from tests.support.memory_events import memory
from tests.support.traces import draw
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.memory import build as view
from torch_tb_profiler.views.memory.parts import (
    CurveParams,
    EventsParams,
    LiveParams,
    MemoryOperatorsParams,
    build_curve,
    build_events,
    build_live,
    build_operators,
)
from torch_tb_profiler.views.memory.payload import MemoryCurve
from torch_tb_profiler.views.overview import build as overview

CALLS = """
host  user_annotation  ProfilerStep#1           0  100
host  user_annotation  ProfilerStep#2         100  100
host  user_annotation  ProfilerStep#3         200  100
host  python_function  train.py(7):~step        0  300  Python~id=1
host  python_function  nn.Module:~Linear_0      5   90  Python~module~id=0
host  cpu_op           aten::linear            10   40
host  cpu_op           aten::empty             15   10
host  cpu_op           aten::relu             110   20
host  cpu_op           aten::relu             210   20
"""

EVENTS = """
 20  GPU0  a   512  1512  4096
 30  GPU0  b   100  1612  4096
 60  GPU0  b  -100  1512  4096
 61  GPU0  x  -200  1312  4096
 90  CPU   a    64    64     0
115  GPU0  c   300  1612  4096
120  GPU0  d  1000  2612  8192
150  GPU0  d -1000  1612  8192
215  GPU0  e   300  1912  8192
"""


def trace() -> Trace:
    properties = [{"id": 0, "name": "A100", "totalGlobalMem": 40 * 2**30}]
    return draw(CALLS, *memory(EVENTS), deviceProperties=properties)


def column(content: bytes) -> list[float | None]:
    return [None if np.isnan(value) else value for value in np.frombuffer(content, "<f8").tolist()]


def test_devices_with_exact_peaks() -> None:
    payload = view.build(trace(), NoParams())
    cpu, gpu = payload.devices
    assert payload.default_device == "GPU0"
    assert (gpu.name, gpu.hardware, gpu.capacity_bytes) == ("GPU0", "A100", 40 * 2**30)
    assert (gpu.peak_allocated_bytes, gpu.peak_reserved_bytes) == (2612, 8192)
    assert gpu.allocated is not None and gpu.allocated.time_ns == 120_000
    assert gpu.fragmentation is not None
    assert (gpu.fragmentation.bytes, gpu.fragmentation.time_ns) == (8192 - 1612, 150_000)
    assert (gpu.start_bytes, gpu.end_bytes) == (1000, 1912)
    assert (gpu.events, gpu.allocations, gpu.releases, gpu.unreleased, gpu.older) == (8, 5, 3, 3, 1)
    assert gpu.allocated_in_trace_bytes == 512 + 100 + 300 + 1000 + 300
    assert (cpu.peak_allocated_bytes, cpu.peak_reserved_bytes, cpu.fragmentation) == (64, 0, None)
    assert payload.reasons.keys() >= {"capacity_bytes"}


def test_growth_names_the_operator_that_holds_it() -> None:
    gpu = next(each for each in view.build(trace(), NoParams()).growth if each.device == "GPU0")
    assert gpu.steps == ["1", "2", "3"]
    assert gpu.live_bytes == [1312, 1612, 1912]
    assert (gpu.growing, gpu.per_step_bytes) == (True, 300)
    (holder,) = gpu.holders
    assert (holder.name, holder.growth_bytes, holder.step_bytes, holder.blocks) == (
        "aten::relu", 600, [0, 300, 600], 2)  # fmt: skip
    assert [frame.text for frame in holder.frames] == ["train.py(7): step"]


def test_memory_that_does_not_grow_at_every_step_is_no_leak() -> None:
    steady = draw(CALLS, *memory("20 GPU0 a 512 512 0\n150 GPU0 b 8 520 0\n250 GPU0 b -8 512 0"))
    (gpu,) = view.build(steady, NoParams()).growth
    assert (gpu.live_bytes, gpu.growing, gpu.holders) == ([512, 520, 512], False, [])


def steps_that_leave(*sizes: int) -> Trace:
    """A step per size; at its end so many bytes live, most of them an old block's."""
    picture = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i} 100" for i in range(len(sizes)))
    events, before = ["1 CPU a 100000 100000 0"], 100_000
    for i, size in enumerate(sizes):
        change = 100_000 + size - before
        events.append(f"{100 * i + 50} CPU b{i} {change} {100_000 + size} 0")
        before = 100_000 + size
    return draw(picture, *memory("\n".join(events)))


@pytest.mark.parametrize(
    ("sizes", "growing", "per_step"),
    [
        ((1000, 2000, 3000), True, 1000),
        ((5000, 2000, 3000, 4000), True, 1000),  # what the first step leaves goes
        ((5000, 2000, 3000), False, -1000),
        ((1000, 2000, 1500, 2500, 3500), False, 1000),
        ((1000, 2000, 2000), False, 500),
        ((10, 20, 30, 40), False, 10),  # a thousandth of the peak is no leak
    ],
)
def test_growth_is_told_from_noise(sizes: tuple[int, ...], growing: bool, per_step: int) -> None:
    (cpu,) = view.build(steps_that_leave(*sizes), NoParams()).growth
    assert (cpu.growing, cpu.per_step_bytes) == (growing, per_step)
    assert bool(cpu.holders) == growing
    if growing:
        assert cpu.holders[0].growth_bytes == 1000 * cpu.holders[0].blocks


@pytest.mark.parametrize(
    ("sizes", "per_step"),
    [
        ((9000, 2000, 3000, 5000), 1500),  # what the first step leaves is no part of a growth since the second
        ((1000, 2000, 3000, 9000), 1000),  # one large step does not move the median
    ],
)
def test_growth_per_step_is_the_median_since_it_began(sizes: tuple[int, ...], per_step: int) -> None:
    (cpu,) = view.build(steps_that_leave(*sizes), NoParams()).growth
    assert (cpu.growing, cpu.per_step_bytes) == (True, per_step)


def test_two_steps_tell_no_growth_and_the_payload_says_so() -> None:
    short = draw("host user_annotation ProfilerStep#1 0 100\nhost user_annotation ProfilerStep#2 100 100",
                 *memory("20 GPU0 a 512 512 0\n120 GPU0 b 8 520 0"))  # fmt: skip
    payload = view.build(short, NoParams())
    assert not payload.growth[0].growing and "3 steps" in payload.reasons["growth"]


def test_the_curve_of_few_events_is_the_events() -> None:
    curve = build_curve(trace(), CurveParams(device="GPU0"))
    assert curve.exact and curve.events == 8
    assert column(curve.time) == [t * 1000.0 for t in (20, 30, 60, 61, 115, 120, 150, 215)]
    assert column(curve.allocated_last) == [1512, 1612, 1512, 1312, 1612, 2612, 1612, 1912]
    assert curve.allocated_min == curve.allocated_max == curve.allocated_last
    assert column(curve.reserved_last) == [4096] * 5 + [8192] * 3


def test_a_window_begins_with_what_holds() -> None:
    curve = build_curve(trace(), CurveParams(begin=100_000, end=119_000))
    assert column(curve.time) == [100_000, 115_000]
    assert column(curve.allocated_last) == [1312, 1612]
    assert curve.peak_allocated is not None and curve.peak_allocated.time_ns == 115_000
    still = build_curve(trace(), CurveParams(begin=130_000, end=140_000))
    assert still.peak_allocated is not None
    assert (still.peak_allocated.bytes, still.peak_allocated.time_ns) == (2612, 130_000)


def test_buckets_lose_no_peak() -> None:
    curve = build_curve(trace(), CurveParams(begin=0, end=299_999, points=3))
    assert not curve.exact
    assert column(curve.time) == [0, 100_000, 200_000]
    assert column(curve.allocated_min) == [1312, 1312, 1612]
    assert column(curve.allocated_max) == [1612, 2612, 1912]
    assert column(curve.allocated_last) == [1312, 1612, 1912]


def test_before_the_first_event_nothing_is_known() -> None:
    curve = build_curve(trace(), CurveParams(begin=0, end=299_999, points=7))
    known = column(curve.allocated_last)
    assert known[0] is not None  # the first bucket holds the first events
    early = build_curve(trace(), CurveParams(begin=0, end=19_999, points=1))
    assert column(early.time) == [] and early.peak_allocated is None


def test_a_trace_without_totals_shows_the_change() -> None:
    old = draw(CALLS, *memory("20 GPU0 - 512 - -\n30 GPU0 - -112 - -"))
    (device,) = view.build(old, NoParams()).devices
    assert device.relative and device.peak_allocated_bytes is None and device.unreleased is None
    curve = build_curve(old, CurveParams())
    assert curve.relative and column(curve.allocated_last) == [512, 400] and curve.reserved_last == b""
    reasons = view.build(old, NoParams()).reasons
    assert {"peak_allocated_bytes", "unreleased", "fragmentation"} <= reasons.keys()
    assert "rows" in build_live(old, LiveParams()).reasons
    (row,) = build_events(old, EventsParams()).rows
    assert (row.state, row.released_ns, row.size_bytes) == ("unknown", None, 512)


def test_live_at_the_peak_with_what_is_older() -> None:
    live = build_live(trace(), LiveParams())
    assert (live.time_ns, live.allocated_bytes, live.reserved_bytes) == (120_000, 2612, 8192)
    assert live.known_bytes == 1812 and live.older_bytes == 800 and live.older_released_bytes == 0
    assert [(row.name, row.blocks, row.bytes) for row in live.rows] == [
        ("aten::relu", 2, 1300),
        ("aten::linear (aten::empty)", 1, 512),
    ]
    assert sum(row.share or 0 for row in live.rows) == pytest.approx(1812 / 2612)
    early = build_live(trace(), LiveParams(at=60_500))
    assert (early.known_bytes, early.older_bytes, early.older_released_bytes) == (512, 1000, 200)
    before = build_live(trace(), LiveParams(at=0))
    assert (before.known_bytes, before.older_bytes, before.allocated_bytes) == (0, 1000, None)


def test_live_in_a_window_is_live_at_its_peak() -> None:
    live = build_live(trace(), LiveParams(begin=0, end=100_000))
    assert (live.time_ns, live.allocated_bytes) == (30_000, 1612)


def test_live_by_module_stack_and_size() -> None:
    by = {group: build_live(trace(), LiveParams(group_by=group)).rows for group in ("module", "stack", "size")}
    assert [(row.name, row.bytes) for row in by["module"]] == [(None, 1300), ("Linear_0", 512)]
    assert [(row.name, len(row.frames), row.bytes) for row in by["stack"]] == [
        ("train.py(7): step", 1, 1300),
        ("nn.Module: Linear_0", 2, 512),
    ]
    assert [(row.size_bytes, row.blocks) for row in by["size"]] == [(1000, 1), (512, 1), (300, 1)]
    assert [row.name for row in build_live(trace(), LiveParams(group_by="size", first=1, limit=1)).rows] == [None]


def test_events_say_who_allocated_and_how_long_it_lived() -> None:
    found = build_events(trace(), EventsParams(sort="allocated", descending=False))
    rows = [(r.operator, r.size_bytes, r.allocated_ns, r.released_ns, r.duration_ns, r.state) for r in found.rows]
    assert rows == [
        ("aten::linear (aten::empty)", 512, 20_000, None, None, "unreleased"),
        ("aten::linear", 100, 30_000, 60_000, 30_000, "released"),
        ("aten::relu", 300, 115_000, None, None, "unreleased"),
        ("aten::relu", 1000, 120_000, 150_000, 30_000, "released"),
        ("aten::relu", 300, 215_000, None, None, "unreleased"),
        (None, 200, None, 61_000, None, "older"),
    ]
    assert (found.total, found.total_bytes) == (6, 2412)


@pytest.mark.parametrize(
    ("params", "sizes"),
    [
        (EventsParams(), [1000, 512, 300, 300, 200, 100]),
        (EventsParams(first=1, limit=2), [512, 300]),
        (EventsParams(search="LINEAR"), [512, 100]),
        (EventsParams(operator="aten::linear"), [100]),
        (EventsParams(operator="aten::empty"), [512]),
        (EventsParams(operator="aten::linear (aten::empty)"), [512]),
        (EventsParams(state="older"), [200]),
        (EventsParams(begin=100_000, end=115_000), [300]),
        (EventsParams(begin=60_000, end=61_000), [200, 100]),
        (EventsParams(at=120_000), [1000, 512, 300]),
        (EventsParams(sort="duration"), [100, 1000, 512, 200, 300, 300]),
        (EventsParams(sort="operator", descending=False, limit=2), [100, 512]),
        (EventsParams(sort="released", limit=3), [1000, 200, 100]),
    ],
)
def test_events_are_filtered_sorted_and_paged(params: EventsParams, sizes: list[int]) -> None:
    assert [row.size_bytes for row in build_events(trace(), params).rows] == sizes


def test_statistics_of_operators() -> None:
    found = build_operators(trace(), MemoryOperatorsParams())
    rows = {
        row.name: (
            row.calls, row.size_increase_bytes, row.self_size_increase_bytes, row.allocation_count,
            row.self_allocation_count, row.allocation_size_bytes, row.self_allocation_size_bytes,
        )
        for row in found.rows
    }  # fmt: skip
    assert rows == {
        "aten::relu": (2, 1600, 1600, 3, 3, 1600, 1600),
        "aten::empty": (1, 512, 512, 1, 1, 512, 512),
        "aten::linear": (1, 612, 100, 2, 1, 612, 100),
    }
    assert (found.outside.size_increase_bytes, found.outside.allocation_count) == (-1300, 0)


def test_statistics_of_a_range() -> None:
    found = build_operators(trace(), MemoryOperatorsParams(begin=25_000, end=116_000))
    assert [(row.name, row.calls, row.allocation_size_bytes) for row in found.rows] == [
        ("aten::relu", 1, 300),
        ("aten::linear", 1, 100),
    ]


def test_allocations_that_fail_are_listed() -> None:
    (failure,) = memory("115 GPU0 - 4096 1312 9000")
    failure["name"] = "[OutOfMemory]"
    (found,) = view.build(draw(CALLS, *memory(EVENTS), failure), NoParams()).out_of_memory
    assert (found.device, found.bytes, found.allocated_bytes, found.reserved_bytes) == ("GPU0", 4096, 1312, 9000)
    assert (found.operator, found.time_ns) == ("aten::relu", 115_000)
    assert view.build(trace(), NoParams()).out_of_memory == []


def test_mistakes_are_named() -> None:
    with pytest.raises(NotFoundError, match="GPU7"):
        build_curve(trace(), CurveParams(device="GPU7"))
    with pytest.raises(UsageError, match="range"):
        build_curve(trace(), CurveParams(begin=5, end=4))
    assert "profile_memory" in (view.unavailable(draw(CALLS)) or "")


def test_the_curve_is_a_step_function_whatever_the_points() -> None:
    """Between the buckets' extremes lie all values; the last of a bucket is what holds when the next begins."""
    whole = build_curve(trace(), CurveParams(begin=0, end=300_000))
    times, values = np.frombuffer(whole.time), np.frombuffer(whole.allocated_last)
    for points in range(1, 8):
        curve: MemoryCurve = build_curve(trace(), CurveParams(begin=0, end=300_000, points=points))
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
    assert build_curve(wild, CurveParams()).events == 2
    assert build_curve(wild, CurveParams(points=1)).peak_allocated is not None
    assert build_live(wild, LiveParams()).blocks == 1
    with pytest.raises(UsageError, match="range"):
        build_curve(wild, CurveParams(begin=-(2**70), end=2**70))


def test_nearly_full_memory_is_advised_on_whatever_the_card_is_called() -> None:
    card = [{"id": 3, "name": "MI300X", "totalGlobalMem": 1000}]
    events = memory("1 HIP0 a 950 950 999\n2 HIP0 a -950 0 999")
    payload = overview.build(draw(CALLS, *events, deviceProperties=card), NoParams())
    (advice,) = (each for each in payload.recommendations if each.id == "memory_limit")
    assert "GPU0" in advice.text and "95" in advice.text and advice.link == "memory"
    room = overview.build(draw(CALLS, *events, deviceProperties=[{**card[0], "totalGlobalMem": 2000}]), NoParams())
    assert all(each.id != "memory_limit" for each in room.recommendations)
