"""The page for frames without an origin: only who reads it knows the paths that such a frame may read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.test import Client

from tests.support.traces import document, event
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.http import App
from torch_tb_profiler.http.page import PAGE_PATH
from torch_tb_profiler.http.query import PAGE_HEADER
from torch_tb_profiler.session import Root, Session

NO_ORIGIN = {"Origin": "null"}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.pt.trace.json").write_bytes(document([event("host cpu_op aten::mm 0 10")]))
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        session.scan()
        # Read before it is asked about: answers about a file that is being read differ from each other.
        assert session.view("overview", wait=True, timeout=PATIENCE).payload is not None
        yield session


def key_of(client: Client) -> str:
    found = re.search(r'import\("\./([^/"]+)/index\.js"\)', client.get(PAGE_PATH).text)
    assert found
    return found.group(1)


def test_only_paths_below_the_key_may_be_read_by_a_frame_without_an_origin(session: Session) -> None:
    client = Client(App(session))
    for path in ("/runs", "/index.js", "/view/overview", PAGE_PATH, "/another-key/runs"):
        answer = client.get(path, headers=NO_ORIGIN)
        assert "Access-Control-Allow-Origin" not in answer.headers, path
    answer = client.get(f"/{key_of(client)}/runs", headers=NO_ORIGIN)
    assert answer.headers["Access-Control-Allow-Origin"] == "null"
    assert answer.get_json() == client.get("/runs").get_json()
    failed = client.get(f"/{key_of(client)}/view/none", headers=NO_ORIGIN)
    assert (failed.status_code, failed.headers["Access-Control-Allow-Origin"]) == (404, "null")


def test_a_save_is_announced_and_needs_the_key(session: Session, tmp_path: Path) -> None:
    client = Client(App(session))
    preflight = client.options(f"/{key_of(client)}/save", headers=NO_ORIGIN)
    assert preflight.status_code == 204
    assert PAGE_HEADER in preflight.headers["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Origin" not in client.options("/save", headers=NO_ORIGIN).headers
    headers = {**NO_ORIGIN, PAGE_HEADER: "1"}
    saved = client.post(f"/{key_of(client)}/save?kind=csv", data=b"a\n", headers=headers).get_json()
    assert Path(saved["file"]).read_bytes() == b"a\n"


def test_each_server_has_its_own_key(session: Session) -> None:
    one, other = Client(App(session)), Client(App(session))
    assert key_of(one) == key_of(one) != key_of(other)
    assert other.get(f"/{key_of(one)}/runs").status_code == 404


def test_the_page_is_not_cached_and_loads_nothing_from_elsewhere(session: Session) -> None:
    headers = Client(App(session)).get(PAGE_PATH).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"].startswith("default-src 'self';")
