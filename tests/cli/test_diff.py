from __future__ import annotations

import json
import pickle
import re
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.support.recordings import Op, write_recording
from torch_tb_profiler.cli import main

WORK = [Op("aten::conv2d", 200, kernel=100), Op("aten::relu", 100, kernel=50)]
SLOW = [Op("aten::conv2d", 200, kernel=100), Op("aten::relu", 300, kernel=50), Op("evil|`@all`<b>\x07name", 40)]


def write(path: Path, ops: list[Op], steps: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    path.mkdir(parents=True, exist_ok=True)
    content = write_recording(ops, steps, lambda step: float(1 + 0.003 * rng.standard_normal()))
    (path / "w.1.pt.trace.json").write_bytes(content)
    return str(path)


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    return [write(tmp_path / "main", WORK, 6, 1), write(tmp_path / "branch", SLOW, 8, 2)]


def test_json_is_the_payload(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *pair, "--format", "json"]) == 0
    out = capsys.readouterr()
    payload = json.loads(out.out)
    assert (len(payload["base"]["steps"]), len(payload["candidate"]["steps"])) == (6, 8)
    assert payload["step"]["verdict"] == "slower"
    assert "checks" not in payload and out.err == ""
    assert main(["diff", pair[0], pair[0], "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"]["delta_ns"] == 0


def test_one_file_each_and_names(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    files = [f"{folder}/w.1.pt.trace.json" for folder in pair]
    assert main(["diff", *files, "--format", "json"]) == 0
    whole = capsys.readouterr().out
    assert main(["diff", *pair, "--format", "json", "--run", "branch", "--worker", "w", "--base-span", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(whole)


def test_table(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *pair]) == 0
    out = capsys.readouterr().out
    assert "slower: " in out.splitlines()[0]
    assert "DataLoader" in out and "aten::relu" in out and "aten::conv2d kernel" in out


def test_tables_fit_a_terminal_unless_all_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"aten::{'x' * 90}"
    sides = [write(tmp_path / side, [Op(name, 200, kernel=100)], 4, 1) for side in ("a", "b")]
    monkeypatch.setattr(import_module("torch_tb_profiler.cli._output"), "terminal_width", lambda _: 70)
    assert main(["diff", *sides]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("aten::x")]
    assert rows and max(map(len, rows)) <= 70 and name not in out
    assert "fit (" in out and "--wide shows all." in out
    assert main(["diff", *sides, "--wide"]) == 0
    out = capsys.readouterr().out
    assert name in out and "fit (" not in out


def test_a_regression_exits_with_3(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *pair, "--fail-over", "10"]) == 3
    assert "failed: step time: " in capsys.readouterr().err
    assert main(["diff", *pair, "--fail-over", "10%", "--format", "json"]) == 3
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [(check["name"], check["passed"]) for check in checks] == [
        ("step time", False),
        ("aten::relu host self", False),
        ("evil|`@all`<b>\x07name host self", False),
    ]
    assert main(["diff", *pair, "--fail-over", "90"]) == 0
    assert main(["diff", *reversed(pair), "--fail-over", "1"]) == 0
    assert main(["diff", pair[0], pair[0], "--fail-over", "0"]) == 0


def test_a_slower_operator_is_reported_even_if_others_offset_it(tmp_path: Path) -> None:
    base = write(tmp_path / "a", WORK, 6, 1)
    moved = write(tmp_path / "b", [Op("aten::conv2d", 100, kernel=100), Op("aten::relu", 200, kernel=50)], 6, 2)
    assert main(["diff", base, moved, "--fail-over", "5"]) == 3


def test_an_inconclusive_comparison_exits_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [write(tmp_path / "a", WORK, 1, 1), write(tmp_path / "b", SLOW, 1, 2)]
    gate = ["diff", *pair, "--fail-over", "5"]
    assert main([*gate, "--format", "junit"]) == 4
    out = capsys.readouterr()
    assert "inconclusive: step time" in out.err
    assert ElementTree.fromstring(out.out).find(".//testcase/skipped") is not None
    assert main([*gate, "--format", "junit", "--strict"]) == 3
    assert ElementTree.fromstring(capsys.readouterr().out).find(".//testcase/failure") is not None
    assert main([*gate, "--format", "markdown"]) == 4
    out = capsys.readouterr()
    assert out.out.startswith("### 🟡 ") and "| `step time` | inconclusive |" in out.out


def test_another_batch_size_is_not_comparable_per_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = []
    for name, batch in (("a", 32), ("b", 64)):
        op = Op("aten::addmm", 50, kernel=batch * 10, args={"Input Dims": [[], [batch, 8], [8, 8]]})
        pair.append(write(tmp_path / name, [op], 6, batch))
    gate = ["diff", *pair, "--fail-over", "5"]
    assert main([*gate, "--format", "json"]) == 5
    out = capsys.readouterr()
    assert json.loads(out.out)["checks"][0]["comparable"] is False
    assert "not comparable: step time: not comparable per step: 32 samples in the base, 64 in the" in out.err
    assert main([*gate, "--strict", "--format", "markdown"]) == 5
    assert "| `step time` | not comparable |" in capsys.readouterr().out
    assert main(["diff", *pair]) == 0
    same = write(
        tmp_path / "c", [Op("aten::addmm", 50, kernel=400, args={"Input Dims": [[], [32, 8], [8, 8]]})], 6, 3
    )
    assert main(["diff", pair[0], same, "--fail-over", "5"]) == 3


def test_a_slow_first_step_does_not_hide_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = [1.6, 1, 1.005, 1.01, 0.99]
    for name, factor in (("a", 1.0), ("b", 1.3)):
        (tmp_path / name).mkdir()
        content = write_recording(WORK, 5, lambda step, factor=factor: factor * times[step])  # type: ignore[misc]
        (tmp_path / name / "w.1.pt.trace.json").write_bytes(content)
    pair = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["diff", *pair, "--fail-over", "5"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("The step is ") and "slower" in out.splitlines()[0]
    assert "The first step of the base (" in out and "is left out, as it may be warm-up" in out


def test_several_recordings_of_each_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The machine makes recordings differ by 10%; one of each side takes that for a change."""
    speed = {"a1": 1.0, "a2": 1.1, "a3": 1.05, "b1": 1.08, "b2": 0.98, "b3": 1.07}
    paths = {}
    for seed, (name, factor) in enumerate(speed.items()):
        work = [Op(op.name, op.own * factor, op.inside, op.kernel * factor) for op in WORK]
        paths[name] = write(tmp_path / name, work, 6, seed)
    base, candidate = ([paths[f"{side}{number}"] for number in (1, 2, 3)] for side in "ab")
    assert main(["diff", base[0], candidate[0], "--fail-over", "5"]) == 3
    capsys.readouterr()
    assert main(["diff", *base, "--", *candidate, "--fail-over", "5", "--format", "json"]) == 4
    payload = json.loads(capsys.readouterr().out)
    assert (payload["base"]["recordings"], payload["candidate"]["recordings"]) == ([6, 6, 6], [6, 6, 6])
    assert payload["step"]["verdict"] == "cannot_tell"
    rows = {row["name"]: row for row in payload["level"]["operators"]}
    assert rows["aten::relu"]["status"] == "matched" and rows["aten::relu"]["calls"]["base"] == 1
    parts = [part["name"] for part in payload["level"]["parts"]]
    assert len(parts) == len(set(parts))


def test_spans_of_one_run_prove_no_change_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "run", WORK, 6, 1)
    for span, seed in ((2, 2), (3, 3), (4, 4)):
        factor = 1.2 if span > 2 else 1.0
        work = [Op(op.name, op.own * factor, op.inside, op.kernel * factor) for op in WORK]
        write(tmp_path / "other", work, 6, seed)
        moved = tmp_path / "run" / f"w.{span}.pt.trace.json"
        (tmp_path / "other" / "w.1.pt.trace.json").rename(moved)
    assert main(["diff", folder, folder, "--base-span", "1", "--span", "3", "--fail-over", "5"]) == 4
    out = capsys.readouterr()
    assert "In this recording," in out.out and "record each side several times" in out.err
    assert main(["diff", folder, folder, "--base-span", "1,2", "--span", "3,4", "--fail-over", "5"]) == 3


@pytest.mark.parametrize("paths", ["{a}", "{a} {b} {a}", "{a} {b} --", "-- {a} {b}", "{a} -- {b} -- {a}"])
def test_paths_without_two_clear_sides_are_an_error(
    pair: list[str], paths: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *paths.format(a=pair[0], b=pair[1]).split()]) == 2
    assert "A1 A2 -- B1 B2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("budget", "code", "message"),
    [
        ({"step_time": "10 ms"}, 0, ""),
        ({"step_time": "100 us"}, 3, "failed: budget: step time"),
        ({"step_time": 100_000}, 3, "failed: budget: step time"),
        ({"exposed_communication": 0}, 0, ""),
        ({"operators": {"aten::relu": "1 us"}}, 3, "failed: budget: aten::relu device total"),
        ({"operators": {"aten::relu": {"host_self": "250 us", "host_total": "1ms"}}}, 3, "aten::relu host self"),
        ({"operators": {"aten::gone": "1 us"}}, 0, ""),
        ({"peak_memory": "1 GiB"}, 1, "profile_memory=True"),
        ({"speed": 1}, 2, "unknown key 'speed'"),
        ({"step_time": "fast"}, 2, "not a valid duration"),
        ({"peak_memory": "much"}, 2, "not a valid size"),
        ({"step_time": [1]}, 2, "neither a number"),
        ({"operators": 1}, 2, "must map names to limits"),
        ({"operators": {"aten::relu": {"self": 1}}}, 2, "unknown key 'self'"),
        ([], 2, "must be a JSON object"),
    ],
)
def test_budgets(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], budget: object, code: int, message: str
) -> None:
    file = tmp_path / "budget.json"
    file.write_text(json.dumps(budget))
    assert main(["diff", *pair, "--budget", str(file)]) == code
    assert message in capsys.readouterr().err


def test_memory_has_a_budget(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [str(samples / name) for name in ("data_loading_slow", "data_loading_fixed")]
    file = tmp_path / "budget.json"
    for limit, code in (("15 MB", 3), ("1 GiB", 0)):
        file.write_text(json.dumps({"peak_memory": limit}))
        assert main(["diff", *pair, "--budget", str(file)]) == code
    assert "peak memory: 15.8 MiB; allowed 14.3 MiB" in capsys.readouterr().err


def test_markdown_is_a_comment_and_names_are_not_markup(
    pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *pair, "--format", "markdown", "--fail-over", "5"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("### 🔴 The step is ")
    assert "| `step time` | FAILED |" in out
    assert "`evil\\|'@all'<b>" in out
    lines = out.splitlines()
    assert "| `aten::relu` | host self | 100 µs -> 300 µs (+2" in out
    assert all("<b>" not in line or line.startswith("| `evil") or "\\<b\\>" in line for line in lines)
    assert len(out) < 65_536


def test_junit(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *pair, "--format", "junit", "--fail-over", "5"]) == 3
    suite = ElementTree.fromstring(capsys.readouterr().out).find("testsuite")
    assert suite is not None
    assert int(suite.get("tests") or 0) == len(suite.findall("testcase"))
    assert int(suite.get("failures") or 0) == len(suite.findall("testcase/failure")) >= 2
    assert main(["diff", *pair, "--format", "junit"]) == 0
    suite = ElementTree.fromstring(capsys.readouterr().out).find("testsuite")
    assert suite is not None and (suite.get("tests"), suite.get("failures")) == ("1", "0")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{a}", "{a}/nothing"], 1, "no such folder"),
        (["{a}", "{empty}"], 1, "there is no trace"),
        (["{a}", "{broken}"], 1, "the file is empty"),
        (["{a}", "{b}", "--run", "x"], 2, "runs: branch"),
        (["{a}", "{b}", "--base-worker", "x"], 2, "workers: w"),
        (["{a}", "{b}", "--budget", "{a}/none.json"], 2, "cannot be read"),
    ],
)
def test_exit_codes_of_trouble(
    pair: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    places = {"a": pair[0], "b": pair[1], "empty": str(tmp_path / "empty"), "broken": str(tmp_path / "broken")}
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "w.pt.trace.json").write_bytes(b"")
    assert main(["diff", *(argument.format(**places) for argument in arguments)]) == code
    out = capsys.readouterr()
    assert out.out == ""
    assert message in out.err


@pytest.mark.parametrize("wrong", ["--fail-over=much", "--fail-over=-1", "--fail-over=nan", "--format=xml"])
def test_wrong_options(pair: list[str], wrong: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["diff", *pair, wrong])
    assert exit_.value.code == 2


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_the_step_of_the_headline_stands_in_the_table(
    form: str, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another figure for "the step" would contradict the answer above it, and the Overview of each side."""
    slow, fixed = str(samples / "data_loading_slow"), str(samples / "data_loading_fixed")
    assert main(["diff", slow, fixed, "--format", form]) == 0
    text = capsys.readouterr().out
    assert "The step is 589 ms (52.8%) faster: 1.12 s before, 527 ms now." in text
    line = next(line for line in text.splitlines() if re.match(r"(\| \*\*)?step\b(?! time)", line))
    cells = [cell.strip(" *") for cell in re.split(r"\||\s{2,}", line)]
    assert [cell for cell in cells if cell][1:4] == ["1.12 s", "527 ms", "−589 ms"]
    for side, mean in ((slow, "1.12 s"), (fixed, "527 ms")):
        assert main(["summary", side]) == 0
        assert mean in capsys.readouterr().out


def write_snapshots(path: Path) -> str:
    """Write snapshots of two ranks: rank 1 holds 7 MiB more from one line."""
    from tests.support.snapshots import LINEAR, LOSS, entry

    for rank, extra in ((0, 0), (1, 7 << 20)):
        entries = [entry("alloc", 9 << 20, 1, LINEAR, addr=4096)]
        entries += [entry("alloc", extra, 2, LOSS, addr=8192)] if extra else []
        path.mkdir(parents=True, exist_ok=True)
        value = {"segments": [], "device_traces": [entries]}
        (path / f"rank{rank}_memory.pickle").write_bytes(pickle.dumps(value))
    return str(path)


def test_two_snapshots_are_compared_by_site_and_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_snapshots(tmp_path / "job")
    files = [f"{folder}/rank{rank}_memory.pickle" for rank in (0, 1)]
    for sides in (files, [folder, folder, "--base-worker", "rank0", "--worker", "rank1"]):
        assert main(["diff", *sides, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["peak_difference_bytes"] == sum(site["bytes"] for site in found["sites"]) == 7 << 20
    assert main(["diff", *files]) == 0
    out = capsys.readouterr().out
    assert "7.00 MiB of it from train.py(40): loss" in out and "+7.00 MiB" in out
    assert main(["diff", *files, "--fail-over", "5"]) == 2
    assert "no steps to check" in capsys.readouterr().err


def test_a_snapshot_and_a_trace_are_not_compared(
    tmp_path: Path, pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", pair[0], write_snapshots(tmp_path / "job")]) != 0
    assert "a memory snapshot records only the allocator" in capsys.readouterr().err


def test_the_ranks_of_a_job_are_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "memory/ranks", write_snapshots(tmp_path / "job"), "--format", "table"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Rank 1 differs most: its peak of 16.0 MiB is 7.00 MiB above")
    assert [line.split()[0] for line in out.splitlines() if line.startswith("rank")] == ["rank0", "rank1"]
