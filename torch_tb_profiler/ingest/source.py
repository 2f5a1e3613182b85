"""The unpacked bytes of a trace file, in pieces or line by line; a damaged file ends early, with a health note."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from isal import isal_zlib

from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest.runtime import Progress, Report
from torch_tb_profiler.ingest.streams import GZIP_MAGIC, GZIP_WINDOW_BITS
from torch_tb_profiler.model.health import HealthLog

MAX_LINE_BYTES = 64 << 20
"""Longest line in bytes (an iteration with a million ranges); longer ones are skipped to bound memory."""

_LINE_PIECE_BYTES = 1 << 20
_PACKED_PIECE_BYTES = 1 << 16
_ESTIMATE_AFTER_BYTES = 32 << 20
"""Unpacked bytes after which the total size is estimated from the compression ratio so far."""

_ESTIMATE_TOLERANCE = 1.25
"""Ratio by which that estimate may exceed the limit."""


class UnpackedStream:
    """The unpacked bytes of a stream (plain or gzip, recognized by its first bytes), read forward.

    `offset` counts unpacked bytes. A damaged or truncated gzip stream ends where it breaks: what came before is
    used, and the damage becomes a health note. Raises TraceError if the stream is empty, and TooLargeError as soon
    as it is known to hold more than `limit` bytes (0: no limit).
    """

    def __init__(self, stream: BinaryIO, size: int, report: Report, health: HealthLog, limit: int = 0) -> None:
        self._stream = stream
        self._size = size
        self._report = report
        self._health = health
        self._limit = limit
        self._packed_done = 0
        self._returned = memoryview(b"")
        self.offset = 0
        self.events = 0
        self._packed = self._read_packed(2)
        if not self._packed:
            raise TraceError(
                "the file is empty", hint="record it again: the job ended before the profiler wrote it"
            )
        self._gzip = self._packed == GZIP_MAGIC
        self._inflate = isal_zlib.decompressobj(GZIP_WINDOW_BITS)
        self._ended = False
        if limit and not self._gzip and size > limit:
            raise _too_large_error("it holds", size, limit)

    def read_into(self, target: memoryview) -> int:
        """Fill the front of `target` with unpacked bytes; return how many, 0 at the end."""
        piece: bytes | memoryview
        if self._returned:
            piece, self._returned = self._returned[: len(target)], self._returned[len(target) :]
        elif self._gzip:
            piece = self._read_gzip(len(target))
        else:
            piece, self._packed = self._packed, b""
        done = len(piece)
        target[:done] = piece
        if not self._gzip and done < len(target):
            done += self._read_plain(target[done:])
        self.offset += done
        self._check_limit()
        stored = min(self._packed_done, self._size) if self._size else self._packed_done
        self._report(Progress("reading", stored, self._size, self.events))
        return done

    def give_back(self, piece: bytes) -> None:
        """Let the next reads return these bytes, the last ones read, again."""
        self._returned = memoryview(piece + bytes(self._returned))
        self.offset -= len(piece)

    def _check_limit(self) -> None:
        if not self._limit:
            return
        if self.offset > self._limit:
            raise _too_large_error("it holds more than", self._limit, self._limit)
        if self._gzip and self.offset >= _ESTIMATE_AFTER_BYTES:
            expected = self.offset * self._size // self._packed_done
            if expected > _ESTIMATE_TOLERANCE * self._limit:
                raise _too_large_error("it unpacks to about", expected, self._limit)

    def _read_plain(self, target: memoryview) -> int:
        # Not every file object of a remote storage has readinto().
        if isinstance(self._stream, io.BufferedIOBase):
            done = self._stream.readinto(target)
        else:
            piece = self._stream.read(len(target))
            done = len(piece)
            target[:done] = piece
        self._packed_done += done
        return done

    def _read_packed(self, size: int) -> bytes:
        piece = self._stream.read(size)
        self._packed_done += len(piece)
        return piece

    def _read_gzip(self, size: int) -> bytes:
        while not self._ended:
            packed = self._packed or self._read_packed(_PACKED_PIECE_BYTES)
            try:
                piece: bytes = self._inflate.decompress(packed, size)
            except isal_zlib.error as error:  # type: ignore[misc]
                self._break_off(str(error))
                break
            self._packed = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._next_member()
            elif not packed and not piece:
                self._break_off("it is truncated")
            if piece:
                return piece
        return b""

    def _next_member(self) -> None:
        rest = self._inflate.unused_data.lstrip(b"\0") or self._read_packed(_PACKED_PIECE_BYTES).lstrip(b"\0")
        self._packed = rest
        if rest:
            self._inflate = isal_zlib.decompressobj(GZIP_WINDOW_BITS)
        else:
            self._ended = True

    def _break_off(self, reason: str) -> None:
        self._ended = True
        self._health.add(
            "gzip_damaged",
            "error",
            f"the gzip stream is damaged ({reason}); only what precedes the damage is shown",
            offset=self.offset,
        )


def _too_large_error(what: str, size: int, limit: int) -> TooLargeError:
    return TooLargeError(f"{what} {size / 2**30:.1f} GiB of JSON; the limit is {limit / 2**30:.1f} GiB")


def read_lines(source: UnpackedStream, health: HealthLog) -> Iterator[tuple[int, bytes]]:
    """Yield the offset (unpacked bytes) and the text without its line end of each non-empty line."""
    buffer, line = bytearray(_LINE_PIECE_BYTES), bytearray()
    begin, skipping = 0, False
    while count := source.read_into(memoryview(buffer)):
        at = 0
        while (end := buffer.find(b"\n", at, count)) >= 0:
            line += buffer[at:end]
            if line.strip() and not skipping:
                yield begin, bytes(line)
            line.clear()
            skipping = False
            at = end + 1
            begin = source.offset - count + at
        if not skipping:
            line += buffer[at:count]
        if len(line) > MAX_LINE_BYTES:
            health.add(
                "line_too_long",
                "warning",
                f"lines longer than {MAX_LINE_BYTES >> 20} MiB were skipped",
                offset=begin,
            )
            skipping = True
            line.clear()
    if line.strip():
        yield begin, bytes(line)
