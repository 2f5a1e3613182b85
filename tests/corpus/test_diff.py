"""Pairs of real recordings tell the story that is known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.corpus import real_traces
from tests.support.diffs import values
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.build import TAB, build, build_part
from torch_tb_profiler.views.diff.payload import DiffParams, DiffPartParams, DiffPayload

pytestmark = real_traces.MARKS


def load(traces: Path, run: str, which: int = 0) -> Trace:
    return real_traces.read(sorted((traces / run).iterdir())[which])


def bars(payload: DiffPayload, which: int = 0) -> dict[str, Any]:
    return {bar.name: bar for bar in payload.waterfalls[which].bars}


@pytest.fixture
def traces(corpus: Path) -> Path:
    return corpus / "traces"


def test_two_spans_of_an_unchanged_run_are_no_change(traces: Path) -> None:
    """Their steps differ beyond all scatter (22.7 ms of 178 ms), and the program is the same."""
    base, candidate = (load(traces, "kineto2021_resnet50_v100_nw0", which) for which in (0, 1))
    payload = build(TracePair([base], [candidate], one_run=True), DiffParams())
    assert payload.step.verdict == "cannot_tell"
    assert (payload.step.delta_ns or 0) / 1e6 == pytest.approx(-22.7, abs=0.05)
    assert payload.step.high_ns is not None and payload.step.high_ns < 0
    assert "In this recording," in plain(payload.headline)
    assert not {verdict for _, verdict in values(msgspec.to_builtins(payload), "verdict")} & {"slower", "faster"}
    by = bars(payload)
    assert round(by["dataloader"].delta_ns / 1e6, 1) == -23.8
    assert "data loading" in plain(payload.explanation[0])
    assert {part.status for part in payload.level.parts} == {"matched"}


def test_spans_of_unchanged_runs_differ_nowhere_beyond_the_claimed_rate(traces: Path) -> None:
    """Every way to compare two spans of a run with two others: the step changes in one of twenty at most."""
    alarms = rows = compared = 0
    for run, count in (("dtu_mac_7span", 7), ("part_a100_bs128_3span", 3)):
        spans = [load(traces, run, which) for which in range(count)]
        for first in range(count - 3):
            pair = TracePair(spans[first : first + 2], spans[first + 2 : first + 4], one_run=True)
            payload = build(pair, DiffParams())
            compared += 1
            alarms += payload.step.verdict in ("slower", "faster")
            rows += sum(
                row.host_self.significant or row.device_self.significant for row in payload.level.operators
            )
        for one in spans[1:]:
            payload = build(TracePair(spans[:1], [one], one_run=True), DiffParams())
            compared += 1
            alarms += payload.step.verdict in ("slower", "faster")
    assert compared == 12
    assert alarms == 0
    assert rows == 0


def test_the_samples_before_and_after_their_fix(samples: Path) -> None:
    base, candidate = (load(samples, name) for name in ("data_loading_slow", "data_loading_fixed"))
    payload = build(TracePair([base], [candidate]), DiffParams())
    assert payload.step.verdict == "faster"
    assert bars(payload)["dataloader"].verdict == "faster"
    status = {row.name: row.status for row in payload.level.operators}
    assert status["aten::avg_pool2d"] == "moved_out"  # the processes that load do it, and are not recorded
    assert "aten::avg_pool2d (" in plain(payload.explanation[-1])
    assert "now in processes that aren't recorded" in plain(payload.explanation[-1])


def test_backward_meets_backward_across_generations(traces: Path) -> None:
    base, candidate = load(traces, "kineto2021_resnet50_nw0_v1"), load(traces, "kineto2021_resnet50_v100_nw0")
    payload = build(TracePair([base], [candidate]), DiffParams())
    backward = next(part for part in payload.level.parts if part.kind == "backward")
    assert (backward.device.base_ns or 0) / 1e6 == pytest.approx(65, abs=1)
    assert (backward.device.candidate_ns or 0) / 1e6 == pytest.approx(64, abs=1)


def test_slow_communication_is_named(traces: Path) -> None:
    base, candidate = load(traces, "torchrec_sst_4rank_b"), load(traces, "torchrec_sst_4rank_e")
    payload = build(TracePair([base], [candidate]), DiffParams())
    assert payload.step.verdict == "faster"
    assert bars(payload)["communication"].verdict == "faster"
    assert payload.communication.exposed.delta_ns == pytest.approx(bars(payload)["communication"].delta_ns, abs=2)
    assert bars(payload)["kernel"].verdict in ("unchanged", "cannot_tell")


def test_other_hardware_meets_at_common_operators(traces: Path) -> None:
    base, candidate = load(traces, "dtu_mac_resnet18"), load(traces, "dtu_win_resnet18")
    payload = build(TracePair([base], [candidate]), DiffParams())
    level = build_part(TracePair([base], [candidate]), DiffPartParams(path="0"))
    assert "aten::conv2d" in {part.name for part in level.parts if part.status == "matched"}
    rows = {row.name: row.status for row in payload.level.operators}
    assert (rows["aten::_slow_conv2d_forward"], rows["aten::mkldnn_convolution"]) == ("removed", "added")
    assert payload.step.verdict == "cannot_tell"


def test_every_recording_against_itself_differs_in_nothing(traces: Path) -> None:
    seen = 0
    for folder in sorted(traces.iterdir()):
        files = sorted(folder.iterdir()) if folder.is_dir() and not folder.name.startswith("malformed") else []
        for file in files[:1]:
            if file.stat().st_size > 3_000_000:
                continue
            trace = real_traces.read(file)
            if TAB.unavailable(trace) is not None:
                continue
            payload = build(TracePair([trace], [trace]), DiffParams())
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
