"""Several files that are read as one: what tools write of one recording, a file per kind of record."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import BinaryIO, cast

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.head import GZIP_MAGIC, Raw


class Joined(io.RawIOBase):
    """The lines of several files, one file behind the other, each plain or packed with gzip.

    The next file is opened when the one before it ends. A last line that is cut off stays a line of its own.
    Raises TraceError while reading if a packed file is damaged.
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
                raise TraceError(f"one of the packed files is damaged: {error}") from error
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
        buffered = io.BufferedReader(Raw(stored))
        packed = buffered.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
        self._stream = cast(BinaryIO, gzip.GzipFile(fileobj=buffered)) if packed else cast(BinaryIO, buffered)
