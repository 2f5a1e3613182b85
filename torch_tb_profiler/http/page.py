"""Serve the built page, also to frames without an origin of their own.

Only files in the listing of its folder are ever served. A frame such as `<iframe sandbox="allow-scripts">` in a
viewer may read nothing from the server unless the server allows it, and to the server it looks like the frame of
any other web site. So the page for such frames has a key that no other page can read, and all of its requests go
to paths that begin with it; only these may be read by frames without an origin.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import secrets
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.http.query import PAGE_HEADER
from torch_tb_profiler.http.responses import ValidatedResponse

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


STATIC_FOLDER = Path(__file__).resolve().parent.parent / "static"

# Fixed, because the table of a platform may map .js to text/plain, and then browsers refuse modules.
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".json": "application/json; charset=utf-8",
}
_IMMUTABLE = "public, max-age=31536000, immutable"


PAGE_PATH = "/page.html"
"""Path of the page for frames without an origin."""

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


class StaticFiles:
    """Serves the files of the page; compressed copies are cached at the first request."""

    def __init__(self, folder: Path = STATIC_FOLDER) -> None:
        self._folder = folder
        self._compressed: dict[str, bytes] = {}

    @cached_property
    def _paths(self) -> dict[str, Path]:
        return {
            path.relative_to(self._folder).as_posix(): path
            for path in self._folder.rglob("*")
            if path.is_file() and path.suffix in _TYPES
        }

    def response(self, request: Request) -> Response:
        """Return a file of the page; NotFoundError for anything else."""
        path = request.path
        name = f"assets/{path.rsplit('/assets/', 1)[1]}" if "/assets/" in path else os.path.basename(path)
        file = self._paths.get(name)
        if file is None:
            hint = None if self._paths else "the page is not built: run `python setup.py build_fe`"
            raise NotFoundError(f"there is no page file {name!r}", hint=hint)
        content = file.read_bytes()
        response = ValidatedResponse(content, content_type=_TYPES[file.suffix])
        response.headers["Vary"] = "Accept-Encoding"
        response.headers["Cache-Control"] = _IMMUTABLE if name.startswith("assets/") else "no-cache"
        response.set_etag(hashlib.sha256(content).hexdigest()[:32], weak=True)
        if request.accept_encodings.quality("gzip") and file.suffix in (".js", ".css", ".svg"):
            if name not in self._compressed:
                self._compressed[name] = gzip.compress(content, 9, mtime=0)
            response.set_data(self._compressed[name])
            response.headers["Content-Encoding"] = "gzip"
        return response.make_conditional(request)


class SandboxedPage:
    """Serves the page at `PAGE_PATH`, and the routes of `application` below its key."""

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
