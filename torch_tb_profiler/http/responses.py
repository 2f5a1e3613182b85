"""From the body of an answer to the bytes of a response."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from isal import igzip
from werkzeug.wrappers import Request, Response

from torch_tb_profiler.http.attachment import Attachment
from torch_tb_profiler.http.bodies import ErrorBody, Pending
from torch_tb_profiler.session import ErrorInfo

STATUS = {
    "usage": 400,
    "not_found": 404,
    "undecided": 400,
    "storage": 422,
    "missing_extra": 422,
    "trace": 422,
    "too_large": 422,
    "worker_died": 422,
    "cluster": 422,
}
"""Code of an error -> HTTP status; 500 for any other."""

GZIP_FROM = 1024
"""Smaller bodies are sent as they are."""


def respond(body: Any, request: Request) -> Response:
    """The response to a request: a file, or JSON with the status that the body stands for."""
    if isinstance(body, Attachment):
        return body.response(request)
    return _json(status(body), body, request)


def respond_error(error: BaseException, request: Request) -> Response:
    """The one shape of every failure."""
    return respond(ErrorBody(ErrorInfo.of(error)), request)


def refuse_method(error: BaseException, methods: tuple[str, ...], request: Request) -> Response:
    """405 with the methods that are allowed."""
    return _json(405, ErrorBody(ErrorInfo.of(error)), request, {"Allow": ", ".join(methods)})


def status(body: Any) -> int:
    """The HTTP status that a body stands for."""
    if isinstance(body, ErrorBody):
        return STATUS.get(body.error.code, 500)
    return 202 if isinstance(body, Pending) else 200


def _json(status: int, body: Any, request: Request, headers: Mapping[str, str] | None = None) -> Response:
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
