"""A JSON document of rocprofv3 cut, as it is read, into the description of each process and blocks of its records.

    {"rocprofiler-sdk-tool": [
        {"metadata": ..., "agents": [...], "strings": ..., "kernel_symbols": [...],     description
         "callback_records": {"counter_collection": [{...}, {...}]},                    blocks
         "buffer_records": {"kernel_dispatch": [{...}, {...}], "hip_api": [...]}},      blocks
        ...
    ]}

The records are nearly all of a file; however large it is, one block of them is held at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog

LONGEST_TEXT = 16 << 20
"""Bytes of a single text or record; what is longer is damage, or made to fill memory."""

LONGEST_DESCRIPTION = 512 << 20
"""Bytes: a million kernels with their names."""

_PIECE = 1 << 20
_SECTIONS = (b'"callback_records"', b'"buffer_records"')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{}]', re.DOTALL)
_COLON = re.compile(rb"\s{0,99}:")
_BETWEEN = b", \t\r\n"

_PROCESS, _KINDS, _LIST = 3, 4, 5
"""How deep the keys of a process, the kinds of its records and the list of one kind lie."""


@dataclass(frozen=True)
class Description:
    """What a process says before its records: a JSON object."""

    text: bytes


@dataclass(frozen=True)
class Records:
    """Records of one kind ("kernel_dispatch"): a JSON array."""

    kind: str
    text: bytes


class Splitter:
    """Reads `source` to its end. A document that ends too early, or a text without an end, is noted."""

    def __init__(self, source: Source, health: HealthLog) -> None:
        self._source, self._health = source, health
        self._text = bytearray()
        self._scanned = 0
        self._kept: int | None = None
        """Where the description or the block begins that is collected."""

        self._complete = 0
        """Where the last complete record of the block ends."""

        self._depth = 0
        self._described = True
        self._section = False
        self._kind: bytes | None = None

    def parts(self) -> Iterator[Description | Records]:
        """In order of the file."""
        buffer = bytearray(_PIECE)
        while count := self._source.read_into(memoryview(buffer)):
            self._text += memoryview(buffer)[:count]
            yield from self._scan()
            if self._is_endless():
                self._health.add("endless_text", "error", "a text does not end; what came before is shown")
                break
        else:
            yield from self._scan(whole=True)
            if self._depth:
                self._health.add("truncated", "error", "the file ends too early; what came before is shown")
        if self._in_list():
            yield from self._block(self._complete)

    def _scan(self, whole: bool = False) -> Iterator[Description | Records]:
        """Take what is complete; the rest waits for the next piece, if there is one (not `whole`)."""
        text = self._text
        for token in _TOKEN.finditer(text, self._scanned):
            sign = text[token.start()]
            if sign == ord('"'):
                seen = whole or self._depth not in (_PROCESS, _KINDS) or token.end() + 100 <= len(text)
                if not token[1] or not seen:
                    self._scanned = token.start()  # whether it is a key is not seen yet
                    break
                if self._depth in (_PROCESS, _KINDS) and _COLON.match(text, token.end()):
                    yield from self._key(token[0], token.start())
            elif sign in b"{[":
                self._open(sign, token.start())
            else:
                yield from self._close(token.end())
            self._scanned = token.end()
        else:
            self._scanned = len(text)
        self._forget()

    def _key(self, key: bytes, at: int) -> Iterator[Description]:
        if self._depth == _KINDS:
            self._kind = key
            return
        self._section = key in _SECTIONS
        if self._section and not self._described:
            self._described = True
            yield Description(bytes(self._text[self._kept or 0 : at]).rstrip(_BETWEEN) + b"}")
            self._kept = None

    def _open(self, sign: int, at: int) -> None:
        self._depth += 1
        if self._depth == _PROCESS and sign == ord("{"):
            self._kept, self._described, self._section, self._kind = at, False, False, None
        elif self._depth == _LIST and self._section and self._kind:
            self._kept = self._complete = at + 1

    def _close(self, end: int) -> Iterator[Records]:
        self._depth -= 1
        if self._in_list():
            self._complete = end
            if end - (self._kept or 0) >= _PIECE:
                yield from self._block(end)
        elif self._depth == _KINDS and self._described and self._kept is not None:
            yield from self._block(end - 1)
            self._kept = None
        elif self._depth < _PROCESS:
            self._kept, self._described = None, True

    def _block(self, end: int) -> Iterator[Records]:
        records = bytes(self._text[self._kept : end]).strip(_BETWEEN)
        if records and self._kind:
            yield Records(self._kind.decode("utf-8", "replace").strip('"'), b"[" + records + b"]")
        self._kept = end

    def _in_list(self) -> bool:
        return self._depth == _LIST and self._described and self._kept is not None

    def _forget(self) -> None:
        """Drop what is neither kept nor still to be scanned."""
        done = min(self._scanned, self._scanned if self._kept is None else self._kept)
        del self._text[:done]
        self._scanned -= done
        self._complete -= done
        if self._kept is not None:
            self._kept -= done

    def _is_endless(self) -> bool:
        """Raises TraceError if a description does not end."""
        if not self._described and len(self._text) > LONGEST_DESCRIPTION:
            raise TraceError("the description of a process does not end: this is no recording of rocprofv3")
        waiting = len(self._text) - self._scanned
        record = len(self._text) - self._complete if self._described and self._kept is not None else 0
        return max(waiting, record) > LONGEST_TEXT
