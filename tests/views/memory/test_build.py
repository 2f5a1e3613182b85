from __future__ import annotations

import numpy as np

from tests.support.memory_traces import CALLS, EVENTS, STEPS, five_steps, memory, three_steps
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.curve import MemoryCurveParams, build_curve
from torch_tb_profiler.views.memory.tables import EventsParams, LiveParams, build_events, build_live


def test_devices_with_exact_peaks() -> None:
    payload = build(three_steps(), NoParams())
    cpu, gpu = payload.devices
    assert payload.default_device == "GPU 0"
    assert (gpu.name, gpu.hardware, gpu.capacity_bytes) == ("GPU 0", "A100", 40 * 2**30)
    assert gpu.peak_allocated is not None and gpu.peak_reserved is not None
    assert (gpu.peak_allocated.bytes, gpu.peak_reserved.bytes) == (2612, 8192)
    assert gpu.peak_allocated.time_ns == 120_000
    assert gpu.fragmentation is not None
    assert (gpu.fragmentation.bytes, gpu.fragmentation.time_ns) == (8192 - 1612, 150_000)
    assert (gpu.start_bytes, gpu.end_bytes) == (1000, 1912)
    assert (gpu.events, gpu.allocations, gpu.releases, gpu.unreleased, gpu.older) == (8, 5, 3, 3, 1)
    assert gpu.allocated_in_trace_bytes == 512 + 100 + 300 + 1000 + 300
    assert cpu.peak_allocated is not None and cpu.peak_reserved is not None
    assert (cpu.peak_allocated.bytes, cpu.peak_reserved.bytes, cpu.fragmentation) == (64, 0, None)
    assert payload.reasons.keys() >= {"capacity_bytes"}


def test_allocations_that_fail_are_listed() -> None:
    (failure,) = memory("115 GPU0 - 4096 1312 9000")
    failure["name"] = "[OutOfMemory]"
    (failed,) = build(draw(CALLS, *memory(EVENTS), failure), NoParams()).out_of_memory
    assert (failed.device, failed.bytes, failed.allocated_bytes, failed.reserved_bytes) == (
        "GPU 0",
        4096,
        1312,
        9000,
    )
    assert (failed.operator, failed.time_ns) == ("aten::relu", 115_000)
    assert build(three_steps(), NoParams()).out_of_memory == []


def test_a_trace_without_totals_shows_the_change() -> None:
    old = draw(CALLS, *memory("20 GPU0 - 512 - -\n30 GPU0 - -112 - -"))
    (device,) = build(old, NoParams()).devices
    assert device.relative and device.peak_allocated is None and device.unreleased is None
    curve = build_curve(old, MemoryCurveParams())
    assert (
        curve.relative
        and np.frombuffer(curve.allocated_last).tolist() == [512, 400]
        and curve.reserved_last == b""
    )
    reasons = build(old, NoParams()).reasons
    assert {"peak_allocated", "unreleased", "fragmentation"} <= reasons.keys()
    assert "rows" in build_live(old, LiveParams()).reasons
    (row,) = build_events(old, EventsParams()).rows
    assert (row.state, row.released_ns, row.size_bytes) == ("unknown", None, 512)


def test_growth_names_the_operator_that_holds_it() -> None:
    (gpu,) = build(five_steps(), NoParams()).growth
    assert gpu.steps == ["1", "2", "3", "4", "5"]
    assert gpu.live_bytes == [0, 300, 600, 900, 1200]
    assert (gpu.growing, gpu.per_step_bytes) == (True, 300)
    (holder,) = gpu.holders
    assert (holder.name, holder.growth_bytes, holder.step_bytes, holder.blocks) == (
        "aten::relu", 1200, [0, 300, 600, 900, 1200], 4)  # fmt: skip
    assert [frame.text for frame in holder.frames] == ["train.py(7): step"]


def test_memory_that_comes_back_is_no_leak() -> None:
    steady = draw(CALLS, *memory("20 GPU0 a 512 512 0\n150 GPU0 b 8 520 0\n250 GPU0 b -8 512 0"))
    (gpu,) = build(steady, NoParams()).growth
    assert (gpu.live_bytes, gpu.growing, gpu.holders) == ([512, 520, 512], False, [])


def test_two_steps_tell_no_growth_and_the_payload_says_so() -> None:
    short = draw("host user_annotation ProfilerStep#1 0 100\nhost user_annotation ProfilerStep#2 100 100",
                 *memory("20 GPU0 a 512 512 0\n120 GPU0 b 8 520 0"))  # fmt: skip
    payload = build(short, NoParams())
    assert not payload.growth[0].growing and "4 steps" in plain(payload.reasons["growth"])


def test_unknown_growth_has_a_reason() -> None:
    payload = build(draw(STEPS, *memory("20 GPU0 a 10 - -\n120 GPU0 b 10 20 0")), NoParams())
    assert payload.growth == [] and "no totals" in plain(payload.reasons["growth"])
    assert "addresses" in plain(build(draw(STEPS, *memory("20 GPU0 - 10 10 0")), NoParams()).reasons["growth"])
    assert "growth" not in build(five_steps(), NoParams()).reasons
