"""README word for word: its Python records and reads a trace, its commands do what they say."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.test_stdio import ask
from tests.support.servers.tensorboard import read_json, start_tensorboard
from tests.support.waiting import PATIENCE, until
from tests.test_documentation import ROOT, code_blocks
from torch_tb_profiler.cli import main

README = (ROOT / "README.md").read_text("utf-8")
(COMMANDS,) = (text.splitlines() for text in code_blocks(README, "sh") if text.startswith("torch-tb-profiler "))
INSTALLED = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT),
}

SERVERS = {"mcp", "serve"}
"""They answer until they are stopped."""

pytestmark = pytest.mark.slow


@pytest.fixture
def log(tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, sample in (("before", "data_loading_slow"), ("after", "data_loading_fixed")):
        shutil.copytree(samples / sample, tmp_path / "log" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "log"


def test_the_commands_run_as_they_stand_there(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = []
    for line in COMMANDS:
        _, command, *arguments = shlex.split(line, comments=True)
        if command not in SERVERS:
            assert main([command, *arguments]) == 0, line
            ran.append(command)
    assert ran == ["list", "summary", "view", "diff", "report", "slice", "check"]
    printed = capsys.readouterr().out
    assert "before" in printed and "faster" in printed
    assert (log.parent / "report.html").stat().st_size > 1_000_000
    assert (log.parent / "step12.json").stat().st_size > 1_000


def command(name: str) -> list[str]:
    """Return a command of README, split into words."""
    (line,) = (line for line in COMMANDS if line.startswith(f"torch-tb-profiler {name} "))
    return shlex.split(line, comments=True)


def test_agents_are_answered(log: Path) -> None:
    program, *words = command("mcp")
    installed = shutil.which(program, path=INSTALLED["PATH"])
    assert installed is not None
    offered, ((failed, runs),) = ask(words, ("list_runs", {}), program=(installed,))
    assert "summary" in offered and not failed
    assert [run["run"] for run in json.loads(runs)["answer"]["runs"]] == ["after", "before"]


def test_tensorboard_is_started(log: Path) -> None:
    with start_tensorboard(command("serve"), INSTALLED, log.parent) as address:
        listed = until(
            lambda: read_json(f"{address}/data/plugin/pytorch_profiler/runs"),
            lambda answer: not answer["scanning"],
        )
    assert [run["name"] for run in listed["runs"]] == ["after", "before"]


@pytest.mark.torch
def test_its_python_records_a_trace_and_reads_it(tmp_path: Path, samples: Path) -> None:
    pytest.importorskip("torch")
    record, read = (text for text in code_blocks(README, "python"))
    assert re.search(r"active=3", record) and '"log/my_run"' in record
    program = "\n".join(
        [
            "import torch",
            "model, loader = torch.nn.Linear(8, 8), [torch.ones(4, 8)] * 6",
            "def train(batch): model(batch).sum().backward()",
            record,
            read,
            "assert len(run.overview().data.steps) == 3",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=2 * PATIENCE
    )
    assert done.returncode == 0, done.stderr
