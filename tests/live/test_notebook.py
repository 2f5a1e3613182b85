"""The notebook among the examples, executed cell by cell: it finds the cause that it speaks of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.torch, pytest.mark.slow]

# In a process of its own: the kernel's client is not to be held to the warnings of this one.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=float(sys.argv[3]), kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the code cells with what they gave."""
    pytest.importorskip("torch")
    pytest.importorskip("nbclient")
    folder = tmp_path_factory.mktemp("notebook")
    notebook, written = ROOT / "examples" / "find_the_cause.ipynb", folder / "executed.ipynb"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    environment["TORCH_PROFILER_CACHE_DIR"] = str(folder / "cache")
    command = [sys.executable, "-c", EXECUTE, str(notebook), str(written), str(PATIENCE)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=5 * PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return [cell for cell in json.loads(written.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def cell(cells: list[dict[str, Any]], begin: str) -> dict[str, Any]:
    return next(each for each in cells if "".join(each["source"]).startswith(begin))


def printed_text(cells: list[dict[str, Any]], begin: str) -> str:
    return "".join("".join(out["text"]) for out in cell(cells, begin)["outputs"] if out.get("name") == "stdout")


def cell_html(cells: list[dict[str, Any]], begin: str) -> str:
    """Return the HTML of the value of a cell."""
    (value,) = [out for out in cell(cells, begin)["outputs"] if out["output_type"] == "execute_result"]
    return "".join(value["data"]["text/html"])


def percent(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"(\d+)%", text)]


def test_the_advice_names_data_loading(executed: list[dict[str, Any]]) -> None:
    assert "slow" in cell_html(executed, "log = ")
    assert "dataloader" in cell_html(executed, "run = ")
    (waits,) = percent(printed_text(executed, "average = "))
    assert waits > 50


def test_the_advice_names_the_slow_function(executed: list[dict[str, Any]]) -> None:
    assert "aten::roll" in cell_html(executed, "run.operators()")
    first, second = re.findall(r"<th>(\w+)</th>", cell_html(executed, "events = ").partition("<tbody>")[2])[:2]
    assert {first, second} == {"__getitem__", "decode"}


def test_the_diff_proves_the_change(executed: list[dict[str, Any]]) -> None:
    assert "faster" in printed_text(executed, "log.refresh()")
    waits, time = percent(printed_text(executed, "after = "))
    assert waits < 50 and time < 80
