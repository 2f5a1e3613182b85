"""The recipes of docs/trackers.md with the real clients, offline: their traces are listed under their names."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli.main import main
from torch_tb_profiler.http import routes
from torch_tb_profiler.http.query import Query
from torch_tb_profiler.session import open_session

PAGE = Path(__file__).parents[1] / "docs" / "trackers.md"
OFFLINE = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}


def run_recipe(module: str, title: str, folder: Path) -> None:
    """Run the code of a section of the page in a folder, as a program of its own."""
    for name in ("torch", module):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    section = PAGE.read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    environment = {
        **os.environ,
        **OFFLINE,
        "HOME": str(folder),
        "MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri(),
    }
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=5 * PATIENCE
    )
    assert done.returncode == 0, done.stderr


def list_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["list", str(folder), "--format", "json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


@pytest.mark.torch
def test_a_run_of_wandb_is_listed_once_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_recipe("wandb", "Weights & Biases", tmp_path)
    (row,) = list_runs(tmp_path / "wandb", capsys)
    assert row["tracker_name"] == "batch 64"
    assert re.fullmatch(r"offline-run-\d{8}_\d{6}-\w+/files/pytorch_traces", row["run"])
    with open_session(str(tmp_path), Settings(executor="serial", cache_dir="")) as session:
        (run,) = routes.get_runs(session, Query(None, None, None, {})).runs
        assert (run.tracker_name, run.name) == ("batch 64", f"wandb/{row['run']}")
        payload = json.loads(session.view("operators", run.name, None, wait=True).payload or b"{}")
    assert "aten::mm" in {each["name"] for each in payload["rows"]}


@pytest.mark.torch
def test_artifacts_of_a_run_of_mlflow_are_listed_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_recipe("mlflow", "MLflow", tmp_path)
    (row,) = list_runs(tmp_path / "mlruns", capsys)
    assert row["tracker_name"] == "batch 64"
    assert re.fullmatch(r"\d+/[0-9a-f]{32}/artifacts/traces", row["run"])
