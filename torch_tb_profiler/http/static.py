"""Serve the built page; only files in the listing of its folder are ever served."""

from __future__ import annotations

import gzip
import hashlib
import os
from functools import cached_property
from pathlib import Path

from werkzeug.wrappers import Request, Response

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.http.responses import ValidatedResponse

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


class StaticFiles:
    """The files of the page; compressed copies are cached at the first request."""

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
