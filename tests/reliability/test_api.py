"""The HTTP API against its own OpenAPI description, with requests that schemathesis makes up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.logs import trace
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.http import App
from torch_tb_profiler.http.openapi import build_document
from torch_tb_profiler.session import Root, Session

schemathesis = pytest.importorskip("schemathesis")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # The test client reads a download and does not close it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TRACE = ("run", "worker", "span", "base_run", "base_worker", "base_span")

PREFIX = "/data/plugin/pytorch_profiler"


class Served:
    """The API below its prefix, and its description, as one WSGI application."""

    def __init__(self, app: App) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        path = environ.get("PATH_INFO", "")
        if path == "/openapi.json":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(build_document()).encode()]
        environ["PATH_INFO"] = path.removeprefix(PREFIX)
        return self._app(environ, start_response)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log")
    for run in ("a", "b"):
        (log / run).mkdir()
        for worker in range(2):
            (log / run / f"rank{worker}.1.pt.trace.json").write_bytes(trace(worker, 50))
    with Session([Root(str(log))], Settings(cache_bytes=0)) as session:
        session.scan()
        for each in session.catalog.runs:
            for member in each.workers:
                assert session.wait(session.load(member.spans[0]), PATIENCE)
        yield Served(App(session))


OPERATIONS = [
    (method.upper(), path)
    for path, item in build_document()["paths"].items()
    for method in item
    if method in ("get", "post")
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda value: str(value))
def test_random_requests_never_crash_the_server(served: Served, method: str, path: str, long: bool) -> None:
    """Every answer is one that the description promises, and none is a defect of the server."""
    from hypothesis import HealthCheck, given, settings

    operation = schemathesis.openapi.from_wsgi("/openapi.json", served)[path][method]

    @settings(
        max_examples=300 if long else 8,
        deadline=None,
        derandomize=not long,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        if path.startswith("/view/"):
            # A made-up name is not found; what lies behind is what this is about.
            case.query = {name: value for name, value in case.query.items() if name not in TRACE}
        case.call_and_validate(
            headers={"Accept-Encoding": "identity"},
            # What makes sense only together, or only for this trace, no schema can tell.
            excluded_checks=[schemathesis.checks.positive_data_acceptance],
        )

    check()
