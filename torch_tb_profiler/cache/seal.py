"""A checksum behind the content of a file: a damaged entry is recognized before a number of it is read."""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any

from isal import isal_zlib

_SEAL = struct.Struct("<4sI")
_MARK = b"TTPC"


class DamagedError(ValueError):
    """The content is not what was written."""


def sealed(content: bytes) -> bytes:
    """The content with its seal."""
    return content + _SEAL.pack(_MARK, isal_zlib.crc32(content))


def seal_file(path: str) -> None:
    """Put the seal behind what a file holds; OSError if that fails."""
    with open(path, "r+b") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            checksum = isal_zlib.crc32(content)
        file.seek(0, os.SEEK_END)
        file.write(_SEAL.pack(_MARK, checksum))


def content_length(kept: Any) -> int:
    """How many bytes of a buffer stand before its seal; DamagedError if the seal does not fit them."""
    view = memoryview(kept)
    length = len(view) - _SEAL.size
    if length < 0:
        raise DamagedError("it is cut off")
    mark, checksum = _SEAL.unpack(view[length:])
    if mark != _MARK or isal_zlib.crc32(view[:length]) != checksum:
        raise DamagedError("its checksum does not fit")
    return length
