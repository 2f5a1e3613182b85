"""The samples with a known truth: the simulated job is what its script writes, and the product says the truth."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import torch_tb_profiler
from torch_tb_profiler.session import Session, open_session
from torch_tb_profiler.views._shared.text import plain

RUN = "simulated_8_h100_late_rank"
DELAY_MS = 12
RANKS, LATE = 8, 5
pytestmark = pytest.mark.slow


def simulate(logdir: Path, *arguments: str) -> Path:
    script = Path(__file__).resolve().parent.parent / "examples" / "simulate_job.py"
    subprocess.run(
        [sys.executable, str(script), "--logdir", str(logdir), *arguments], check=True, capture_output=True
    )
    return logdir / RUN


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return document


def ask(session: Session, slug: str, worker: str | None = None) -> dict[str, Any]:
    answer = session.view(slug, run=RUN, worker=worker, wait=True)
    assert answer.payload is not None, answer.state
    payload: dict[str, Any] = json.loads(answer.payload)
    return payload


def test_the_sample_is_what_the_script_writes_and_is_small(tmp_path: Path, samples: Path) -> None:
    written, expected = sorted(simulate(tmp_path).iterdir()), sorted((samples / RUN).iterdir())
    assert [path.name for path in expected] == [path.name for path in written]
    assert len(expected) == RANKS
    for one, other in zip(expected, written, strict=True):
        document = read(one)
        assert document == read(other), one.name
        assert "simulated" in document
    assert sum(path.stat().st_size for path in expected) < 3e6


def test_the_late_rank_is_named_with_its_cost_and_cause(tmp_path: Path, samples: Path) -> None:
    simulate(tmp_path / "even", "--delay", "0")
    with open_session(str(tmp_path / "even")) as even, open_session(str(samples)) as late:
        verdict = ask(late, "distributed")["verdict"]
        assert (verdict["kind"], verdict["rank"], verdict["cause"]) == ("straggler", LATE, "data_loading")
        steps = [ask(session, "overview", "rank0")["average"]["duration_ns"] for session in (late, even)]
        assert verdict["cost_ns"] == pytest.approx(steps[0] - steps[1], rel=0.1)
        assert verdict["cost_ns"] == pytest.approx(DELAY_MS * 1e6, rel=0.1)
        assert ask(even, "distributed")["verdict"]["kind"] == "balanced"


def test_the_path_of_the_job_goes_through_the_loading_of_the_late_rank(samples: Path) -> None:
    with open_session(str(samples)) as session:
        path, verdict = ask(session, "critical_path/ranks"), ask(session, "distributed")["verdict"]
    first = path["ranks"][0]
    times = {each["name"]: each["time_ns"] for each in first["categories"]}
    assert (first["rank"], path["late_ranks"]) == (LATE, [f"rank{LATE}"])
    assert path["late_gain_ns"] == verdict["cost_ns"]
    assert times["data_loading"] == pytest.approx(DELAY_MS * 1e6, rel=0.1)
    # Every step of the path passes through that rank.
    assert {stay["step"] for stay in path["stays"] if stay["rank"] == LATE} == {
        str(10 + step) for step in range(8)
    }
    assert sum(stay["duration_ns"] for stay in path["stays"]) == path["duration_ns"] * path["steps"]


def test_the_replay_explains_what_the_model_computed(samples: Path) -> None:
    with open_session(str(samples)) as session:
        assert ask(session, "critical_path", "rank0")["explained"] > 0.99
        assert [one["severity"] for one in ask(session, "overview", "rank0")["health"]] == []


def test_simulated_causes_bring_what_the_replay_foresees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = Path(__file__).resolve().parent.parent / "examples"
    monkeypatch.syspath_prepend(str(examples))
    script = [sys.executable, str(examples / "simulate_causes.py"), "--logdir", str(tmp_path)]
    subprocess.run(script, check=True, capture_output=True)
    causes, predictions = import_module("simulate_causes"), import_module("predictions")
    rows = {row["name"]: row for row in predictions.predict(tmp_path, causes.CAUSES)}
    for name in ("sleep", "item", "cuda_free"):
        row = rows[name]
        assert row["happened_ns"] < 0.96 * row["step_ns"], name
        assert row["foreseen_ns"] == pytest.approx(row["happened_ns"], rel=0.01), name
    # Without the launches, the small kernels still run.
    small = rows["small_kernels"]
    kernels_ns = causes.SMALL_KERNELS * 3_000
    assert small["foreseen_ns"] == pytest.approx(small["happened_ns"] + kernels_ns, rel=0.01)
    assert rows["sleep"]["largest"] == "wait"


def test_the_sample_of_graph_replays_is_what_its_script_writes_and_leads_to_the_capture(
    tmp_path: Path, samples: Path
) -> None:
    script = Path(__file__).resolve().parent.parent / "examples" / "simulate_graph_replay.py"
    subprocess.run([sys.executable, str(script), "--logdir", str(tmp_path)], check=True, capture_output=True)
    run = "simulated_graph_replay"
    for written in (path for path in (tmp_path / run).rglob("*") if path.is_file()):
        expected = samples / written.relative_to(tmp_path)
        assert read(expected) == read(written) and "simulated" in read(expected)
    with torch_tb_profiler.open(str(samples)) as log:
        payload = log[run].origins().data
        summary = log[run].summary()
    top = summary.replayed[0]
    assert (top.name, top.calls) == ("aten::linear", None) and 0.5 < (top.share or 0) < 0.7
    assert summary.health.warnings == 0
    (capture,) = payload.captures
    assert (capture.size, capture.launches, capture.replays, payload.replays) == (16, 80, 14, 16)
    assert payload.known_ns["line"] == payload.kernel_ns - payload.reasons[0].ns
    assert payload.reasons[0].kernels == 2 * 16  # of the graph that was not captured


def test_the_sample_that_ran_out_of_memory_is_what_its_script_writes_and_says_why(
    tmp_path: Path, samples: Path
) -> None:
    script = Path(__file__).resolve().parent.parent / "examples" / "simulate_out_of_memory.py"
    subprocess.run([sys.executable, str(script), "--logdir", str(tmp_path)], check=True, capture_output=True)
    run = "simulated_out_of_memory"
    written, expected = sorted((tmp_path / run).iterdir()), sorted((samples / run).iterdir())
    assert [path.name for path in expected] == [path.name for path in written]
    for one, other in zip(expected, written, strict=True):
        content = gzip.decompress(one.read_bytes())
        assert content == gzip.decompress(other.read_bytes()) and b"simulated" in content
    assert sum(path.stat().st_size for path in expected) < 1e6
    with open_session(str(samples)) as session:
        found = json.loads(session.view("memory/snapshot", run=run, worker="rank2", wait=True).payload or b"")
        sound = json.loads(session.view("memory/snapshot", run=run, worker="rank0", wait=True).payload or b"")
    (oom,) = found["oom"]
    assert oom["cause"] == "fragmentation" and oom["requested"] > oom["largest_free"]
    assert oom["in_use"] + oom["unused"] == oom["reserved"]
    assert oom["reserved"] + oom["device_free"] + (507 << 20) == 81_079 << 20  # the context and the device
    (leak,) = found["growth"]["leaks"]
    assert leak["frames"][0]["file"].endswith("evaluate.py") and leak["bytes"] == found["growth"]["leaked_bytes"]
    assert sound["oom"] == [] and sound["growth"]["leaks"] == []


def test_the_compiled_sample_leads_to_the_lines_of_its_script(samples: Path) -> None:
    script = Path(__file__).resolve().parent.parent / "examples" / "train_compiled.py"
    source = script.read_text("utf-8").splitlines()
    with torch_tb_profiler.open(str(samples)) as log:
        rows = log["transformer_compiled"].origins().data.rows
    lines = {row.line for row in rows if row.line is not None}
    texts = {source[int(line.rpartition(":")[2]) - 1].strip() for line in lines}
    assert {line.rpartition(":")[0] for line in lines} == {"examples/train_compiled.py"}
    assert texts == {
        "value, gate = self.up(self.norm(x)).chunk(2, dim=-1)",
        "return x + self.down(value * torch.sigmoid(gate))",
    }


def test_the_served_sample_is_an_engine_whose_prefills_hold_up_decodes(samples: Path) -> None:
    spans = [json.loads(line) for line in (samples / "serving" / "otlp.jsonl").read_text("utf-8").splitlines()]
    with torch_tb_profiler.open(str(samples)) as log:
        payload = log["serving"].serving().data
    assert payload.engine.name == "vLLM" and payload.what_holds_it_back == "prefill_blocks_decode"
    assert {row.phase for row in payload.phases} == {"prefill", "decode", "mixed"}
    assert payload.rates.arrivals is not None and 0 < payload.rates.arrivals <= len(spans)
    assert payload.rates.time_to_first_token_ns is not None and payload.rates.queue_median_ns is not None


def test_the_hung_job_among_the_samples_names_its_culprit_and_where_it_is(samples: Path) -> None:
    lines = (Path(__file__).resolve().parent.parent / "examples" / "hang.py").read_text("utf-8").splitlines()
    with torch_tb_profiler.open(str(samples)) as log:
        payload = log["hang_gloo"].hangs().data
    verdict = payload.verdict
    assert (verdict.verdict, verdict.culprit_ranks, verdict.waiting_ranks) == ("not_joined", [2], [0, 1, 3])
    assert verdict.line is not None and "dist.all_reduce(" in lines[int(verdict.line.rpartition(":")[2]) - 1]
    # Whatever times its files have: the dumps hold their own.
    assert plain(payload.headline).endswith("ranks 0, 1 and 3 have waited 10.0 s for it.")
    assert any("pending in two dumps, 5.04 s apart" in fact.text for fact in payload.ruled_out)
    culprit = payload.stacks[-1]
    own = next(frame for frame in culprit.frames if not frame.library)
    assert culprit.ranks == [2] and lines[own.line - 1].strip() == "return batches.get()"
