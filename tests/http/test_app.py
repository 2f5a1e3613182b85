from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from werkzeug.test import Client, TestResponse

from tests.support.examples import examples
from tests.support.traces import document
from tests.support.waiting import until
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.http import App
from torch_tb_profiler.http.openapi import render_document
from torch_tb_profiler.http.routes import ROUTES
from torch_tb_profiler.session import Root, Session

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("log")
    (folder / "run").mkdir()
    events = [
        {"ph": "X", "cat": "cpu_op", "name": SCRIPT, "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(100)
    ]
    events += [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{i}",
            "pid": 1,
            "tid": 1,
            "ts": 5 * i,
            "dur": 5,
        }
        for i in range(20)
    ]
    (folder / "run" / "w.pt.trace.json").write_bytes(document(events))
    (folder / "run" / "empty.pt.trace.json").write_bytes(b"")
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        yield Client(App(session))


def get(client: Client, path: str, **query: str) -> TestResponse:
    return client.get(path, query_string=query, buffered=True)


def view(client: Client, worker: str) -> TestResponse:
    """Request the overview until it is ready or failed."""
    return until(lambda: get(client, "/view/overview", worker=worker), _final)


def _final(response: TestResponse) -> bool:
    assert response.status_code != 202 or response.get_json()["state"] in ("waiting", "loading")
    return response.status_code != 202


def test_runs_workers_spans_state(client: Client) -> None:
    assert [run["name"] for run in get(client, "/runs").get_json()["runs"]] == ["run"]
    workers = get(client, "/workers", run="run").get_json()["workers"]
    assert [worker["name"] for worker in workers] == ["empty", "w"]
    spans = get(client, "/spans", run="run", worker="w").get_json()["spans"]
    assert spans[0]["name"] == "1"
    assert get(client, "/state", worker="w").get_json()["file"] == "run/w.pt.trace.json"


def test_a_view_wraps_its_payload(client: Client) -> None:
    body = view(client, "w").get_json()
    assert (body["state"], body["view"], body["run"], body["worker"]) == ("ready", "overview", "run", "w")
    assert set(body["payload"]["average"]["categories"]) >= {"kernel", "cpu_exec", "other"}
    assert get(client, "/views", worker="w").get_json()["views"][0]["available"] is True


def test_a_failed_file_has_the_common_error_shape(client: Client) -> None:
    response = view(client, "empty")
    assert response.status_code == 422
    error = response.get_json()["error"]
    assert (error["code"], error["message"], error["where"]) == (
        "trace",
        "the file is empty",
        "run/empty.pt.trace.json",
    )
    health = get(client, "/health", run="run").get_json()["files"]
    assert {file["worker"]: file["state"]["state"] for file in health}["empty"] == "failed"
    assert client.post("/retry", query_string={"worker": "empty"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("/view/nothing", {}, 404, "not_found"),
        ("/view/overview", {"run": "x"}, 404, "not_found"),
        ("/view/overview", {"run": "../../etc"}, 404, "not_found"),
        ("/view/overview", {"worker": "w", "span": "-1"}, 404, "not_found"),
        ("/view/overview", {"odd": "1"}, 400, "usage"),
        ("/workers", {"odd": "1"}, 400, "usage"),
        ("/runs", {"a": "x" * 9000}, 400, "usage"),
        ("/assets/../plugin.py", {}, 404, "not_found"),
        ("/assets/..%2f..%2fplugin.py", {}, 404, "not_found"),
        ("/assets//etc/passwd", {}, 404, "not_found"),
        ("/nowhere", {}, 404, "not_found"),
    ],
)
def test_hostile_and_wrong_requests(
    client: Client, path: str, query: dict[str, str], status: int, code: str
) -> None:
    response = get(client, path, **query)
    assert response.status_code == status
    assert response.get_json()["error"]["code"] == code


def test_repeated_parameters_and_wrong_methods_are_refused(client: Client) -> None:
    assert client.get("/workers?run=a&run=b").status_code == 400
    for route in ROUTES:
        wrong = "DELETE" if route.path != "/retry" else "GET"
        path = route.path.replace("{slug}", "overview")
        response = client.open(path, method=wrong)
        assert response.status_code == 405, route.path
        assert response.headers["Allow"]


def test_answers_are_json_that_no_browser_takes_for_a_page(client: Client) -> None:
    for path in ("/runs", "/view/overview", "/nowhere", f"/view/{SCRIPT}"):
        response = get(client, path)
        assert response.headers["Content-Type"].startswith("application/json")
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_gzip_and_revalidation(client: Client) -> None:
    view(client, "w")
    path = "/view/overview?worker=w"
    plain = client.get(path)
    packed = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.data) < len(plain.data)
    again = client.get(path, headers={"If-None-Match": plain.headers["ETag"]})
    assert again.status_code == 304
    assert client.head(path).data == b""


def test_the_original_file_is_downloaded_unchanged(client: Client) -> None:
    response = get(client, "/download", worker="w")
    assert response.headers["Content-Disposition"] == 'attachment; filename="w.pt.trace.json"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert len(json.loads(response.data)["traceEvents"]) == 120
    assert int(response.headers["Content-Length"]) == len(response.data)
    head = client.head("/download?worker=w", buffered=True)
    assert (head.status_code, head.data) == (200, b"")
    for worker in ("../run/w", "w/../w", "w.pt.trace.json"):
        assert get(client, "/download", worker=worker).status_code == 404


def test_a_part_of_a_trace_is_downloaded_as_a_trace(client: Client) -> None:
    view(client, "w")
    response = get(client, "/slice", worker="w", begin="10000", end="20000", categories="cpu_op")
    assert response.headers["Content-Disposition"] == 'attachment; filename="w.slice.json"'
    events = json.loads(response.data)["traceEvents"]
    assert [event["ts"] for event in events] == list(range(10, 20))
    packed = client.get("/slice?worker=w&step=3", buffered=True, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert {event["name"] for event in json.loads(gzip.decompress(packed.data))["traceEvents"]} == {
        SCRIPT,
        "ProfilerStep#3",
    }
    assert get(client, "/slice", worker="w", step="x").status_code == 400
    assert get(client, "/slice", worker="w", begin="x").status_code == 400
    assert get(client, "/slice", worker="empty").status_code in (202, 422)


TEXT = st.text(max_size=12) | st.sampled_from(["", "\0", "\r\nX: 1", "%", "../", "run", "w", "1"])


@hypothesis_settings(max_examples=examples(150))
@given(
    st.sampled_from([route.path.replace("{slug}", "overview") for route in ROUTES if route.method == "GET"]),
    st.dictionaries(st.sampled_from(["run", "worker", "span", "x", "step"]) | TEXT, TEXT, max_size=3),
)
def test_no_query_breaks_the_server(client: Client, path: str, query: dict[str, str]) -> None:
    try:
        response = client.get(path, query_string=query, buffered=True)
    except UnicodeEncodeError:
        return  # a lone surrogate cannot be sent
    assert response.status_code in (200, 202, 400, 404, 422)
    if response.status_code != 200 or path not in ("/download", "/slice"):
        body: Any = json.loads(response.data)
        assert response.status_code < 400 or body["error"]["message"]


def test_the_committed_openapi_document_is_fresh() -> None:
    committed = Path(__file__).resolve().parents[2] / "fe" / "openapi.json"
    assert committed.read_text(encoding="utf-8") == render_document(), (
        "run `python -m torch_tb_profiler.http.openapi > fe/openapi.json` and `npm run types` in fe/"
    )
