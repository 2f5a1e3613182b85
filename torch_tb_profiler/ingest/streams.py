"""File objects of stored bytes: the first bytes of a file, and several files read as one."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, cast

from torch_tb_profiler.base.errors import TraceError

HEAD_BYTES = 1 << 16
"""Stored bytes at the front of a file by which its format is recognized."""

GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW_BITS = 31
"""Window bits that tell zlib to expect a gzip header."""

_MAX_UNPACKED_HEAD_BYTES = 4 * HEAD_BYTES
"""Most bytes that the front of a packed file is unpacked to, however well it is compressed."""


def unpack_head(head: bytes) -> bytes:
    """Return the first bytes after gzip decompression, or b"" if they are damaged."""
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(GZIP_WINDOW_BITS).decompress(head, _MAX_UNPACKED_HEAD_BYTES)
    except zlib.error:
        return b""


@contextmanager
def peek_head(stream: BinaryIO) -> Iterator[tuple[bytes, BinaryIO]]:
    """Yield the first stored bytes, and a stream that still begins with them."""
    raw = stream if hasattr(stream, "readinto") else RawStream(stream)
    buffered = io.BufferedReader(cast(io.RawIOBase, raw), HEAD_BYTES)
    try:
        yield buffered.peek(HEAD_BYTES), buffered
    finally:
        buffered.detach()  # otherwise the caller's stream would be closed with it


class RawStream(io.RawIOBase):
    """A raw stream over a file object that can only `read`, as those of some remote storages do."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        piece = self._stream.read(len(target))
        target[: len(piece)] = piece
        return len(piece)


class JoinedFiles(io.RawIOBase):
    """The lines of several files of one recording, one file after the other, each plain or gzip.

    Each file is opened when the one before it ends. A truncated last line stays a line of its own.
    Raises TraceError while reading if a gzip file is damaged.
    """

    def __init__(self, files: Sequence[Callable[[], BinaryIO]]) -> None:
        self._files = iter(files)
        self._opened = ExitStack()
        self._stream: BinaryIO | None = None
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._ended:
            if self._stream is None:
                self._open_next()
                continue
            try:
                piece = self._stream.read(len(target))
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise TraceError(f"a gzip file of this recording is damaged: {error}") from error
            if piece:
                target[: len(piece)] = piece
                return len(piece)
            self._opened.close()
            self._stream = None
            target[:1] = b"\n"
            return 1
        return 0

    def close(self) -> None:
        self._opened.close()
        super().close()

    def _open_next(self) -> None:
        open_ = next(self._files, None)
        if open_ is None:
            self._ended = True
            return
        stored = self._opened.enter_context(open_())
        buffered = io.BufferedReader(RawStream(stored))
        packed = buffered.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
        self._stream = cast(BinaryIO, gzip.GzipFile(fileobj=buffered)) if packed else cast(BinaryIO, buffered)
