"""Where the native reader is used, and that reading works without it everywhere else."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.native.comparison import NEEDED, outcome
from tests.ingest.test_mutations import KINETO
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.errors import WorkerDiedError
from torch_tb_profiler.executors.processes import ProcessExecutor
from torch_tb_profiler.ingest.kineto import native
from torch_tb_profiler.ingest.kineto.native import library
from torch_tb_profiler.model.trace import Trace

OTHER = "int reader_abi(void) { return 99; }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the library is looked for in this test."""
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    library._load.cache_clear()
    monkeypatch.setattr(library, "_load", library._load.__wrapped__)
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    return tmp_path


def test_without_the_library_files_are_read_in_python(folder: Path) -> None:
    assert native.load_library() is None
    assert native.describe_state() == "not part of this installation"
    trace = outcome(KINETO)
    assert isinstance(trace, Trace) and len(trace) > 50


def test_a_library_that_cannot_be_loaded_is_reported(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / library.LIBRARY.file_name).write_bytes(b"of another machine")
    assert native.load_library() is None
    assert "can't be loaded" in caplog.text
    assert native.describe_state().startswith("can't be loaded: ")
    assert isinstance(outcome(KINETO), Trace)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_a_library_of_another_version_is_reported(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = [name for name in library.LIBRARY.functions if name != "reader_abi"]
    source = "\n".join([OTHER, *(f"void {name}(void) {{}}" for name in names)])
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / library.LIBRARY.file_name)]
    subprocess.run(command, input=source, text=True, check=True)
    assert native.load_library() is None
    assert "another version" in caplog.text
    assert native.describe_state().startswith("has another version (99, not ")


@NEEDED
def test_only_workers_use_the_library_unless_a_variable_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.load_library() is None
    for given, used in {"": True, "1": True, "0": False}.items():
        if given:
            monkeypatch.setenv("TORCH_PROFILER_NATIVE", given)
        assert native.describe_state() == ("in use" if used else "turned off by TORCH_PROFILER_NATIVE=0")
        executor = ProcessExecutor(1)
        try:
            assert executor.submit(_loads).result(PATIENCE) is used
        finally:
            executor.shutdown()
        assert (native.load_library() is not None) is (given == "1")


def _loads() -> bool:
    return native.load_library() is not None


@NEEDED
def test_a_failed_allocation_raises_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = library._load()
    monkeypatch.setattr(library, "_load", lambda: _Full(loaded))
    with pytest.raises(MemoryError):
        outcome(KINETO)


class _Full:
    """The library on a machine whose memory is full once the reader is made."""

    def __init__(self, loaded: native.NativeLibrary) -> None:
        self._loaded = loaded

    def __getattr__(self, name: str) -> object:
        return _no_memory if name == "reader_add_all" else getattr(self._loaded, name)


def _no_memory(*arguments: Any) -> int:
    arguments[-1]._obj.value = 2
    return 0


CRASH = """
import ctypes, sys
from torch_tb_profiler.ingest.kineto.native import library
loaded, sizes = library.load_library(), library.ReaderSizes()
reader = loaded.reader_new(1)
if sys.argv[1] == "here":
    loaded.reader_add(reader, 8, 100, ctypes.byref(sizes))
loaded.reader_add(reader, b"[]", 2, ctypes.byref(sizes))
ctypes.string_at(8)
"""
"""No process may read at address 8."""


@NEEDED
@pytest.mark.skipif(sys.platform == "win32", reason="a crash is no signal there")
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_crash_of_the_reader_says_what_to_do(where: str) -> None:
    environment = {**os.environ, "TORCH_PROFILER_NATIVE": "1"}
    command = [sys.executable, "-c", CRASH, where]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr == (library.LIBRARY.crash_message if where == "here" else "")


@NEEDED
def test_a_crash_in_a_worker_fails_only_its_job(capfd: pytest.CaptureFixture[str]) -> None:
    executor = ProcessExecutor(1)
    try:
        with pytest.raises(WorkerDiedError):
            executor.submit(_crash).result(PATIENCE)
        assert executor.submit(_loads).result(PATIENCE)
    finally:
        executor.shutdown()
    assert library.LIBRARY.crash_message in capfd.readouterr().err


def _crash() -> None:
    loaded = native.load_library()
    assert loaded is not None
    loaded.reader_add(loaded.reader_new(1), 8, 100, ctypes.byref(library.ReaderSizes()))
