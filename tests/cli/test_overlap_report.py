"""`overlap-report`: the files, their keys and their figures, which other programs read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers.aorta import Busy, active, iteration, line, write
from torch_tb_profiler.cli import overlap_report
from torch_tb_profiler.cli.main import main


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for rank in (0, 1):
        write(tmp_path / "cuda", rank, [line(step, iteration(step), 500, rank=rank) for step in range(3)])
        write(
            tmp_path / "rocm", rank, [line(step, iteration(2 * step + rank), 520, rank=rank) for step in range(4)]
        )
    return tmp_path / "cuda", tmp_path / "rocm"


@pytest.fixture
def empty_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing an image takes as long as all figures."""
    monkeypatch.setattr(overlap_report, "_draw_timeline", lambda path, *_: Path(path).touch())


def expected_totals(iterations: list[tuple[int, int]]) -> dict[str, float]:
    """Return the totals of iterations (step, seed), counted µs by µs."""
    busy = [iteration(seed) for _, seed in iterations]
    compute = [active(each, "compute") for each in busy]

    def mean(*streams: str) -> float:
        overlaps = [len(mine & active(each, *streams)) for mine, each in zip(compute, busy, strict=True)]
        return sum(overlaps) / len(busy) / 1000

    computed = sum(map(len, compute)) / len(busy) / 1000
    return {
        "count": len(iterations),
        "mean_loss": sum(1 / (step + 1) for step, _ in iterations) / len(iterations),
        "mean_overlap_ms": mean("allreduce", "reducescatter"),
        "mean_compute_ms": computed,
        "mean_allreduce_overlap_ms": mean("allreduce"),
        "mean_reducescatter_overlap_ms": mean("reducescatter"),
        "overlap_ratio": mean("allreduce", "reducescatter") / computed,
    }


def report(arguments: list[str], output: Path) -> dict[str, Any]:
    assert main(["overlap-report", *arguments, "-o", str(output)]) == 0
    summary: dict[str, Any] = json.loads((output / "summary.json").read_text("utf-8"))
    return summary


