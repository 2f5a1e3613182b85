"""After an update, a cache entry is used only if this version would have written the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from tests.support.traces import document
from tests.support.views import add_tab
from tests.support.waiting import PATIENCE
from torch_tb_profiler import views
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import Root, Session, loading
from torch_tb_profiler.session.cache import entries
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.view import NoParams, Tab, TraceView


class HealthOnly(msgspec.Struct, frozen=True):
    health: tuple[HealthNote, ...] = ()


def caching_settings() -> Settings:
    return replace(Settings.from_environment(), small_file_bytes=0, executor="serial")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    (tmp_path / "w.1.pt.trace.json").write_bytes(document([event]))
    return tmp_path


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a program whose source code determines the keys of entries."""
    root = tmp_path / "program"
    (root / "views").mkdir(parents=True)
    (root / "views" / "one.py").write_text("x = 1")
    monkeypatch.setattr(entries, "_PACKAGE", str(root))
    entries.program_digest.cache_clear()
    yield root
    entries.program_digest.cache_clear()


def overview(session: Session) -> dict[str, Any]:
    answer = session.view("overview", wait=True, timeout=PATIENCE)
    assert answer.payload is not None, answer.state
    payload: dict[str, Any] = json.loads(answer.payload)
    return payload


def test_an_entry_of_another_version_is_not_read(
    folder: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update may change the content of a field without changing its type, so the trace is loaded again."""
    opened: list[str] = []
    load = loading.Loader.load

    def counting(loader: loading.Loader, file: ListedFile, *rest: Any, **named: Any) -> Any:
        opened.append(file.path)
        return load(loader, file, *rest, **named)

    monkeypatch.setattr(loading.Loader, "load", counting)

    def load_again(reads: int) -> None:
        with Session([Root(str(folder))], caching_settings()) as session:
            session.scan()
            assert overview(session)["steps"]
        assert len(opened) == reads

    load_again(1)
    load_again(1)
    (program / "views" / "one.py").write_text("x = 2")
    entries.program_digest.cache_clear()
    load_again(2)


def keys_after(program: Path, *changes: Callable[[], object]) -> list[str]:
    """Return the key of one file's entry before and after each change of the program, as in new processes."""
    names = []
    for change in (lambda: None, *changes):
        change()
        entries.program_digest.cache_clear()
        names.append(entries.entry_key(FileId("/log/w.json", "1-2")))
    return names


def test_each_change_of_the_program_changes_the_key(program: Path) -> None:
    one, two = program / "views" / "one.py", program / "two.py"
    changes = (
        lambda: one.write_text("x = 3"),
        lambda: two.write_text(""),
        lambda: two.rename(program / "three.py"),
        lambda: (one.write_text("x ="), (program / "three.py").write_text(" 3")),
    )
    names = keys_after(program, *changes)
    assert len({*names}) == len(names)


def test_nothing_else_changes_the_key(program: Path, tmp_path: Path) -> None:
    """Neither a new time of a file, nor files of Python or a build, nor a surface, nor the program's folder."""
    one = program / "views" / "one.py"
    changes = (
        lambda: os.utime(one, (1, 1)),
        lambda: _write(program / "views" / "__pycache__" / "one.py", "y"),
        lambda: _write(program / "static" / "index.py", "y"),
        lambda: _write(program / "views" / "notes.txt", "y"),
        lambda: _write(program / "cli" / "main.py", "y"),
    )
    names = keys_after(program, *changes)
    moved = tmp_path / "elsewhere"
    program.rename(moved)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "_PACKAGE", str(moved))
        names += keys_after(moved)
    assert len({*names}) == 1


def test_code_that_the_key_leaves_out_is_used_by_no_session() -> None:
    """Import-linter sees to it that what is above sessions is imported by nothing below."""
    settings = Path(__file__).parents[3] / "pyproject.toml"
    contracts = msgspec.toml.decode(settings.read_bytes())["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each.get("containers") == ["torch_tb_profiler"])
    above = {name for layer in layers[: layers.index("session")] for name in layer.split(" | ")}
    assert {*entries._WITHOUT_RESULTS} - {"static"} <= above


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_a_key_is_the_same_in_every_process_and_needs_no_view() -> None:
    code = (
        "import sys; from torch_tb_profiler.session.cache.entries import entry_key; "
        "from torch_tb_profiler.storage import FileId; "
        "print(entry_key(FileId('/log/w.json', '1-2')), 'numpy' in sys.modules)"
    )
    printed = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code]
        printed.add(subprocess.check_output(command, env=environment, text=True, timeout=PATIENCE))
    assert len(printed) == 1
    assert printed.pop().endswith(" False\n")


def test_a_summary_of_other_views_is_out_of_date(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update that adds a view, a cached file is checked for whether it has something to show there."""
    with Session([Root(str(folder))], caching_settings()) as session:
        session.scan()
        overview(session)
    with Session([Root(str(folder))], caching_settings()) as session:
        session.scan()
        target = session.find(None, None, None)
        session.load(target.span)
        assert session.state(target.span).state == "ready"
    *others, last = views.SLUGS
    monkeypatch.setattr(views, "SLUGS", tuple(others))
    with Session([Root(str(folder))], caching_settings()) as session:
        session.scan()
        overview(session)
        assert last not in (session.unavailable(session.find(None, None, None)) or {})


@pytest.mark.parametrize(("cached", "built"), [("never", 4), ("on_request", 1), ("on_load", 1)])
def test_an_answer_is_built_once_and_cached(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cached: Literal["never", "on_request", "on_load"], built: int
) -> None:
    traces = []

    def build(trace: Trace, params: NoParams) -> HealthOnly:
        traces.append(len(trace))
        return HealthOnly()

    part = TraceView("counted/part", "Counted", NoParams, HealthOnly, build, cached=cached)
    add_tab(monkeypatch, Tab("", TraceView("counted", "Tab", NoParams, HealthOnly, build), parts=(part,)))
    for _ in range(2):
        with Session([Root(str(folder))], caching_settings()) as session:
            session.scan()
            for _ in range(2):
                assert session.view("counted/part", wait=True, timeout=PATIENCE).payload == b'{"health":[]}'
    assert traces == [1] * built
