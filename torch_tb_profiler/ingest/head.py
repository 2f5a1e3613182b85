"""The first bytes of a file, by which its format is recognized."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

HEAD_BYTES = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # window bits that tell zlib to expect a gzip header
_MOST_UNPACKED = 4 * HEAD_BYTES


def unpack_head(head: bytes) -> bytes:
    """The first bytes as they were before they were packed with gzip; b"" if they are damaged."""
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(_GZIP).decompress(head, _MOST_UNPACKED)
    except zlib.error:
        return b""


@contextmanager
def peek_head(stream: BinaryIO) -> Iterator[tuple[bytes, BinaryIO]]:
    """(first bytes as stored, the stream with these bytes still in front)."""
    raw = stream if hasattr(stream, "readinto") else Raw(stream)
    buffered = io.BufferedReader(cast(io.RawIOBase, raw), HEAD_BYTES)
    try:
        yield buffered.peek(HEAD_BYTES), buffered
    finally:
        buffered.detach()  # else the stream of the caller would be closed with it


class Raw(io.RawIOBase):
    """A stream that can only `read`: not every file object of a remote storage has `readinto`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        piece = self._stream.read(len(target))
        target[: len(piece)] = piece
        return len(piece)
