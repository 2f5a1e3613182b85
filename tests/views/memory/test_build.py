from __future__ import annotations

import numpy as np

from tests.support.memory_events import memory
from tests.support.memory_traces import CALLS, EVENTS, three_steps
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.memory.blocks import EventsParams, build_events
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.curve import CurveParams, build_curve
from torch_tb_profiler.views.memory.live import LiveParams, build_live


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
    curve = build_curve(old, CurveParams())
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
