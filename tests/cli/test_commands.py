from __future__ import annotations

import csv
import io
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.snapshots import snapshot
from tests.support.traces import document
from tests.support.waiting import PATIENCE
from torch_tb_profiler.cli import main

STEP = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1}
OP = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    events = [{**STEP, "name": f"ProfilerStep#{i}", "ts": 100 * i, "dur": 100} for i in range(3)]
    events += [{**OP, "ts": 100 * i + 10, "dur": 20} for i in range(3)]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.1.pt.trace.json").write_bytes(document(events))
    (tmp_path / "run" / "w.2.pt.trace.json").write_bytes(document(events[:1] + events[3:]))
    return tmp_path


def test_view_prints_the_payload_alone_on_stdout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "overview", str(folder)]) == 0
    out = capsys.readouterr()
    assert [step["name"] for step in json.loads(out.out)["steps"]] == ["0", "1", "2"]
    assert out.err == ""


def test_view_selects_and_takes_a_single_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "overview", str(folder), "--run", "run", "--worker", "w", "--span", "2"]) == 0
    chosen = capsys.readouterr().out
    assert main(["view", "overview", str(folder / "run" / "w.2.pt.trace.json")]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == json.loads(chosen)["steps"]


def test_csv_and_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "overview", str(folder), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["duration_ns"] for row in rows] == ["100000"] * 3
    assert main(["view", "overview", str(folder), "--format", "table"]) == 0
    table = capsys.readouterr().out
    assert "100 µs" in table
    assert "largest part of an average step: " in table and '"link"' not in table


def test_a_table_calls_kernels_by_their_short_names_and_programs_get_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, short = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >",
        "fill fp32, vec4",
    )
    kernel = {"ph": "X", "cat": "kernel", "name": raw, "pid": 0, "tid": 7, "ts": 0, "dur": 5}
    (tmp_path / "w.pt.trace.json").write_bytes(document([kernel]))
    printed = {}
    for form in (["table"], ["table", "--wide"], ["csv"], ["json"]):
        assert main(["view", "kernels", str(tmp_path), "--format", *form]) == 0
        printed[" ".join(form)] = capsys.readouterr().out
    assert {form: (short in text, raw in text) for form, text in printed.items()} == {
        "table": (True, False),
        "table --wide": (True, True),
        "csv": (True, True),
        "json": (True, True),
    }


def test_a_tree_is_printed_line_by_line(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "modules", str(samples / "transformer"), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["depth"], row["name"]) for row in rows[:4]] == [
        ("0", "SmallTransformer_0"),
        ("1", "Embedding_0"),
        ("1", "TransformerEncoder_0"),
        ("2", "TransformerEncoderLayer_0"),
    ]
    assert len(rows) == 31 and "children" not in rows[0]


