from __future__ import annotations

import importlib
import importlib.metadata
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import torch_tb_profiler
from tests.support.waiting import PATIENCE

HEAVY = {
    *("torch", "tensorboard", "numpy", "pandas", "pyarrow", "msgspec", "fsspec"),
    *("torch_tb_profiler.session", "torch_tb_profiler.ingest"),
}


def test_the_public_names() -> None:
    names = ["Columns", "Log", "ProfilerError", "Result", "Run", "Settings", "handler", "open", "trainer_callback"]
    assert torch_tb_profiler.__all__ == names
    assert all(getattr(torch_tb_profiler, name) for name in torch_tb_profiler.__all__)
    assert (files("torch_tb_profiler") / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        torch_tb_profiler.Nothing  # noqa: B018


@pytest.mark.parametrize("name", ["io", "utils", "run", "consts", "profiler"])
def test_a_module_of_the_old_plugin_says_where_it_went(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from torch_tb_profiler import {name}"], capture_output=True, text=True
    )
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith(f"ImportError: torch_tb_profiler.{name} was a module of torch-tb-profiler 0.4: ")
    with pytest.raises(ImportError, match=f"{name} was a module"):
        getattr(torch_tb_profiler, name)


@pytest.mark.parametrize(
    "code",
    [
        "import torch_tb_profiler.io as io",
        "from torch_tb_profiler.run import RunProfile",
        "from torch_tb_profiler.profiler import RunLoader",
        "from torch_tb_profiler.profiler.data import RunProfileData",
    ],
)
def test_what_was_in_such_a_module_says_where_it_went(code: str) -> None:
    (name,) = re.findall(r"torch_tb_profiler\.(\w+)", code)
    with pytest.raises(ModuleNotFoundError, match=rf"^torch_tb_profiler\.{name} was a module of .*0\.4: "):
        exec(code)
    with pytest.raises(ModuleNotFoundError, match="No module named 'torch_tb_profiler.never'"):
        importlib.import_module("torch_tb_profiler.never")


def test_the_plugin_answers_to_its_old_name(tmp_path: Path) -> None:
    from tensorboard.plugins.base_plugin import TBContext

    from torch_tb_profiler.plugin import TorchProfilerPlugin

    plugin = TorchProfilerPlugin(TBContext(logdir=str(tmp_path)))
    assert plugin.plugin_name == "pytorch_profiler" and not plugin.is_active()


def test_the_version_is_that_of_the_installed_package() -> None:
    assert torch_tb_profiler.__version__ == importlib.metadata.version("torch-tb-profiler")


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import torch_tb_profiler", HEAVY),
        ("import torch_tb_profiler.plugin as p; p.PluginLoader()", HEAVY - {"tensorboard", "numpy"}),
    ],
)
def test_importing_loads_nothing_heavy(code: str, heavy: set[str]) -> None:
    code = f"import sys; {code}; loaded = {heavy!r} & set(sys.modules); assert not loaded, loaded"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "tensorboard", "pandas"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import torch_tb_profiler as ttp

run = ttp.open(sys.argv[1]).run()
assert run.operators().to_arrow().num_rows and run.columns().events.num_rows
"""


def test_asking_needs_neither_torch_nor_tensorboard_nor_pandas(samples: Path) -> None:
    command = [sys.executable, "-c", WITHOUT, str(samples / "data_loading_slow")]
    subprocess.run(command, check=True, timeout=PATIENCE)


def test_the_documentation_runs_word_for_word(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = samples.parent
    monkeypatch.chdir(root)
    text = (root / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    columns = names["run"].columns()  # type: ignore[attr-defined]
    for line in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| [^|]+ \| (event|device|step)(.*) \|$", text, re.MULTILINE):
        for table in re.findall(r"\w+", line[0]):
            listed = (line[1] + line[2]).removesuffix(", ...").partition(";")[0].split(", ")
            assert getattr(columns, table).column_names[: len(listed)] == listed, table
