"""The page for frames without an origin of their own, such as `<iframe sandbox="allow-scripts">` in a viewer.

A browser lets such a frame read nothing from the server unless the server allows it, and to the server it looks
like the frame of any other web site. So this page has a key that no other page can read, and all of its requests
go to paths that begin with it; only these may be read by frames without an origin.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.http.query import PAGE_HEADER
from torch_tb_profiler.http.responses import ValidatedResponse

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PAGE_PATH = "/page.html"

_ALLOWED = (
    # The origin that browsers send for a frame that has none.
    ("Access-Control-Allow-Origin", "null"),
    ("Access-Control-Allow-Methods", "GET, HEAD, POST"),
    ("Access-Control-Allow-Headers", f"{PAGE_HEADER}, Content-Type, If-None-Match"),
)

_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'sha256-{digest}'"
)
"""As TensorBoard's for the pages of plugins: nothing is requested from elsewhere."""


class SandboxedPage:
    """The page at `PAGE_PATH`, and the routes of `application` below a key."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self._application = application
        self._key = secrets.token_urlsafe(16)

    def serves(self, path: str) -> bool:
        """Return whether a path, relative to the plugin's prefix, is that of the page or below its key."""
        return path == PAGE_PATH or path.startswith(f"/{self._key}/")

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        if environ["PATH_INFO"] == PAGE_PATH:
            return self._page()(environ, start_response)
        if environ["REQUEST_METHOD"] == "OPTIONS":
            # A browser asks first whether the frame may send what it is about to.
            return ValidatedResponse(status=204, headers=_ALLOWED)(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, *_ALLOWED], *rest)

        path = environ["PATH_INFO"].removeprefix(f"/{self._key}")
        return self._application({**environ, "PATH_INFO": path}, start)

    def _page(self) -> ValidatedResponse:
        script = f'import("./{self._key}/index.js").then(page => void page.render());'
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        html = f'<!DOCTYPE html>\n<meta charset="utf-8">\n<body><script type="module">{script}</script></body>\n'
        response = ValidatedResponse(html, content_type="text/html; charset=utf-8")
        response.headers["Content-Security-Policy"] = _POLICY.format(digest=digest)
        response.headers["Cache-Control"] = "no-store"
        return response