def test_list_and_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(folder), "--format", "json"]) == 0
    assert [row["span"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["1", "2"]
    assert main(["check", str(folder)]) == 0
    assert capsys.readouterr().out.count("ready") == 2
    (folder / "run" / "x.pt.trace.json").write_bytes(b"[")
    assert main(["check", str(folder), "--format", "json"]) == 1
    states = {file["file"]: file["state"] for file in json.loads(capsys.readouterr().out)["files"]}
    assert states["run/x.pt.trace.json"] == "failed"


def test_the_ranks_in_a_merged_file_are_listed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = [
        {"ph": "X", "cat": cat, "name": cat, "pid": rank, "tid": tid, "ts": 0, "dur": 5 + rank}
        for rank in (0, 1)
        for tid, cat in enumerate(("cpu_op", "kernel"))
    ]
    (tmp_path / "node0.json").write_bytes(document(work))
    (tmp_path / "node1.json").write_bytes(b"[")
    assert main(["list", str(tmp_path), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    listed = [(row["worker"], row["rank"]) for row in rows]
    assert listed == [("node0/rank0", 0), ("node0/rank1", 1), ("node1", None)]
    for row in rows[:2]:
        assert main(["view", "kernels", str(tmp_path), "--worker", row["worker"]]) == 0
        assert json.loads(capsys.readouterr().out)["total_ns"] == 5_000 + 1_000 * row["rank"]
    assert main(["view", "kernels", str(tmp_path), "--worker", "node0/rank2"]) == 2
    assert "node0/rank0, node0/rank1" in capsys.readouterr().err


def test_memory_files_are_listed_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run" / "s.pickle").write_bytes(pickle.dumps(snapshot()))
    assert main(["list", str(folder), "--format", "json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["memory_files"]
    assert (file["file"], file["name"], file["kind"]) == (0, "s.pickle", "snapshot")
    assert main(["view", "memory/snapshot", str(folder), "--param", "file=0"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"][0]["reserved_bytes"] == 4096
    (folder / "run" / "s.pickle").write_bytes(b"cos\nsystem\n.")
    assert main(["view", "memory/snapshot", str(folder)]) == 1
    assert "refused" in capsys.readouterr().err


def test_health_notes_alone_are_no_failure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "run" / "w.1.pt.trace.json"
    file.write_bytes(file.read_bytes()[:-20])
    assert main(["view", "overview", str(file)]) == 0
    assert [note["kind"] for note in json.loads(capsys.readouterr().out)["health"]] == ["truncated"]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["view", "overview", "{folder}/nothing"], 1, "no such folder"),
        (["view", "overview", "{folder}", "--run", "x"], 2, "runs: run"),
        (["view", "nothing", "{folder}"], 2, "views: overview"),
        (["view", "overview", "{folder}", "--param", "a=1"], 2, "unknown parameter"),
        (["view", "overview", "{folder}", "--param", "a"], 2, "KEY=VALUE"),
        (["serve", "{folder}/nothing"], 2, "no such folder"),
        ([], 2, "usage"),
    ],
)
def test_exit_codes(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, expected: str
) -> None:
    assert main([argument.format(folder=folder) for argument in arguments]) == code
    out = capsys.readouterr()
    assert out.out == ""
    assert expected in out.err


def test_the_program_and_a_reader_that_leaves(folder: Path) -> None:
    command = f"{sys.executable} -m torch_tb_profiler view overview {folder} | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "{"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("LOG_LEVEL", "'x' is not a log level"),
        ("MEMORY_BYTES", "TORCH_PROFILER_MEMORY_BYTES='x' is not a whole number"),
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error_in_use(
    variable: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"TORCH_PROFILER_{variable}", "x")
    assert main(["list", str(folder)]) == 2
    assert message in capsys.readouterr().err


def test_slice_writes_a_trace_that_can_be_read_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "step.json.gz"
    assert main(["slice", str(folder), "--step", "1", "--category", "cpu_op", "-o", str(out)]) == 0
    assert main(["view", "trace", str(out)]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert (payload["counts"]["slices"], payload["trace_start_ns"]) == (1, 110_000)
    assert main(["slice", str(folder), "--from", "0us", "--to", "0.15ms", "-o", "-"]) == 0
    events = json.loads(capsys.readouterr().out)["traceEvents"]
    assert [event["ts"] for event in events] == [0, 100, 10, 110]


def test_slice_says_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(folder / "out.json")
    for wrong in (["--step", "9"], ["--from", "1"], ["--category", "x"], ["--step", "1", "--to", "1s"]):
        assert main(["slice", str(folder), *wrong, "-o", out]) == 2, wrong
        assert capsys.readouterr().err.startswith("error:")
    assert main(["slice", str(folder), "--from", "2s", "--to", "1s", "-o", out]) == 2
    assert "the time range is empty: it begins at 2.00 s and ends at 1.00 s" in capsys.readouterr().err
    assert main(["slice", str(folder), "-o", str(folder / "no" / "out.json")]) == 1
    assert not (folder / "out.json").exists()


def test_what_is_older_than_the_history_is_part_of_the_peak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = snapshot()
    del value["device_traces"][0][1]  # the allocation of the 1,000 bytes that are in use at the end
    (tmp_path / "rank0.pickle").write_bytes(pickle.dumps(value))
    assert main(["view", "memory/snapshot", str(tmp_path), "--format", "table"]) == 0
    out = capsys.readouterr().out
    (older,) = [line.split() for line in out.splitlines() if "allocated before the history" in line]
    assert older[4:] == ["1,000", "B", "33.3%"]
