"""Pairs of real recordings tell the story that is known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.traces import read_bytes
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.build import TAB, build
from torch_tb_profiler.views.diff.level import build_part
from torch_tb_profiler.views.diff.payload import DiffParams, DiffPartParams, DiffPayload

pytestmark = pytest.mark.slow


def load(traces: Path, run: str, which: int = 0) -> Trace:
    return read_bytes(sorted((traces / run).iterdir())[which].read_bytes())


def bars(payload: DiffPayload, which: int = 0) -> dict[str, Any]:
    return {bar.name: bar for bar in payload.waterfalls[which].bars}


@pytest.fixture
def traces(corpus: Path) -> Path:
    return corpus / "traces"


def test_data_loading_explains_what_the_second_span_gains(traces: Path) -> None:
    base, candidate = (load(traces, "kineto2021_resnet50_v100_nw0", which) for which in (0, 1))
    payload = build(candidate, base, DiffParams())
    assert payload.step.verdict == "faster"
    assert (payload.step.delta_ns or 0) / 1e6 == pytest.approx(-22.7, abs=0.05)
    by = bars(payload)
    assert (by["dataloader"].verdict, round(by["dataloader"].delta_ns / 1e6, 1)) == ("faster", -23.8)
    assert (by["memcpy"].verdict, round(by["memcpy"].delta_ns / 1e6, 2)) == ("faster", -0.18)
    assert {by[name].verdict for name in ("kernel", "cpu_exec", "runtime", "other")} == {"noise"}
    assert "data loading" in plain(payload.explanation[0])
    kinds = {part.kind: part for part in payload.level.parts}
    assert kinds["dataloader"].host.verdict == "faster"
    assert {part.status for part in payload.level.parts} == {"matched"}


def test_the_samples_before_and_after_their_fix(samples: Path) -> None:
    base, candidate = (load(samples, name) for name in ("data_loading_slow", "data_loading_fixed"))
    payload = build(candidate, base, DiffParams())
    assert bars(payload)["dataloader"].verdict == "faster"
    gone = {
        row.name
        for row in payload.level.operators
        if row.status == "removed" and row.host_self.verdict == "faster"
    }
    assert "aten::avg_pool2d" in gone  # now done by the processes that load


def test_backward_meets_backward_across_generations(traces: Path) -> None:
    base, candidate = load(traces, "kineto2021_resnet50_nw0_v1"), load(traces, "kineto2021_resnet50_v100_nw0")
    payload = build(candidate, base, DiffParams())
    backward = next(part for part in payload.level.parts if part.kind == "backward")
    assert (backward.device.base_ns or 0) / 1e6 == pytest.approx(65, abs=1)
    assert (backward.device.candidate_ns or 0) / 1e6 == pytest.approx(64, abs=1)


def test_slow_communication_is_named(traces: Path) -> None:
    base, candidate = load(traces, "torchrec_sst_4rank_b"), load(traces, "torchrec_sst_4rank_e")
    payload = build(candidate, base, DiffParams())
    assert payload.step.verdict == "faster"
    assert bars(payload)["communication"].verdict == "faster"
    assert payload.communication.exposed.delta_ns == pytest.approx(bars(payload)["communication"].delta_ns, abs=2)
    assert bars(payload)["kernel"].verdict == "noise"


def test_other_hardware_meets_at_common_operators(traces: Path) -> None:
    base, candidate = load(traces, "dtu_mac_resnet18"), load(traces, "dtu_win_resnet18")
    payload = build(candidate, base, DiffParams())
    level = build_part(candidate, base, DiffPartParams(path="0"))
    assert "aten::conv2d" in {part.name for part in level.parts if part.status == "matched"}
    rows = {row.name: row.status for row in payload.level.operators}
    assert (rows["aten::_slow_conv2d_forward"], rows["aten::mkldnn_convolution"]) == ("removed", "added")
    assert payload.step.verdict == "unknown"


def test_every_recording_against_itself_differs_in_nothing(traces: Path) -> None:
    seen = 0
    for folder in sorted(traces.iterdir()):
        files = sorted(folder.iterdir()) if folder.is_dir() and not folder.name.startswith("malformed") else []
        for file in files[:1]:
            if file.stat().st_size > 3_000_000:
                continue
            trace = read_bytes(file.read_bytes())
            if TAB.unavailable(trace) is not None:
                continue
            payload = build(read_bytes(file.read_bytes()), trace, DiffParams())
            nonzero = [value for value in _deltas(msgspec.to_builtins(payload)) if value]
            assert not nonzero, file
            assert {row.status for row in payload.level.operators} <= {"matched"}
            fall = payload.waterfalls[0]
            assert sum(bar.delta_ns for bar in fall.bars) == 0
            seen += 1
    assert seen > 40


def _deltas(value: Any) -> Any:
    if isinstance(value, dict):
        for key, each in value.items():
            if key.startswith("delta_"):
                yield each
            yield from _deltas(each)
    elif isinstance(value, list):
        for each in value:
            yield from _deltas(each)
