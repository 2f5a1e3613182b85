"""After an update: what is kept of a file is used only if it is what this version would have kept."""

from __future__ import annotations

import json
import sys
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from tests.support.traces import document
from tests.support.views import add_tab
from tests.support.waiting import PATIENCE
from torch_tb_profiler import views
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.model.health import Note
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import Root, Session, loading
from torch_tb_profiler.session.kept import structure
from torch_tb_profiler.view import NoParams, Reduction, RunView, Tab, TraceView


class HealthOnly(msgspec.Struct, frozen=True):
    health: tuple[Note, ...] = ()


def kept() -> Settings:
    return replace(Settings.from_environment(), small_file_bytes=0, executor="serial")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    (tmp_path / "w.1.pt.trace.json").write_bytes(document([event]))
    return tmp_path


def overview(session: Session) -> dict[str, Any]:
    answer = session.view("overview", wait=True, timeout=PATIENCE)
    assert answer.payload is not None, answer.state
    payload: dict[str, Any] = json.loads(answer.payload)
    return payload


def test_an_entry_of_another_structure_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update that changes what a view keeps of a trace, the trace is read again."""
    opened: list[str] = []
    load = loading.Loader.load

    def counting(loader: loading.Loader, file: ListedFile, *rest: Any, **named: Any) -> Any:
        opened.append(file.path)
        return load(loader, file, *rest, **named)

    monkeypatch.setattr(loading.Loader, "load", counting)

    def load_again(reads: int) -> None:
        with Session([Root(str(folder))], kept()) as session:
            session.scan()
            assert overview(session)["steps"]
        assert len(opened) == reads

    load_again(1)
    load_again(1)
    module = sys.modules["torch_tb_profiler.views.distributed"]
    tab: Tab = module.TAB
    assert isinstance(tab.view, RunView)
    changed = make_dataclass("Changed", [("events", int)])
    view = replace(tab.view, reduction=Reduction("distributed", changed, lambda trace: changed(len(trace))))
    monkeypatch.setattr(module, "TAB", replace(tab, view=view))
    load_again(1)  # the structure is known of the program's files
    _write_program(monkeypatch)
    load_again(2)


def _write_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process finds a program whose files were written."""
    monkeypatch.setattr(structure, "_known", {})
    monkeypatch.setattr(structure, "_stamp", lambda slugs: "0" * 40)
    monkeypatch.setattr(structure, "_spelled", structure._spelled.__wrapped__)


def test_a_process_knows_the_structure_from_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(str(tmp_path), 1 << 20)
    _write_program(monkeypatch)
    spelled = structure.structure(cache)

    def never(slugs: tuple[str, ...]) -> str:
        raise AssertionError("it is kept")

    monkeypatch.setattr(structure, "_known", {})
    monkeypatch.setattr(structure, "_spelled", never)
    assert structure.structure(cache) == spelled


def test_a_file_of_the_program_that_is_written_changes_the_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "views" / "_shared" / "one.py"
    source.parent.mkdir(parents=True)
    source.write_text("x = 1")
    monkeypatch.setattr(structure, "_PACKAGE", str(tmp_path))
    stamps = [structure._stamp.__wrapped__(())]
    source.write_text("x = 12")
    stamps.append(structure._stamp.__wrapped__(()))
    (tmp_path / "two.py").write_text("")
    stamps.append(structure._stamp.__wrapped__(()))
    assert len({*stamps}) == 3


def test_a_summary_of_other_views_is_out_of_date(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update that brings a view, a kept file is asked whether it has something to show there."""
    with Session([Root(str(folder))], kept()) as session:
        session.scan()
        overview(session)
    with Session([Root(str(folder))], kept()) as session:
        session.scan()
        target = session.find(None, None, None)
        session.load(target.span)
        assert session.state(target.span).state == "ready"
    *others, last = views.SLUGS
    monkeypatch.setattr(views, "SLUGS", tuple(others))
    with Session([Root(str(folder))], kept()) as session:
        session.scan()
        overview(session)
        assert last not in (session.unavailable(session.find(None, None, None)) or {})


@pytest.mark.parametrize(("asked", "built"), [("never", 4), ("asked", 1), ("parsed", 1)])
def test_an_answer_is_kept_once_it_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, asked: Literal["never", "asked", "parsed"], built: int
) -> None:
    traces = []

    def build(trace: Trace, params: NoParams) -> HealthOnly:
        traces.append(len(trace))
        return HealthOnly()

    part = TraceView("counted/part", "Counted", NoParams, HealthOnly, build, kept=asked)
    add_tab(monkeypatch, Tab("", TraceView("counted", "Tab", NoParams, HealthOnly, build), parts=(part,)))
    for _ in range(2):
        with Session([Root(str(folder))], kept()) as session:
            session.scan()
            for _ in range(2):
                assert session.view("counted/part", wait=True, timeout=PATIENCE).payload == b'{"health":[]}'
    assert traces == [1] * built
