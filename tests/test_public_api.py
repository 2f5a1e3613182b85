from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch_tb_profiler
from tests.support.traces import document
from tests.support.waiting import PATIENCE


def test_the_public_names() -> None:
    assert torch_tb_profiler.__all__ == ["Session", "Settings", "open"]
    assert all(getattr(torch_tb_profiler, name) for name in torch_tb_profiler.__all__)


def test_open_gives_the_numbers_of_the_command_line(tmp_path: Path) -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 10}]
    (tmp_path / "w.pt.trace.json").write_bytes(document(events))
    with torch_tb_profiler.open(str(tmp_path)) as session:
        answer = session.view("overview", wait=True)
    assert answer.payload is not None
    assert json.loads(answer.payload)["average"]["duration_ns"] == 10_000


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, torch_tb_profiler.plugin as p; p.PluginLoader();"
        "heavy = {'pyarrow', 'msgspec', 'fsspec', 'torch_tb_profiler.session'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
