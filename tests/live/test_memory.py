"""Memory of programs that run here and now: sizes that are known, and a leak planted on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import read_bytes
from torch_tb_profiler.ingest.memory.timeline import read_timeline
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.tables import (
    EventsParams,
    LiveParams,
    MemoryOperatorsParams,
    build_events,
    build_live,
    build_operators,
)
from torch_tb_profiler.views.memory.timeline import TimelineParams, build_timeline

torch: Any = pytest.importorskip("torch")

# What torch warns of is not ours to mend.
pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MIB = 2**20
FLOATS = MIB // 4


def record(tmp_path: Path, step: Any, steps: int, **options: Any) -> Trace:
    path = tmp_path / "trace.json"
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
        profile_memory=True,
        **options,
    ) as prof:
        for _ in range(1 + steps):
            step()
            prof.step()
    return read_bytes(path.read_bytes())


def test_known_allocations(tmp_path: Path) -> None:
    remaining: list[Any] = []

    def step() -> None:
        remaining.append(torch.empty(8 * FLOATS))
        torch.zeros(3 * FLOATS).add_(1)
        del remaining[:]

    trace = record(tmp_path, step, 1)
    payload = build(trace, NoParams())
    (cpu,) = payload.devices
    assert cpu.name == "CPU" and payload.has_addresses
    blocks = build_events(trace, EventsParams(sort="allocated", descending=False)).rows
    large = [(row.operator, row.size_bytes, row.state) for row in blocks if row.size_bytes >= MIB]
    assert large == [
        ("aten::empty", 8 * MIB, "released"),
        ("aten::zeros (aten::empty)", 3 * MIB, "released"),
    ]
    assert cpu.peak_allocated is not None and 11 * MIB <= cpu.peak_allocated.bytes < 11 * MIB + 4096
    live = build_live(trace, LiveParams())
    assert [(row.name, row.bytes) for row in live.rows if row.bytes >= MIB] == [
        ("aten::empty", 8 * MIB),
        ("aten::zeros (aten::empty)", 3 * MIB),
    ]
    rows = {row.name: row for row in build_operators(trace, MemoryOperatorsParams()).rows}
    assert rows["aten::zeros"].allocation_size_bytes == 3 * MIB
    assert rows["aten::zeros"].self_allocation_size_bytes == 0
    assert rows["aten::empty"].self_allocation_size_bytes == 11 * MIB


def test_an_exported_timeline(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
    path = tmp_path / "timeline.raw.json.gz"
    with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        model(torch.randn(64, 512)).sum().backward()
    prof.export_memory_timeline(str(path), device="cpu")
    with path.open("rb") as stream:
        timeline = build_timeline(read_timeline(stream), TimelineParams())
    peak = dict(zip(timeline.categories, timeline.peak_sizes, strict=True))
    assert peak["parameter"] == sum(p.numel() * 4 for p in model.parameters())
    assert {"activation", "gradient"} <= peak.keys()
    assert timeline.peak_bytes == sum(peak.values())
    assert timeline.begin_ns <= timeline.peak_time_ns <= timeline.end_ns < timeline.begin_ns + 60 * 10**9


class Leaky(torch.nn.Module):
    """Keeps an activation of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.kept: list[Any] = []

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        self.kept.append(torch.exp(y.detach()))
        return y


def train(model: Any) -> Any:
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(1024, 256)).square().mean().backward()
        optimizer.step()

    return step


def test_the_planted_leak_is_named(tmp_path: Path) -> None:
    trace = record(tmp_path, train(Leaky()), 5, with_stack=True)
    (growth,) = build(trace, NoParams()).growth
    assert growth.growing
    assert growth.per_step_bytes == pytest.approx(MIB, rel=0.01)
    holder = growth.holders[0]
    assert (holder.name, holder.growth_bytes, holder.blocks) == ("aten::exp", 5 * MIB, 5)
    assert holder.module is not None and holder.module.startswith("Leaky")
    here = Path(__file__).name
    assert any(frame.function == "forward" and here in (frame.file or "") for frame in holder.frames)


def test_training_without_a_leak_reports_none(tmp_path: Path) -> None:
    trace = record(tmp_path, train(torch.nn.Linear(256, 256)), 5)
    (growth,) = build(trace, NoParams()).growth
    assert len(growth.live_bytes) == 5 and not growth.growing and growth.holders == []
