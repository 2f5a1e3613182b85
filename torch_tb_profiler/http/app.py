"""The routes. Each answers JSON in base units; the one error wrapper maps every failure to the one shape."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from isal import igzip
from werkzeug.wrappers import Request, Response

from torch_tb_profiler.analyses.timeline.excerpt import Cut
from torch_tb_profiler.base.errors import NotFoundError, ProfilerError, UsageError
from torch_tb_profiler.discovery import Span
from torch_tb_profiler.http import answers
from torch_tb_profiler.http.attachment import Attachment
from torch_tb_profiler.http.static import StaticFiles
from torch_tb_profiler.session import ErrorInfo, FileState, Session, Target
from torch_tb_profiler.views import all_tabs

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

logger = logging.getLogger(__name__)

STATUS = {
    "usage": 400,
    "not_found": 404,
    "storage": 422,
    "missing_extra": 422,
    "trace": 422,
    "too_large": 422,
    "worker_died": 422,
    "cluster": 422,
}
GZIP_FROM = 1024
SELECTORS = ("run", "worker", "span")
MAX_QUERY = 8192


@dataclass(frozen=True)
class Route:
    """One row of the route table; `takes` are its query parameters, `body` what a 200 answers."""

    path: str
    method: str
    takes: tuple[str, ...]
    body: type[Any]
    handler: Callable[[App, Mapping[str, str], str], tuple[int, Any]]
    summary: str


class App:
    """WSGI handlers over a session. `mount` gives the routes as TensorBoard wants them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._static = StaticFiles()

    def mount(self) -> dict[str, Callable[..., Any]]:
        """Path -> WSGI application, below the plugin's prefix."""
        routes: dict[str, Callable[..., Any]] = {"/index.js": self._serve_static, "/assets/*": self._serve_static}
        for route in ROUTES:
            path = "/view/*" if route.path.startswith("/view/") else route.path
            routes[path] = self._serve(route)
        return routes

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        """The whole surface as one WSGI application (tests, and serving without TensorBoard)."""
        path = environ.get("PATH_INFO", "")
        for pattern, handler in self.mount().items():
            if path == pattern or (pattern.endswith("/*") and path.startswith(pattern[:-1])):
                return handler(environ, start_response)
        error = NotFoundError(f"there is no route {path!r}")
        return _error(error, Request(environ))(environ, start_response)

    def _serve(self, route: Route) -> Callable[..., Any]:
        def application(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
            request = Request(environ)
            try:
                response = self._answer(route, request)
            except ProfilerError as error:
                response = _error(error, request)
            except Exception as error:  # the edge: a defect must not take the server down
                logger.exception("answering %s failed", route.path)
                response = _error(error, request)
            return response(environ, start_response)

        return application

    def _answer(self, route: Route, request: Request) -> Response:
        methods = ("GET", "HEAD") if route.method == "GET" else (route.method,)
        if request.method not in methods:
            return _respond(405, _body(UsageError(f"use {route.method}")), request, {"Allow": ", ".join(methods)})
        slug = request.path.partition("/view/")[2] if route.path.startswith("/view/") else ""
        status, body = route.handler(self, _query(request, route), slug)
        return body.response(request) if isinstance(body, Attachment) else _respond(status, body, request)

    def _serve_static(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        request = Request(environ)
        try:
            response = self._static.response(request)
        except ProfilerError as error:
            response = _error(error, request)
        return response(environ, start_response)

    # ---- handlers -----------------------------------------------------------------------------------

    def runs(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        session = self._session
        listed = []
        for run in session.catalog.runs:
            states = [session.state(span).state for worker in run.workers for span in worker.spans]
            counts = answers.FileCounts(
                *(states.count(name) for name in ("waiting", "loading", "ready", "failed"))
            )
            spans = max((len(worker.spans) for worker in run.workers), default=0)
            size = sum(file.size for file in run.files())
            listed.append(answers.RunInfo(run.name, len(run.workers), spans, size, counts))
        problems = list(session.catalog.problems)
        return 200, answers.Runs(not session.scanned, session.error, session.root, problems, listed)

    def workers(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        run = self._session.catalog.run(query.get("run"))
        listed = [
            answers.WorkerInfo(worker.name, worker.rank, [self._span(span) for span in worker.spans])
            for worker in self._session.workers(run)
        ]
        files = [
            answers.MemoryFileInfo(number, each.name, each.kind, each.file.size)
            for number, each in enumerate(run.memory_files)
        ]
        return 200, answers.Workers(run.name, listed, files)

    def spans(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        target = self._find(query)
        spans = [self._span(span) for span in target.worker.spans]
        return 200, answers.Spans(target.run.name, target.worker.name, spans)

    def state(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        return 200, self._state(self._find(query))

    def retry(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        target = self._find(query)
        self._session.retry(target.span)
        return 200, self._state(target)

    def health(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        session = self._session
        run = session.catalog.run(query.get("run"))
        chosen = self._find(query) if "worker" in query or "span" in query else None
        files = [
            answers.FileHealth(
                worker.name,
                span.name,
                span.file.path,
                span.file.size,
                session.state(span),
                list(session.health(span)),
            )
            for worker in session.workers(run)
            for span in worker.spans
            if chosen is None or (chosen.worker.name, chosen.span.name) == (worker.name, span.name)
        ]
        return 200, answers.Health(run.name, files)

    def views(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        catalog = self._session.catalog
        reasons = self._session.unavailable(self._find(query)) if catalog.runs else None
        listed = [
            answers.ViewInfo(
                tab.slug,
                tab.view.title,
                tab.section,
                None if reasons is None else tab.slug not in reasons,
                None if reasons is None else reasons.get(tab.slug),
            )
            for tab in all_tabs()
        ]
        return 200, answers.Views(listed)

    def view(self, query: Mapping[str, str], slug: str) -> tuple[int, Any]:
        params = {name: value for name, value in query.items() if name not in SELECTORS}
        run, worker, span = (query.get(name) for name in SELECTORS)
        answer = self._session.view(slug, run, worker, span, params)
        state = answer.state
        if answer.payload is not None:
            envelope = {
                "state": "ready",
                "view": answer.view,
                "run": answer.run,
                "worker": answer.worker,
                "span": answer.span,
                "loading": answer.loading,
                "base": answer.base and answer.base._asdict(),
                "payload": msgspec.Raw(answer.payload),
            }
            return 200, envelope
        return _not_ready(state, answer.view, answer.run, answer.worker, answer.span)

    def download(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        file = self._session.original(*(query.get(name) for name in SELECTORS))
        return 200, Attachment.of_file(file.name, file.size, file.stream)

    def slice(self, query: Mapping[str, str], _: str) -> tuple[int, Any]:
        params = {name: value for name, value in query.items() if name not in SELECTORS}
        run, worker, span = (query.get(name) for name in SELECTORS)
        state, found = self._session.excerpt(run, worker, span, params)
        if found is None:
            target = self._find(query)
            return _not_ready(state, "slice", target.run.name, target.worker.name, target.span.name)
        return 200, Attachment(found.name, "application/json", found.pieces)

    def _find(self, query: Mapping[str, str]) -> Target:
        return self._session.find(*(query.get(name) for name in SELECTORS))

    def _state(self, target: Target) -> answers.State:
        state: FileState = self._session.state(target.span)
        file = target.span.file.path
        return answers.State(target.run.name, target.worker.name, target.span.name, file, state)

    def _span(self, span: Span) -> answers.SpanInfo:
        file = span.file
        return answers.SpanInfo(span.name, span.label, file.path, file.size, self._session.state(span))


def _not_ready(state: FileState, what: str, run: str, worker: str, span: str) -> tuple[int, Any]:
    """How far a file is, or why it failed."""
    if state.state == "failed" and state.error is not None:
        return STATUS.get(state.error.code, 500), answers.ErrorBody(state.error)
    pending: Any = "loading" if state.state == "loading" else "waiting"
    return 202, answers.Pending(pending, what, run, worker, span, state.progress)


_CUT = Cut.__struct_fields__

ROUTES = (
    Route("/runs", "GET", (), answers.Runs, App.runs, "All runs and how many of their files are loaded"),
    Route("/workers", "GET", ("run",), answers.Workers, App.workers, "The workers of a run with their spans"),
    Route("/spans", "GET", ("run", "worker"), answers.Spans, App.spans, "The spans of a worker"),
    Route("/state", "GET", SELECTORS, answers.State, App.state, "The state of one file"),
    Route("/retry", "POST", SELECTORS, answers.State, App.retry, "Load a failed file again"),
    Route("/health", "GET", SELECTORS, answers.Health, App.health, "What was skipped or repaired, per file"),
    Route("/views", "GET", SELECTORS, answers.Views, App.views, "The views and whether a file has them"),
    Route("/download", "GET", SELECTORS, bytes, App.download, "The file of a span as it is stored"),
    Route("/slice", "GET", (*SELECTORS, *_CUT), bytes, App.slice, "A part of a trace as a trace file of its own"),
    Route("/view/{slug}", "GET", SELECTORS, dict, App.view, "The payload of a view, or how far its file is"),
)


def _query(request: Request, route: Route) -> dict[str, str]:
    if len(request.query_string) > MAX_QUERY:
        raise UsageError("the query is too long")
    query: dict[str, str] = {}
    for name, values in request.args.lists():
        if len(values) > 1:
            raise UsageError(f"parameter {name!r} is given {len(values)} times")
        if name not in route.takes and not route.path.startswith("/view/"):
            known = ", ".join(route.takes) or "none"
            raise UsageError(f"unknown parameter {name!r}", hint=f"known parameters: {known}")
        query[name] = values[0]
    return query


def _error(error: BaseException, request: Request) -> Response:
    body = _body(error)
    return _respond(STATUS.get(body.error.code, 500), body, request)


def _body(error: BaseException) -> answers.ErrorBody:
    return answers.ErrorBody(ErrorInfo.of(error))


def _respond(status: int, body: Any, request: Request, headers: Mapping[str, str] | None = None) -> Response:
    content = msgspec.json.encode(body)
    response = Response(content, status=status, content_type="application/json; charset=utf-8")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Vary"] = "Accept-Encoding"
    for name, value in (headers or {}).items():
        response.headers[name] = value
    if status == 200:
        response.set_etag(hashlib.sha256(content).hexdigest()[:32], weak=True)
    if len(content) >= GZIP_FROM and request.accept_encodings.quality("gzip"):
        response.set_data(igzip.compress(content, 2, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response.make_conditional(request)
