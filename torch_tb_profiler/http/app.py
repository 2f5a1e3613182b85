"""The WSGI application. Responses are JSON in base units, or files; all errors have the same shape."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http.client import NO_CONTENT
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from torch_tb_profiler.base.errors import NotFoundError, ProfilerError, UsageError
from torch_tb_profiler.http.page import SandboxedPage, StaticFiles
from torch_tb_profiler.http.query import read_body, read_query
from torch_tb_profiler.http.responses import ValidatedResponse, refuse_method, respond, respond_error
from torch_tb_profiler.http.routes import ROUTES, VIEW, Route
from torch_tb_profiler.http.turns import Key, Turns, is_abandoned
from torch_tb_profiler.session import Session

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

logger = logging.getLogger(__name__)


class App:
    """The WSGI application of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._static = StaticFiles()
        self._turns = Turns()
        self._routes = self._mount_routes()
        self._sandboxed = SandboxedPage(self._answer)

    def _mount_routes(self) -> dict[str, Callable[..., Any]]:
        """Return path -> WSGI application, relative to the plugin's prefix; "*" at the end matches any rest."""
        page = _wsgi("the page", self._static.response)
        routes: dict[str, Callable[..., Any]] = {"/index.js": page, "/assets/*": page}
        for route in ROUTES:
            path = f"{VIEW}*" if route.path.startswith(VIEW) else route.path
            routes[path] = self._serve(route)
        return routes

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        """Serve all routes as one WSGI application."""
        if self._sandboxed.serves(environ.get("PATH_INFO", "")):
            return self._sandboxed(environ, start_response)
        return self._answer(environ, start_response)

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        path = environ.get("PATH_INFO", "")
        for pattern, application in self._routes.items():
            if path == pattern or (pattern.endswith("/*") and path.startswith(pattern[:-1])):
                return application(environ, start_response)
        error = NotFoundError(f"there is no route {path!r}")
        return respond_error(error, Request(environ))(environ, start_response)

    def _serve(self, route: Route) -> Callable[..., Any]:
        methods = ("GET", "HEAD") if route.method == "GET" else (route.method,)

        def answer(request: Request) -> Response:
            if request.method not in methods:
                return refuse_method(UsageError(f"this route only accepts {route.method}"), methods, request)
            query = read_query(request, route.params)
            if route.max_content > 0:
                query = query._replace(content=read_body(request, route.max_content))
            if not route.path.startswith(VIEW):
                return respond(route.handler(self._session, query), request)
            with self._turns.take(_turn_key(request)):
                if is_abandoned(request.environ):
                    return ValidatedResponse(status=NO_CONTENT)
                return respond(route.handler(self._session, query, request.path.partition(VIEW)[2]), request)

        return _wsgi(route.path, answer)


def _turn_key(request: Request) -> Key:
    """Return what requests for one view of one trace share, whatever their parameters."""
    return (request.path, *(request.args.get(name) for name in ("run", "worker", "span")))


def _wsgi(name: str, answer: Callable[[Request], Response]) -> Callable[..., Any]:
    """Return the WSGI application of a function that may raise errors."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        request = Request(environ)
        try:
            response = answer(request)
        except ProfilerError as error:
            response = respond_error(error, request)
        except Exception as error:  # outermost level: a bug must not stop the server
            logger.exception("answering %s failed", name)
            response = respond_error(error, request)
        return response(environ, start_response)

    return application
