"""The program itself: what it says about itself, and that it says so without loading the package."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.views import SLUGS, all_tabs

HEAVY = (
    "numpy",
    "msgspec",
    "pyarrow",
    "fsspec",
    "tensorboard",
    "torch_tb_profiler.view",
    "torch_tb_profiler.session",
)

PROGRAM = (
    "import sys; from torch_tb_profiler.cli import main\n"
    "try: main(sys.argv[1:])\n"
    f"finally: sys.stderr.write(' '.join(sorted(set({HEAVY!r}) & set(sys.modules))))"
)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--help"], "COMMAND"),
        (["--version"], f"torch-tb-profiler {version('torch-tb-profiler')}"),
        (["summary", "--help"], "--format"),
        (["diff", "--help"], "--fail-over"),
    ],
)
def test_help_and_version_import_nothing_heavy(arguments: list[str], shown: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert shown in re.sub(r"\s+", " ", done.stdout)
    assert done.stderr == ""


def test_a_command_that_works_imports_them(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "list", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert "numpy" in done.stderr and "torch_tb_profiler.session" in done.stderr


def test_the_module_is_the_program() -> None:
    command = [sys.executable, "-m", "torch_tb_profiler", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == f"torch-tb-profiler {version('torch-tb-profiler')}\n"


def test_the_slugs_in_the_help_are_those_of_the_views() -> None:
    assert tuple(tab.slug for tab in all_tabs()) == SLUGS
