"""Split a JSON document of rocprofv3, while it is read, into descriptions of processes and blocks of records.

    {"rocprofiler-sdk-tool": [
        {"metadata": ..., "agents": [...], "strings": ..., "kernel_symbols": [...],     description
         "callback_records": {"counter_collection": [{...}, {...}]},                    blocks
         "buffer_records": {"kernel_dispatch": [{...}, {...}], "hip_api": [...]}},      blocks
        ...
    ]}

Records are nearly all of a file; only one block of them is in memory at a time, however large the file is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog

MAX_TEXT_BYTES = 16 << 20
"""Limit of a single text or record; a longer one is damaged or made to fill memory."""

MAX_DESCRIPTION_BYTES = 512 << 20
"""Limit of the description of a process; enough for a million kernels with their names."""

_CHUNK_BYTES = 1 << 20
_SECTIONS = (b'"callback_records"', b'"buffer_records"')
_TOKEN = lazy_regex(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{}]', re.DOTALL)
_COLON = lazy_regex(rb"\s{0,99}:")
_SEPARATORS = b", \t\r\n"

_PROCESS, _KINDS, _LIST = 3, 4, 5
"""Nesting depths of the keys of a process, of the kinds of its records, and of the list of one kind."""


@dataclass(frozen=True)
class DescriptionText:
    """What stands before the records of a process, as a JSON object."""

    text: bytes


@dataclass(frozen=True)
class RecordBlock:
    """Records of one kind ("kernel_dispatch"), as a JSON array."""

    kind: str
    text: bytes


class DocumentSplitter:
    """Reads `source` to its end; a truncated document or a text without end is noted."""

    def __init__(self, source: UnpackedStream, health: HealthLog) -> None:
        self._source, self._health = source, health
        self._text = bytearray()
        self._scanned = 0
        self._part_start: int | None = None
        """Offset of the description or block that is being collected, or None."""

        self._records_end = 0
        """Offset of the end of the last complete record in the block."""

        self._depth = 0
        self._has_description = True
        self._in_records = False
        self._kind: bytes | None = None

    def parts(self) -> Iterator[DescriptionText | RecordBlock]:
        """Yield descriptions and blocks in the order of the file."""
        buffer = bytearray(_CHUNK_BYTES)
        while count := self._source.read_into(memoryview(buffer)):
            self._text += memoryview(buffer)[:count]
            yield from self._scan()
            if self._has_endless_text():
                self._health.add("endless_text", "error", "a string never ends; everything before it is shown")
                break
        else:
            yield from self._scan(is_last=True)
            if self._depth:
                self._health.add("truncated", "error", "the file ends too early; what came before is shown")
        if self._in_list():
            yield from self._take_block(self._records_end)

    def _scan(self, is_last: bool = False) -> Iterator[DescriptionText | RecordBlock]:
        """Take the complete parts; the rest waits for the next chunk, unless this one `is_last`."""
        text = self._text
        for token in _TOKEN.finditer(text, self._scanned):
            sign = text[token.start()]
            if sign == ord('"'):
                has_key_end = is_last or self._depth not in (_PROCESS, _KINDS) or token.end() + 100 <= len(text)
                if not token[1] or not has_key_end:
                    self._scanned = token.start()  # the next chunk shows whether it is a key
                    break
                if self._depth in (_PROCESS, _KINDS) and _COLON.match(text, token.end()):
                    yield from self._start_key(token[0], token.start())
            elif sign in b"{[":
                self._open_bracket(sign, token.start())
            else:
                yield from self._close_bracket(token.end())
            self._scanned = token.end()
        else:
            self._scanned = len(text)
        self._drop_scanned()

    def _start_key(self, key: bytes, offset: int) -> Iterator[DescriptionText]:
        if self._depth == _KINDS:
            self._kind = key
            return
        self._in_records = key in _SECTIONS
        if self._in_records and not self._has_description:
            self._has_description = True
            yield DescriptionText(bytes(self._text[self._part_start or 0 : offset]).rstrip(_SEPARATORS) + b"}")
            self._part_start = None

    def _open_bracket(self, sign: int, offset: int) -> None:
        self._depth += 1
        if self._depth == _PROCESS and sign == ord("{"):
            self._part_start, self._has_description, self._in_records, self._kind = offset, False, False, None
        elif self._depth == _LIST and self._in_records and self._kind:
            self._part_start = self._records_end = offset + 1

    def _close_bracket(self, end: int) -> Iterator[RecordBlock]:
        self._depth -= 1
        if self._in_list():
            self._records_end = end
            if end - (self._part_start or 0) >= _CHUNK_BYTES:
                yield from self._take_block(end)
        elif self._depth == _KINDS and self._has_description and self._part_start is not None:
            yield from self._take_block(end - 1)
            self._part_start = None
        elif self._depth < _PROCESS:
            self._part_start, self._has_description = None, True

    def _take_block(self, end: int) -> Iterator[RecordBlock]:
        records = bytes(self._text[self._part_start : end]).strip(_SEPARATORS)
        if records and self._kind:
            yield RecordBlock(self._kind.decode("utf-8", "replace").strip('"'), b"[" + records + b"]")
        self._part_start = end

    def _in_list(self) -> bool:
        return self._depth == _LIST and self._has_description and self._part_start is not None

    def _drop_scanned(self) -> None:
        """Drop the text that is scanned and not part of what is being collected."""
        done = min(self._scanned, self._scanned if self._part_start is None else self._part_start)
        del self._text[:done]
        self._scanned -= done
        self._records_end -= done
        if self._part_start is not None:
            self._part_start -= done

    def _has_endless_text(self) -> bool:
        """Return whether a text or record exceeds its limit; raise TraceError if a description does."""
        if not self._has_description and len(self._text) > MAX_DESCRIPTION_BYTES:
            raise TraceError("the description of a process never ends: this isn't a recording of rocprofv3")
        waiting = len(self._text) - self._scanned
        record = (
            len(self._text) - self._records_end if self._has_description and self._part_start is not None else 0
        )
        return max(waiting, record) > MAX_TEXT_BYTES