@pytest.mark.usefixtures("empty_images")
def test_the_summary_holds_means_of_both_folders_and_their_difference(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    summary = report([str(folder) for folder in folders], tmp_path / "out")
    cuda = expected_totals([(step, step) for step in range(3)] * 2)
    rocm = expected_totals([(step, 2 * step + rank) for step in range(4) for rank in (0, 1)])
    assert list(summary) == ["datasets", "comparison"]
    assert list(summary["datasets"]) == ["cuda", "rocm"]
    for label, figures in (("cuda", cuda), ("rocm", rocm)):
        assert list(summary["datasets"][label]) == list(figures)
        assert summary["datasets"][label] == pytest.approx(figures)
    comparison = summary["comparison"]
    assert comparison.pop("ratios") == pytest.approx(
        {name: rocm[name] / cuda[name] for name in cuda if name not in ("count", "mean_loss")}
    )
    assert comparison == pytest.approx(
        {
            "reference_overlap_ratio": cuda["overlap_ratio"],
            "candidate_overlap_ratio": rocm["overlap_ratio"],
            "ratio_delta": rocm["overlap_ratio"] - cuda["overlap_ratio"],
        }
    )


def test_each_folder_has_its_picture(folders: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report([*map(str, folders), "--label-b", "a $weird$/label"], tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"summary.json", "cuda_timeline.png", "a_weird_label_timeline.png"}
    assert (tmp_path / "out" / "cuda_timeline.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_summary_is_written_and_what_is_missing_is_said(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["overlap-report", *map(str, folders), "-o", str(tmp_path / "out")]) == 1
    assert 'pip install "torch-tb-profiler[plots]"' in capsys.readouterr().err
    assert (tmp_path / "out" / "summary.json").exists()


@pytest.mark.usefixtures("empty_images")
def test_a_recording_is_chosen(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cuda, rocm = folders
    write(cuda, 0, [line(0, iteration(9), 500)])
    first = report([str(cuda), str(rocm)], tmp_path / "first")
    assert "holds up to 2 recordings per rank" in capsys.readouterr().err
    assert first["datasets"]["cuda"]["count"] == 6
    assert main(["overlap-report", str(cuda), str(rocm), "--span", "2", "-o", str(tmp_path / "x")]) == 2
    second = report([str(cuda), str(cuda), "--label-a", "a", "--span", "2"], tmp_path / "second")
    assert second["datasets"]["a"] == pytest.approx(expected_totals([(0, 9)]))


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["{cuda}", "{cuda}"], 2, "both sides are called 'cuda'"),
        (["{cuda}", "{empty}"], 2, "no iteration metrics"),
        (["{cuda}", "{cuda}/nothing"], 1, "no such folder"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str],
    code: int,
    text: str,
    folders: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    paths = [each.format(cuda=folders[0], empty=tmp_path / "empty") for each in arguments]
    assert main(["overlap-report", *paths, "-o", str(tmp_path / "out")]) == code
    assert text in capsys.readouterr().err


def log_dirs(*pairs: tuple[Path, str]) -> list[str]:
    return [part for path, label in pairs for part in ("--log-dir", str(path), "--label", label)]


@pytest.mark.usefixtures("empty_images")
def test_any_number_of_folders_is_reported_and_two_are_compared(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    cuda, rocm = folders
    write(tmp_path / "third", 0, [line(0, iteration(9), 500)])
    every = log_dirs((rocm, "rocm"), (cuda, "cuda"), (tmp_path / "third", "new"))
    summary = report([*every, "--reference", "cuda", "--candidate", "rocm"], tmp_path / "out")
    assert list(summary["datasets"]) == ["rocm", "cuda", "new"]
    assert summary["datasets"]["new"] == pytest.approx(expected_totals([(0, 9)]))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "summary.json", "rocm_timeline.png", "cuda_timeline.png", "new_timeline.png"
    }  # fmt: skip
    ratio = {label: summary["datasets"][label]["overlap_ratio"] for label in ("cuda", "rocm")}
    assert summary["comparison"]["reference_overlap_ratio"] == ratio["cuda"]
    assert summary["comparison"]["ratio_delta"] == pytest.approx(ratio["rocm"] - ratio["cuda"])
    assert "comparison" not in report(every, tmp_path / "uncompared")
    swapped = report([*log_dirs((rocm, "rocm"), (cuda, "cuda")), "--reference", "cuda"], tmp_path / "two")
    assert swapped["comparison"] == summary["comparison"]


def test_a_folder_without_metrics_costs_only_itself(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    pairs = log_dirs((folders[0], "cuda"), (tmp_path / "empty", "empty"), (tmp_path / "none", "none"))
    assert main(["overlap-report", *pairs, "-o", str(tmp_path / "out")]) == 2
    errors = capsys.readouterr().err
    assert "no iteration metrics" in errors and "no such folder" in errors
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert list(summary["datasets"]) == ["cuda"]
    assert (tmp_path / "out" / "cuda_timeline.png").exists()


@pytest.mark.usefixtures("empty_images")
def test_figures_of_a_reference_without_communication_have_no_ratio(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    write(tmp_path / "alone", 0, [line(0, [Busy("compute", 0, 50)], 100)])
    ratios = report([str(tmp_path / "alone"), str(folders[0])], tmp_path / "out")["comparison"]["ratios"]
    assert ratios["mean_overlap_ms"] is None and ratios["overlap_ratio"] is None
    assert ratios["mean_compute_ms"] > 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["{cuda}"], "the folders are missing"),
        (["{cuda}", "{rocm}", "--log-dir", "{cuda}"], "not both"),
        (
            ["--log-dir", "{cuda}", "--log-dir", "{rocm}", "--label", "a"],
            "--label is given 1 times, --log-dir 2 times",
        ),
        (["--log-dir", "{cuda}", "--log-dir", "{cuda}"], "called 'cuda'"),
        (["--log-dir", "{cuda}", "--reference", "x"], "no data set 'x'"),
        (["--log-dir", "{cuda}", "--reference", "cuda"], "needs two data sets"),
        (["{cuda}", "{rocm}", "--reference", "cuda", "--candidate", "cuda"], "needs two data sets"),
        (["{cuda}", "{rocm}", "--label", "x"], "--label belongs to --log-dir"),
    ],
)
def test_folders_and_labels_have_to_agree(
    arguments: list[str],
    text: str,
    folders: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = [each.format(cuda=folders[0], rocm=folders[1]) for each in arguments]
    assert main(["overlap-report", *chosen, "-o", str(tmp_path / "out")]) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
