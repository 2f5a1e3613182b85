"""The user's device file: figures name it as their source, and none from another file is answered."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import document
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

ENTRY = """[[device]]
name = "Abacus"
match = "Abacus 3000"
hbm_gbs = {hbm}
matrix = {{ bf16 = {bf16} }}
source = "the lab"
"""
BF16 = "c10::BFloat16"
EVENTS: list[dict[str, Any]] = [
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 1,
        "tid": 1,
        "ts": 0,
        "dur": 50,
        "args": {
            "External id": 1,
            "Input Dims": [[1000, 1000], [1000, 1000]],
            "Input type": [BF16, BF16],
        },
    },
    {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": 10,
        "dur": 5,
        "args": {"correlation": 7},
    },
    {
        "ph": "X",
        "cat": "kernel",
        "name": "gemm",
        "pid": 0,
        "tid": 7,
        "ts": 20,
        "dur": 80,
        "args": {"correlation": 7, "device": 0, "stream": 7},
    },
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "log" / "run"
    run.mkdir(parents=True)
    trace = json.loads(document(EVENTS))
    trace["deviceProperties"] = [{"id": 0, "name": "Abacus 3000", "numSms": 7}]
    (run / "w.1.pt.trace.json").write_text(json.dumps(trace))
    return tmp_path


@pytest.fixture
def answers(folder: Path) -> Any:
    """Return the answers of a new server, which shares only the cache with the ones before."""

    def ask(**settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        values = {"cache_dir": str(folder / "cache"), "executor": "serial", "small_file_bytes": 0, **settings}
        with Session([Root(str(folder / "log"))], Settings(**values)) as session:
            session.scan()
            found = [session.view(slug, wait=True, timeout=PATIENCE) for slug in ("overview", "roofline")]
        overview, roofline = (json.loads(answer.payload or b"null") for answer in found)
        return overview, roofline

    return ask


def test_figures_come_from_the_file_and_name_it(folder: Path, answers: Any) -> None:
    file = folder / "mine.toml"
    file.write_text(ENTRY.format(hbm=1000, bf16=100))
    unknown, _ = answers()
    assert unknown["hardware"]["mfu"] is None
    overview, roofline = answers(devices=str(file))
    assert overview["hardware"]["mfu"] == pytest.approx(2e9 / 100e12 / 100e-6) == roofline["mfu"]
    assert overview["hardware"]["sources"] == ["mine.toml: the lab"]
    assert [device["source"] for device in roofline["devices"]] == ["mine.toml: the lab"]
    assert roofline["note"] is None
    assert str(folder) not in json.dumps([overview, roofline])


def test_figures_from_another_file_are_not_answered(folder: Path, answers: Any) -> None:
    file = folder / "mine.toml"
    figures = []
    for bf16 in (100, 200, 100):
        file.write_text(ENTRY.format(hbm=1000, bf16=bf16))
        overview, roofline = answers(devices=str(file))
        assert overview["hardware"]["mfu"] == roofline["mfu"]
        figures.append(round(1 / roofline["mfu"]))
    assert figures == [5, 10, 5]
    assert answers()[0]["hardware"]["mfu"] is None


def test_a_cached_trace_has_the_devices(folder: Path, answers: Any) -> None:
    file = folder / "mine.toml"
    file.write_text(ENTRY.format(hbm=1000, bf16=100))
    first, again = (answers(devices=str(file)) for _ in range(2))
    assert first == again
    assert len(list((folder / "cache").rglob("*.arrow"))) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[[device]]\nname = \n", "mine.toml: Invalid value (at line 2, column 8)"),
        (ENTRY.format(hbm=-1, bf16=1).encode(), "mine.toml, entry 1 ('Abacus'): "),
        (b"\xff", "mine.toml: 'utf-8' codec"),
        (None, "mine.toml: No such file or directory"),
    ],
)
def test_a_bad_file_is_reported_once_and_changes_nothing_else(
    folder: Path, answers: Any, caplog: pytest.LogCaptureFixture, content: bytes | None, problem: str
) -> None:
    file = folder / "mine.toml"
    if content is not None:
        file.write_bytes(content)
    with caplog.at_level(logging.WARNING, "torch_tb_profiler"):
        overview, roofline = answers(devices=str(file))
    assert [problem in record.getMessage() for record in caplog.records] == [True]
    assert str(file) in caplog.text
    assert roofline["note"].startswith(f"your device file was ignored: {problem}")
    assert str(folder) not in roofline["note"]
    without, plain = answers()
    assert overview == without
    assert {**roofline, "note": None} == plain
