"""Build the HTTP response for the body of an answer: JSON, or a file that the browser saves."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
from isal import igzip
from werkzeug.wrappers import Request, Response

from torch_tb_profiler.http.bodies import ErrorBody, PendingBody
from torch_tb_profiler.session import ErrorInfo

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment
    from werkzeug.datastructures import Headers

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

MIN_GZIP_BYTES = 1024
"""Smaller bodies are sent uncompressed."""

CHUNK_BYTES = 1 << 16
"""Bytes of a file that are read and sent at once."""

_MEDIA_TYPES = {".gz": "application/gzip", ".json": "application/json"}


class ValidatedResponse(Response):
    """A response whose headers TensorBoard's security validator accepts for any status.

    Werkzeug removes the content type of a 304, which the validator warns about, and adds a date, which the server
    of TensorBoard adds again. No browser may take an answer for another type than it says.
    """

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        headers = super().get_wsgi_headers(environ)
        headers["Content-Type"] = self.content_type or "application/octet-stream"
        headers["X-Content-Type-Options"] = "nosniff"
        headers.remove("Date")
        return headers


def respond(body: Any, request: Request) -> Response:
    """Return the response to a request: a file, or JSON with the status of the body."""
    if isinstance(body, Attachment):
        return body.response(request)
    return _json_response(http_status(body), body, request)


def respond_error(error: BaseException, request: Request) -> Response:
    """Return the response for an error; all errors have the same shape."""
    return respond(ErrorBody(ErrorInfo.of(error)), request)


def refuse_method(error: BaseException, methods: tuple[str, ...], request: Request) -> Response:
    """Return a 405 response that lists the allowed methods."""
    return _json_response(405, ErrorBody(ErrorInfo.of(error)), request, {"Allow": ", ".join(methods)})


def http_status(body: Any) -> int:
    """Return the HTTP status of a body."""
    if isinstance(body, ErrorBody):
        return STATUS.get(body.error.code, 500)
    return 202 if isinstance(body, PendingBody) else 200


def _json_response(status: int, body: Any, request: Request, headers: Mapping[str, str] | None = None) -> Response:
    content = msgspec.json.encode(body)
    response = ValidatedResponse(content, status=status, content_type="application/json; charset=utf-8")
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Vary"] = "Accept-Encoding"
    for name, value in (headers or {}).items():
        response.headers[name] = value
    if status == 200:
        response.set_etag(hashlib.sha256(content).hexdigest()[:32], weak=True)
    if len(content) >= MIN_GZIP_BYTES and request.accept_encodings.quality("gzip"):
        response.set_data(igzip.compress(content, 2, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response.make_conditional(request)


@dataclass(frozen=True)
class Attachment:
    """A file for the browser to save, which is streamed and never entirely in memory; `size` if it is known."""

    name: str
    media_type: str
    chunks: Iterable[bytes]
    size: int | None = None
    stream: BinaryIO | None = None

    @classmethod
    def of_file(cls, name: str, size: int, stream: BinaryIO) -> Attachment:
        """Return a stored file unchanged; the response closes the stream."""
        media_type = _MEDIA_TYPES.get(name[name.rfind(".") :], "application/octet-stream")
        return cls(name, media_type, _read_chunks(stream, size), size, stream)

    def response(self, request: Request) -> Response:
        """Return the response to a GET, or to a HEAD without the content."""
        head = request.method == "HEAD"
        compress = self.size is None and request.accept_encodings.quality("gzip") > 0
        chunks = _gzip(self.chunks) if compress else self.chunks
        response = ValidatedResponse(() if head else chunks, content_type=self.media_type)
        if self.stream is not None:
            response.call_on_close(self.stream.close)
        if self.size is not None:
            response.content_length = self.size
        if compress:
            response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Disposition"] = f'attachment; filename="{safe_name(self.name)}"'
        response.headers["Cache-Control"] = "no-store"
        response.headers["Vary"] = "Accept-Encoding"
        return response


def safe_name(name: str) -> str:
    """Return a file name without characters that a header or a file system could misinterpret."""
    return re.sub(r"[^A-Za-z0-9._+=@-]+", "_", name).lstrip(".") or "trace"


def _read_chunks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes: a file that has grown must not exceed its announced length."""
    left = size
    while left and (chunk := stream.read(min(CHUNK_BYTES, left))):
        left -= len(chunk)
        yield chunk


def _gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(5, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for chunk in chunks:
        compressed = compressor.compress(chunk)
        if compressed:
            yield compressed
    yield compressor.flush()
