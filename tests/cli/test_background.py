"""The tabs of a large trace are prepared in the background once a command has shown one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.page import draw_training
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.cli import _background
from torch_tb_profiler.cli.main import main

fcntl = pytest.importorskip("fcntl", reason="only such systems prepare in the background")

PROGRAM = "import sys; sys.path.remove(''); from torch_tb_profiler.cli.main import main; sys.exit(main())"
"""As an installed program finds its modules: not in the working folder."""

TABS = ("kernels", "operators", "trace", "idle", "critical_path", "origins")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace that counts as large, and a cache of its own."""
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_PROFILER_SMALL_FILE_BYTES", "16")
    monkeypatch.setenv(_background.VARIABLE, "1")
    folder = tmp_path / "log" / "run"
    folder.mkdir(parents=True)
    (folder / "rank0.1.pt.trace.json").write_bytes(draw_training(1))
    return tmp_path / "log"


def run(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )


def test_the_next_command_shows_what_was_prepared(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing in the working folder is executed, and the first command ends before the other process does."""
    hostile = tmp_path / "here"
    hostile.mkdir()
    (hostile / "numpy.py").write_text("raise SystemExit('not this one')")
    first = run(PROGRAM, hostile, "view", "overview", str(log))
    assert first.stderr == "" and json.loads(first.stdout)["headline"]
    until(lambda: list((tmp_path / "cache").glob("*.prepared.json")))
    again = f"{PROGRAM.removesuffix('sys.exit(main())')}main(); assert 'numpy' not in sys.modules"
    shown = run(again, hostile, "view", "kernels", str(log)).stdout
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setattr(os, "posix_spawn", lambda *arguments, **keywords: None)
    assert main(["view", "kernels", str(log)]) == 0
    assert shown == capsys.readouterr().out
    stored = {path.name.split(".", 1)[1] for path in (tmp_path / "cache").glob("*.json")}
    assert {f"{slug}.json" for slug in TABS} <= stored


def test_one_process_at_a_time_prepares(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_spawn", lambda *arguments, **keywords: None)
    assert main(["view", "overview", str(log)]) == 0
    program = f"from torch_tb_profiler.cli import _background; _background.prepare({str(log)!r}, (None,) * 3)"
    with open(tmp_path / "cache" / _background.LOCK_FILE, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(program, tmp_path)
    assert not list((tmp_path / "cache").glob("*.kernels.json"))
    run(program, tmp_path)
    assert list((tmp_path / "cache").glob("*.kernels.json"))


def test_what_starts_a_process(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large trace that was opened, once; no small one, no cached answer, nothing where it is switched off."""
    started: list[Any] = []
    monkeypatch.setattr(os, "posix_spawn", lambda *arguments, **keywords: started.append(arguments))

    def starts(slug: str, *options: str) -> int:
        started.clear()
        assert main(["view", slug, str(log), *options]) == 0
        return len(started)

    assert starts("overview") == 1
    assert starts("overview") == 0
    assert starts("kernels") == 1
    assert starts("operators", "--param", "group_by=shape") == 1
    monkeypatch.setenv(_background.VARIABLE, "0")
    assert starts("idle") == 0
    monkeypatch.setenv(_background.VARIABLE, "1")
    monkeypatch.setenv("TORCH_PROFILER_SMALL_FILE_BYTES", str(1 << 30))
    assert starts("critical_path") == 0
