"""Saving into the log folder: a new file, named by the server, and only for our own page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from werkzeug.test import Client, TestResponse

from tests.support.traces import document, event
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.http import App
from torch_tb_profiler.http.query import PAGE_HEADER
from torch_tb_profiler.session import Root, Session, exports

OWN = {PAGE_HEADER: "1"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.pt.trace.json").write_bytes(document([event("host cpu_op aten::mm 0 10")]))
    return tmp_path


@pytest.fixture
def client(log: Path) -> Iterator[Client]:
    with Session([Root(str(log))], Settings(cache_bytes=0)) as session:
        session.scan()
        yield Client(App(session))


def save(client: Client, content: bytes, **query: str) -> TestResponse:
    return client.post("/save", query_string=query, data=content, headers=OWN)


def saved(log: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (log / exports.SAVED_FOLDER).glob("*")}


def test_each_save_is_a_new_file_and_no_run(client: Client, log: Path) -> None:
    contents = [b"a,b\n1,2\n", b"c\n", b"d\n"]
    files = [save(client, content, kind="csv").get_json()["file"] for content in contents]
    assert len(set(files)) == 3
    assert [Path(file).read_bytes() for file in files] == contents
    assert sorted(saved(log).values()) == sorted(contents)
    with Session([Root(str(log))], Settings(cache_bytes=0)) as session:
        assert [run.name for run in session.scan().runs] == ["run"]


def test_a_file_that_is_there_is_not_replaced(client: Client, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        @staticmethod
        def now() -> datetime:
            return datetime(2026, 1, 2)

    monkeypatch.setattr(exports, "datetime", Clock)
    folder = log / exports.SAVED_FOLDER
    folder.mkdir()
    first = folder / "2026-01-02_00-00-00.svg"
    outside = log / "outside.svg"
    outside.write_bytes(b"theirs")
    first.symlink_to(outside)
    assert save(client, b"ours", kind="svg").status_code == 200
    assert outside.read_bytes() == b"theirs"
    assert saved(log)["2026-01-02_00-00-00-2.svg"] == b"ours"


@pytest.mark.parametrize("kind", ["", "json", "html", "../x.csv", "csv/../../x", "CSV"])
def test_nothing_in_a_request_becomes_a_name(client: Client, log: Path, kind: str) -> None:
    response = save(client, b"x", kind=kind)
    assert (response.status_code, response.get_json()["error"]["code"]) == (400, "usage")
    assert client.post("/save?kind=csv&name=x", data=b"x", headers=OWN).status_code == 400
    assert not (log / exports.SAVED_FOLDER).exists()


def test_another_site_cannot_save(client: Client, log: Path) -> None:
    """A form or a script of another page can't send the header without asking, and asking is refused."""
    assert client.post("/save?kind=csv", data=b"x").status_code == 400
    assert client.options("/save?kind=csv").status_code == 405
    assert not (log / exports.SAVED_FOLDER).exists()


def test_too_much_is_refused_before_it_is_read(client: Client, log: Path) -> None:
    size = {"CONTENT_LENGTH": str(exports.MAX_SAVED_BYTES + 1)}
    response = client.post("/save?kind=csv", data=b"x", headers=OWN, environ_overrides=size)
    assert response.status_code == 400
    assert "64 MiB" in response.get_json()["error"]["message"]
    assert not (log / exports.SAVED_FOLDER).exists()


def test_a_folder_that_cannot_be_written_says_so(client: Client, log: Path) -> None:
    (log / exports.SAVED_FOLDER).write_bytes(b"a file of that name")
    error = save(client, b"x", kind="csv").get_json()["error"]
    assert error["code"] == "storage"
    assert error["where"] == str(log / exports.SAVED_FOLDER)
    assert error["hint"]


def test_a_bucket_is_not_written() -> None:
    with Session([Root("memory://bucket")], Settings(cache_bytes=0)) as session:
        error = save(Client(App(session)), b"x", kind="csv").get_json()["error"]
    assert "isn't on the server's machine" in error["message"]
