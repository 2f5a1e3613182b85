"""What the benchmarks measure on is a sound trace: all of the recording, several times, nothing in conflict.

That of a cached trace finds every answer that is made ahead, that of commands none; that of TensorBoard's start
has the plugin once, and once not.
"""

from __future__ import annotations

from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest

import torch_tb_profiler
from benchmarks.contestants import cached_tabs as cached_tabs_module
from benchmarks.contestants import tensorboard_start, uncached_tabs
from benchmarks.grow import read_recording, write_grown
from benchmarks.hangs import write_job
from benchmarks.timeline import grow, sample, write_grown_trace
from tests.support.traces import document, read_bytes
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import slice_mask
from torch_tb_profiler.model.steps import steps

ROOT = Path(__file__).parents[1]
SAMPLE = next((ROOT / "samples" / "ddp").glob("rank0*.gz"))

OTHERS = {"old_plugin": "torch-tb-profiler 0.4.3", "orjson_loads": "orjson", "handler": "torch"}
"""Those that need more than these tests do."""

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.stem not in OTHERS
)


@pytest.mark.parametrize("module", MODULES)
def test_a_benchmark_finds_what_it_imports(module: str) -> None:
    assert import_module(module).__doc__ or module.endswith("__init__")


def test_the_trace_of_the_timeline_is_written_whole(tmp_path: Path) -> None:
    small = sample()
    trace = grow(small, 2 * len(small))
    write_grown_trace(trace, tmp_path / "log" / "run" / "t.json")
    written = read_bytes((tmp_path / "log" / "run" / "t.json").read_bytes())
    assert len(trace) >= 2 * len(small)
    assert slice_mask(written).sum() == slice_mask(trace).sum() and steps(written).names == steps(trace).names


def test_a_grown_recording_is_the_recording_repeated() -> None:
    out = StringIO()
    once = read_bytes(SAMPLE.read_bytes())
    assert write_grown(read_recording(SAMPLE), 2.0, out) == 3
    grown = read_bytes(out.getvalue().encode())
    assert grown.health == once.health
    assert grown.metadata == once.metadata
    assert len(steps(grown).names) == len(set(steps(grown).names)) == 3 * len(steps(once).names)
    assert slice_mask(grown).sum() == 3 * slice_mask(once).sum() - 2  # the profiler's own mark stays single
    assert call_tree(grown).overlaps == 3 * call_tree(once).overlaps
    names = [{text for text in trace.strings if not text.startswith("ProfilerStep#")} for trace in (once, grown)]
    assert names[0] == names[1]


def test_the_drawn_job_hangs_for_one_rank(tmp_path: Path) -> None:
    write_job(tmp_path, 24, 14)
    with torch_tb_profiler.open(str(tmp_path)) as log:
        verdict = log.run().hangs().data.verdict
    assert (verdict.verdict, verdict.culprit_ranks) == ("not_joined", [12])
    assert len(verdict.waiting_ranks) == 23


def test_every_tab_of_a_cached_trace_is_timed_right_after_the_trace_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 9},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
        | {"args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "mm", "pid": 0, "tid": 7, "ts": 6, "dur": 5}
        | {"args": {"correlation": 1, "device": 0, "stream": 7}},
    ]
    (tmp_path / "worker.1.pt.trace.json").write_bytes(document(events))
    monkeypatch.setenv("TORCH_PROFILER_SMALL_FILE_BYTES", "16")  # a worker reads it, as it does a large one
    cached_tabs_module.main([str(tmp_path)])
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()[2:]]
    assert {"overview", "operators", "kernels", "trace", "idle", "critical_path"} <= {*rows}
    assert "operators, filtered at once" in rows and "derived behind both" in rows


def test_tensorboard_is_started_with_and_without_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    tensorboard_start.main(["--rounds", "1"])
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == ["without", "with", "later by"]


def test_no_visit_of_a_tab_by_command_profits_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    caches: list[tuple[str, list[str]]] = []
    visit = uncached_tabs.visit

    def record(tree: str, cache: Path, tab: str, file: str) -> uncached_tabs.Visit:
        caches.append((tab, [each.name for each in cache.glob("*.operators.json")]))
        return visit(tree, cache, tab, file)

    monkeypatch.setenv("TORCH_PROFILER_SMALL_FILE_BYTES", "16")  # so that it is cached, as a large one is
    monkeypatch.setattr(uncached_tabs, "visit", record)
    monkeypatch.setattr(uncached_tabs, "TABS", ("operators", "operators"))
    uncached_tabs.main([str(SAMPLE), "--rounds", "1"])
    assert caches == [("overview", []), ("overview", []), ("operators", []), ("operators", [])]
    cells = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[3:]]
    assert [row[0].strip() for row in cells] == ["again", "operators", "operators"]
    assert all(float(seconds) > 0 for row in cells for cell in row[1:3] for seconds in cell.split(","))
