"""The bytes of a trace file, unpacked, in pieces, with progress; damage ends the file early, noted."""

from __future__ import annotations

import io
from typing import BinaryIO

from isal import isal_zlib

from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest.head import GZIP_MAGIC
from torch_tb_profiler.ingest.progress import Progress, Report
from torch_tb_profiler.model.health import HealthLog

_PACKED_PIECE = 1 << 16
_PROBE = 32 << 20
"""After so many unpacked bytes the size of the rest is estimated from the ratio so far."""

_DOUBT = 1.25  # how far off that estimate may be
_GZIP = 31  # window bits that tell zlib to expect a gzip header


class Source:
    """Reads `stream` (plain or gzip, recognized by its first bytes) forward.

    `offset` counts unpacked bytes. A damaged or truncated gzip stream ends where it breaks; what came
    before is kept and the damage is noted. Raises TraceError if the stream is empty, TooLargeError as soon as it
    is known that it holds more than `limit` bytes (0: any number).
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
            raise TraceError("the file is empty", hint="record it again; the job ended before it was written")
        self._gzip = self._packed == GZIP_MAGIC
        self._inflate = isal_zlib.decompressobj(_GZIP)
        self._ended = False
        if limit and not self._gzip and size > limit:
            raise _too_large("it holds", size, limit)

    def read_into(self, target: memoryview) -> int:
        """Fill the front of `target` with unpacked bytes; returns how many, 0 at the end."""
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
        """These bytes, the last that were read, are read again."""
        self._returned = memoryview(piece + bytes(self._returned))
        self.offset -= len(piece)

    def _check_limit(self) -> None:
        if not self._limit:
            return
        if self.offset > self._limit:
            raise _too_large("it holds more than", self._limit, self._limit)
        if self._gzip and self.offset >= _PROBE:
            expected = self.offset * self._size // self._packed_done
            if expected > _DOUBT * self._limit:
                raise _too_large("it unpacks to about", expected, self._limit)

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
            packed = self._packed or self._read_packed(_PACKED_PIECE)
            try:
                piece: bytes = self._inflate.decompress(packed, size)
            except isal_zlib.error as error:  # type: ignore[misc]
                self._break_off(str(error))
                break
            self._packed = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._next_member()
            elif not packed and not piece:
                self._break_off("it is cut off")
            if piece:
                return piece
        return b""

    def _next_member(self) -> None:
        rest = self._inflate.unused_data.lstrip(b"\0") or self._read_packed(_PACKED_PIECE).lstrip(b"\0")
        self._packed = rest
        if rest:
            self._inflate = isal_zlib.decompressobj(_GZIP)
        else:
            self._ended = True

    def _break_off(self, reason: str) -> None:
        self._ended = True
        self._health.add(
            "gzip_damaged",
            "error",
            f"the gzip stream is damaged ({reason}); what came before is shown",
            offset=self.offset,
        )


def _too_large(what: str, size: int, limit: int) -> TooLargeError:
    return TooLargeError(
        f"{what} {size / 2**30:.1f} GiB of JSON; at most {limit / 2**30:.1f} GiB are read at once"
    )
