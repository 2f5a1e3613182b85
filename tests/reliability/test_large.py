"""Files that are too large to be read whole: refused within seconds with the command that cuts them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import write_log
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.slow

CLI = [sys.executable, "-c", "import sys; from torch_tb_profiler.cli import main; sys.exit(main())"]


def cli(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "TORCH_PROFILER_EXECUTOR": "serial", **environ}
    return subprocess.run([*CLI, *arguments], env=settings, capture_output=True, text=True, timeout=5 * PATIENCE)


def test_a_file_beyond_the_limit_names_the_command_and_the_command_works(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", workers=1, count=5000)
    small = {"TORCH_PROFILER_TRACE_BYTES": "1000000"}
    refused = cli("view", "overview", str(log), **small)
    assert refused.returncode == 1
    assert "GiB of JSON" in refused.stderr
    command = shlex.split(refused.stderr.partition("cut a part out: torch-tb-profiler ")[2].partition(";")[0])
    assert command[0] == "slice"
    command[command.index("--to") + 1] = "0.04s"
    output = tmp_path / "part.json.gz"
    command[command.index("-o") + 1] = str(output)
    cut = cli(*command, **small)
    assert cut.returncode == 0, cut.stderr
    assert json.loads(cli("view", "overview", str(output), **small).stdout)["steps"]


@pytest.mark.parametrize(
    "options",
    [
        ("--from", "0.01s", "--to", "0.02s"),
        ("--to", "5ms", "--category", "kernel"),
        ("--from", "0.0405s", "--min-duration", "30us"),
        ("--category", "cpu_op", "--category", "cuda_runtime"),
    ],
)
@pytest.mark.parametrize("name", ["drawn", "ddp"])
def test_a_slice_cut_in_passes_equals_one_cut_at_once(
    options: tuple[str, ...], name: str, tmp_path: Path, samples: Path
) -> None:
    log = write_log(tmp_path / "log", workers=1, count=1000) if name == "drawn" else samples / name
    complete, passes = (
        cli("slice", str(log), *options, "-o", "-", TORCH_PROFILER_TRACE_BYTES=limit)
        for limit in ("1000000000", "600000")
    )
    if "this part has more than" in passes.stderr:
        pytest.skip("the part is larger than the limit")
    assert (passes.returncode, complete.returncode) in ((0, 0), (2, 2)), passes.stderr
    if complete.returncode == 0:
        assert _events(passes.stdout) == _events(complete.stdout)


def _events(text: str) -> list[Any]:
    events: list[Any] = json.loads(text)["traceEvents"]
    return events


def test_a_step_cannot_be_cut_from_a_file_over_the_limit(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", workers=1)
    completed = cli("slice", str(log), "--step", "1", "-o", "-", TORCH_PROFILER_TRACE_BYTES="1000")
    assert completed.returncode == 2
    assert "--from" in completed.stderr
