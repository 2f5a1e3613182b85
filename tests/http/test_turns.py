"""Requests for one view of one trace take turns, and one that nobody waits for isn't answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import eq
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import pytest
from werkzeug.serving import make_server
from werkzeug.test import Client

from tests.support.page import draw_training
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.http import App
from torch_tb_profiler.http.turns import is_abandoned
from torch_tb_profiler.session import Root, Session

KEY = ("/view/operators", "run", None, None)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.pt.trace.json").write_bytes(draw_training())
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        session.scan()
        session.view("operators", run="run", wait=True)
        yield session


def test_a_filter_that_was_typed_on_is_not_computed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(session)
    computed: list[str] = []
    started, go_on = Event(), Event()
    answer = session.view

    def slow_view(slug: str, run: str, worker: str, span: str, params: dict[str, str]) -> Any:
        computed.append(params["step"])
        started.set()
        assert go_on.wait(PATIENCE)
        return answer(slug, run, worker, span, params)

    monkeypatch.setattr(session, "view", slow_view)

    def ask(step: str, connection: socket.socket) -> int:
        query = {"run": "run", "step": step}
        environ = {"werkzeug.socket": connection}
        response = Client(app).get("/view/operators", query_string=query, environ_overrides=environ)
        # TensorBoard warns about answers without them.
        assert response.headers["Content-Type"] and response.headers["X-Content-Type-Options"] == "nosniff"
        return response.status_code

    pairs = [socket.socketpair() for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(ask, "1", pairs[0][0])]
        assert started.wait(PATIENCE)
        answers += [threads.submit(ask, step, pair[0]) for step, pair in zip("23", pairs[1:], strict=True)]
        until(lambda: app._turns.count(KEY), lambda count: count == 3)
        pairs[1][1].close()  # the page gives up the second request while it waits for its turn
        go_on.set()
        assert [each.result(PATIENCE) for each in answers] == [200, 204, 200]
    assert sorted(computed) == ["1", "3"]
    assert app._turns.count(KEY) == 0
    for here, there in pairs:
        here.close()
        there.close()


@pytest.mark.parametrize(
    ("slug", "field", "more"),
    [
        ("trace/search", "query", ""),
        ("trace/hits", "query", "&begin=0&end=1000000"),
        ("memory/events", "search", "&limit=100"),
    ],
)
def test_of_a_name_that_is_typed_a_server_finds_the_first_letter_and_the_whole(
    session: Session, monkeypatch: pytest.MonkeyPatch, slug: str, field: str, more: str
) -> None:
    """A page aborts the search before when another letter is typed; only one that had begun is computed."""
    app = App(session)
    computed: list[str] = []
    started, go_on = Event(), Event()
    answer = session.view

    def slow_view(slug: str, run: str, worker: str, span: str, params: dict[str, str]) -> Any:
        computed.append(params[field])
        started.set()
        assert go_on.wait(PATIENCE)
        return answer("operators", run, worker, span, {})

    monkeypatch.setattr(session, "view", slow_view)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    typed = ["aten::mm"[:length] for length in range(1, 9)]
    address, key = f"/view/{slug}?run=run{more}&{field}=", (f"/view/{slug}", "run", None, None)
    connection = _send(server.port, address + quote(typed[0]))
    assert started.wait(PATIENCE)
    for count, query in enumerate(typed[1:], 2):
        before, connection = connection, _send(server.port, address + quote(query))
        until(lambda: app._turns.count(key), partial(eq, count))
        before.close()
    go_on.set()
    with connection, connection.makefile("rb") as reply:
        assert reply.readline().split()[1] == b"200"
    until(lambda: app._turns.count(key) == 0)
    server.shutdown()
    thread.join()
    server.server_close()
    assert computed == [typed[0], typed[-1]]


def _send(port: int, path: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: here.test\r\n\r\n".encode())
    return connection


def test_a_client_that_waits_is_not_taken_for_gone() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert not is_abandoned({"werkzeug.socket": here})
        there.sendall(b"GET /next")  # a further request on the same connection
        assert not is_abandoned({"werkzeug.socket": here})
        assert not is_abandoned({})
        there.close()
        assert here.recv(100) == b"GET /next"
        assert is_abandoned({"werkzeug.socket": here})
    assert is_abandoned({"werkzeug.socket": here})
