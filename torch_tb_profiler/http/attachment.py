"""Answers that the browser saves as files: streamed, never whole in memory."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from werkzeug.wrappers import Request, Response

PIECE = 1 << 16

_MEDIA = {".gz": "application/gzip", ".json": "application/json"}


@dataclass(frozen=True)
class Attachment:
    """A file on its way: name, media type, bytes; `size` where it is known."""

    name: str
    media: str
    pieces: Iterable[bytes]
    size: int | None = None
    stream: BinaryIO | None = None

    @classmethod
    def of_file(cls, name: str, size: int, stream: BinaryIO) -> Attachment:
        """A stored file as it is; the answer closes the stream."""
        media = _MEDIA.get(name[name.rfind(".") :], "application/octet-stream")
        return cls(name, media, _read(stream, size), size, stream)

    def response(self, request: Request) -> Response:
        """The answer to a GET, or to a HEAD without the bytes."""
        head = request.method == "HEAD"
        packed = self.size is None and request.accept_encodings.quality("gzip") > 0
        pieces = _gzip(self.pieces) if packed else self.pieces
        response = Response(() if head else pieces, content_type=self.media)
        if self.stream is not None:
            response.call_on_close(self.stream.close)
        if self.size is not None:
            response.content_length = self.size
        if packed:
            response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Disposition"] = f'attachment; filename="{safe_name(self.name)}"'
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        response.headers["Vary"] = "Accept-Encoding"
        return response


def _read(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """The first `size` bytes: a file that has grown since it was listed must not outgrow its announced length."""
    left = size
    while left and (piece := stream.read(min(PIECE, left))):
        left -= len(piece)
        yield piece


def safe_name(name: str) -> str:
    """A file name without anything that a header or a file system could take for more than a name."""
    return re.sub(r"[^A-Za-z0-9._+=@-]+", "_", name).lstrip(".") or "trace"


def _gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(5, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for piece in pieces:
        packed = packer.compress(piece)
        if packed:
            yield packed
    yield packer.flush()
