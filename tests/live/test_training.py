"""The handler in loops that train here and now."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import torch_tb_profiler as ttp

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    # torch says that each recording holds its own events only, which is what is wanted here.
    pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning"),
]


def train(on_trace_ready: Callable[[Any], None], repeat: int = 1) -> None:
    from torch.profiler import ProfilerActivity, profile, schedule

    model = torch.nn.Linear(64, 64)
    plan = schedule(wait=0, warmup=1, active=2, repeat=repeat)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=on_trace_ready) as prof:
        for _ in range(3 * repeat):
            model(torch.ones(32, 64)).sum().backward()
            prof.step()


def test_traces_are_written_where_the_tab_finds_them_with_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = ttp.handler(tmp_path / "log" / "run")
    train(handler, repeat=2)
    assert len(handler.files) == 2
    assert sorted(handler.files) == sorted((tmp_path / "log" / "run").iterdir())  # and nothing half written
    assert all(json.loads(gzip.decompress(file.read_bytes()))["traceEvents"] for file in handler.files)
    with ttp.open(str(tmp_path / "log")) as log:
        workers = log["run"].workers
        assert [len(spans) for spans in workers.values()] == [2]
        step = log["run"].summary(span=2).step
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[5].startswith(f"Trace written: {handler.files[1]} (")
    assert step is not None
    assert lines[7].startswith(("A step takes ", "A typical step takes "))
    assert lines[8].startswith(("Start here: ", "Nothing stands out: "))
    assert lines[9] == f"For details: tensorboard --logdir {tmp_path / 'log' / 'run'}"


def test_ranks_are_workers_and_rank_0_prints_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "3")
    train(ttp.handler(tmp_path))
    assert capsys.readouterr().err == ""
    with ttp.open(str(tmp_path)) as log:
        assert list(log.run().workers) == ["rank3"]


def test_a_failure_is_a_warning_and_training_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    handler = ttp.handler(tmp_path / "taken")
    with caplog.at_level(logging.WARNING, "torch_tb_profiler"):
        train(handler)
    assert handler.files == []
    assert "Could not write the trace to" in caplog.text

    monkeypatch.setattr("torch_tb_profiler.training.trace_ready._summarize", lambda path: 1 / 0)
    train(readable := ttp.handler(tmp_path / "run"))
    assert len(readable.files) == 1
    assert "was written but could not be summarized: division by zero" in caplog.text


def test_a_large_trace_is_not_read_in_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch_tb_profiler.training.trace_ready.SUMMARY_BYTES", 10)
    train(handler := ttp.handler(tmp_path, "trainer"))
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines[1]
        == f"It is too large to summarize during training; run: torch-tb-profiler summary {handler.files[0]}"
    )
    assert handler.files[0].name.startswith("trainer.")
