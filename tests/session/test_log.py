"""Log folders that change or share the names of their runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from tests.support.traces import document
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.http import App
from torch_tb_profiler.session import Root, Session, log
from torch_tb_profiler.session.log import LogFolders


def trace(count: int) -> bytes:
    return document(
        [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(count)]
    )


def put(path: Path, count: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(trace(count))


def slices(session: Session, run: str) -> int:
    answer = session.view("trace", run=run, wait=True, timeout=PATIENCE)
    assert answer.payload is not None, answer.state
    count: int = json.loads(answer.payload)["counts"]["slices"]
    return count


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "log" / "gone" / "w.1.pt.trace.json")
    put(tmp_path / "log" / "kept" / "w.1.pt.trace.json")
    (tmp_path / "log" / "gone" / "a.pickle").write_bytes(b"")
    return tmp_path / "log"


def test_a_run_that_vanishes_between_finding_and_loading_is_not_found(folder: Path) -> None:
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        target = session.find("gone", None, None)
        shutil.rmtree(folder / "gone")
        session.scan()
        with pytest.raises(NotFoundError, match="no longer in the log folder"):
            session.load(target.span)
        with pytest.raises(NotFoundError, match="no longer in the log folder"):
            session.retry(target.span)


def test_a_run_that_vanishes_while_a_request_is_answered_is_not_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every route that opens a file answers 404 with the reason, whichever listing comes in between."""
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        catalog = session.catalog
        shutil.rmtree(folder / "gone")
        session.scan()
        monkeypatch.setattr(type(catalog), "run", lambda self, name: catalog._by_name[name or "gone"])
        client = Client(App(session))
        for route in ("view/trace", "view/distributed", "view/memory/snapshot", "slice", "download"):
            response = client.get(f"/{route}?run=gone")
            assert response.status_code == 404, (route, response.text)
            assert response.json is not None and "gone" in response.json["error"]["where"]


def test_a_log_folder_that_vanishes_while_it_is_listed_is_an_error_and_its_runs_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a listing looks like a folder with fewer files: it is never taken for one."""
    away, scandir = folder.with_name("away"), os.scandir

    def list_and_rename(path: str) -> Any:
        listing = scandir(path)
        if path == str(folder):
            folder.rename(away)
        return listing

    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        known = session.scan().runs
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", list_and_rename)
            assert session.scan().runs == known
        assert session.error is not None and session.error.where == str(folder)
        away.rename(folder)
        assert session.scan().runs == known
        assert session.error is None


def test_two_unnamed_folders_with_a_run_of_one_name_both_show_it(tmp_path: Path) -> None:
    put(tmp_path / "a" / "run" / "w.1.pt.trace.json", 10)
    put(tmp_path / "b" / "run" / "w.1.pt.trace.json", 20)
    put(tmp_path / "b" / "other" / "w.1.pt.trace.json", 30)
    with Session([Root(str(tmp_path / "a")), Root(str(tmp_path / "b"))], Settings(cache_bytes=0)) as session:
        catalog = session.scan()
        assert [run.name for run in catalog.runs] == ["a/run", "b/run", "other"]
        assert [slices(session, name) for name in ("a/run", "b/run", "other")] == [10, 20, 30]
        assert len(catalog.problems) == 1 and "run" in catalog.problems[0]
        assert "--logdir_spec" in catalog.problems[0]


def test_folders_of_one_name_are_distinguished_by_their_parents(tmp_path: Path) -> None:
    roots = []
    for number, above in enumerate(("x", "y"), 1):
        put(tmp_path / above / "log" / "run" / "w.1.pt.trace.json", number)
        roots.append(Root(str(tmp_path / above / "log")))
    with Session([*roots, roots[0]], Settings(cache_bytes=0)) as session:
        assert [run.name for run in session.scan().runs] == ["x/log/run", "y/log/run"]
        assert [slices(session, f"{above}/log/run") for above in ("x", "y")] == [1, 2]


def test_a_named_folder_and_a_folder_below_an_unnamed_one_may_share_a_name(tmp_path: Path) -> None:
    put(tmp_path / "a" / "run" / "w.1.pt.trace.json", 1)
    put(tmp_path / "b" / "a" / "run" / "w.1.pt.trace.json", 2)
    roots: list[Any] = [Root(str(tmp_path / "a"), "a"), Root(str(tmp_path / "b"))]
    with Session(roots, Settings(cache_bytes=0)) as session:
        names = [run.name for run in session.scan().runs]
        assert len(set(names)) == 2
        assert sorted(slices(session, name) for name in names) == [1, 2]


@pytest.fixture
def growing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Make no file old enough for the first listing to load it; the second listing agrees with the first."""
    monkeypatch.setattr(log, "MIN_SETTLED_SECONDS", 1e9)
    return Session([Root(str(folder))], Settings(cache_bytes=0, poll_seconds=0.1))


def test_a_request_that_waits_gets_a_growing_file_once_it_is_complete(growing: Session) -> None:
    with growing:
        growing.start()
        until(lambda: growing.scanned)
        assert slices(growing, "kept") == 1


def test_a_request_that_waits_for_growing_ranks_is_answered_once_they_are_complete(growing: Session) -> None:
    with growing:
        growing.start()
        until(lambda: growing.scanned)
        with pytest.raises(NotFoundError, match="records no communication"):
            growing.view("distributed", run="kept", wait=True, timeout=PATIENCE)


def test_a_request_for_a_file_that_keeps_growing_is_answered_after_the_timeout(
    growing: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogFolders, "is_growing", lambda *_: True)
    with growing:
        growing.start()
        until(lambda: growing.scanned)
        assert growing.view("overview", wait=True, timeout=0.01).state.state == "waiting"
