"""The layout of a chrome trace: what stands before, in and after the array of events.

    {"schemaVersion": 1, ..., "traceEvents": [ {...}, {...} ], "traceName": "..."}
    [ {...}, {...}                                   (a bare list, its end may be missing)

Events leave in blocks of about BLOCK bytes, cut between two events. A cut is a guess by pattern; a wrong
one (the pattern stood inside a text) leaves a block that is no JSON, which is then read event by event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from torch_tb_profiler.errors import TraceError
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog

BLOCK = 1 << 20
_EDGE = 1 << 16
"""Kineto begins and ends with events without a category, which decode slowly: they get small blocks."""

_HEAD_LIMIT = 1 << 26
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|dur|pid|tid|args|id|s|bp)"\s*:)')
_CUT_WINDOW = 1 << 14
_TAIL_CANDIDATES = 8
_BLANK = b"\xef\xbb\xbf \t\r\n"

AddBlock = Callable[["bytes | memoryview"], bool]
"""Takes `[{...},{...}]`, to be used up before it returns; False if it is not well-formed."""

AddDamaged = Callable[[bytes, int, bool], "str | None"]
"""Takes damaged text, its offset and whether the file ends there; returns what follows the array, if met."""


def read_document(source: Source, health: HealthLog, add: AddBlock, damaged: AddDamaged) -> dict[str, Any]:
    """Walk through the document, hand over its events, return the metadata around them.

    Raises TraceError if there is no array of events.
    """
    window = _Window(source)
    head = _read_head(window)
    tail = _read_events(window, add, damaged)
    metadata = _parse_head(head, health)
    metadata.update(_parse_tail(tail, bare=not head, health=health, end=source.offset))
    return metadata


class _Window:
    """A stretch of the file in one buffer that is filled at its end and emptied at its front.

    The byte before the stretch belongs to the buffer too, so that a block of events can be wrapped in
    brackets where it lies, without copying it.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = bytearray(2 * BLOCK)
        self._end = 1

    @property
    def begin(self) -> int:
        """Offset in the file of the stretch's first byte."""
        return self._source.offset - len(self)

    def __len__(self) -> int:
        return self._end - 1

    def fill(self) -> int:
        """Read on by up to BLOCK bytes; returns how many, 0 at the end of the file."""
        wanted = self._end + BLOCK + 1
        if wanted > len(self._buffer):
            self._buffer.extend(bytes(max(wanted, 2 * len(self._buffer)) - len(self._buffer)))
        with memoryview(self._buffer) as view, view[self._end : self._end + BLOCK] as target:
            done = self._source.read_into(target)
        self._end += done
        return done

    def text(self) -> bytes:
        return bytes(self._buffer[1 : self._end])

    def drop(self, count: int) -> None:
        """Forget the first `count` bytes."""
        rest = self._buffer[1 + count : self._end]
        self._buffer[1 : 1 + len(rest)] = rest
        self._end = 1 + len(rest)

    def block(self, length: int, add: AddBlock) -> bool:
        """Hand the first `length` bytes to `add` as a JSON array."""
        buffer = self._buffer
        behind = buffer[1 + length]
        buffer[0], buffer[1 + length] = ord("["), ord("]")
        try:
            with memoryview(buffer) as view, view[: length + 2] as array:
                return add(array)
        finally:
            buffer[1 + length] = behind

    def last_cut(self, limit: int) -> tuple[int, int]:
        """(end of the last event that surely ends within `limit` bytes, start of the next); (0, 0) if none."""
        reach = _CUT_WINDOW
        stop = min(self._end, 1 + limit)
        while True:
            start = max(1, stop - reach)
            cuts = [match.span() for match in _CUT.finditer(self._buffer, start, stop)]
            if cuts:
                return cuts[-1][0], cuts[-1][1] - 1
            if start == 1:
                return 0, 0
            reach *= 8


def _read_head(window: _Window) -> bytes:
    """What stands before the first event, b"" for a bare list; the window then begins at the events."""
    while len(window) < _HEAD_LIMIT:
        done = window.fill()
        text = window.text()
        start = text.lstrip(_BLANK)
        if start.startswith(b"["):
            window.drop(len(text) - len(start) + 1)
            return b""
        found = _EVENTS_KEY.search(text, max(0, len(text) - done - 64))
        if found and start.startswith(b"{"):
            window.drop(found.end())
            return text[: found.start()]
        if not done:
            break
    raise _no_events(window.text())


def _no_events(text: bytes) -> TraceError:
    text = text.strip(_BLANK + b"\0")
    if not text:
        return TraceError("the file is empty", hint="the job ended before the profiler wrote its trace")
    if not text.startswith(b"{"):
        return TraceError("this is not JSON", where="byte 0", hint="is it a trace that torch.profiler wrote?")
    try:
        json.loads(text)
    except ValueError as error:
        return TraceError(
            f"the file ends before the first event ({error})",
            where=f"byte {len(text)}",
            hint="the job ended while the profiler was writing; record the trace again",
        )
    return TraceError(
        "the file is JSON without `traceEvents`",
        hint="is it a trace that torch.profiler wrote? (an execution trace or a settings file is none)",
    )


def _read_events(window: _Window, add: AddBlock, damaged: AddDamaged) -> bytes | None:
    """Hand over all events; returns what follows the array, None if its end is missing."""
    limit, ended = _EDGE, False
    while True:
        cut, begin = window.last_cut(limit)
        if cut:
            if not window.block(cut, add):
                rest = damaged(window.text()[:cut], window.begin, False)
                if rest is not None:
                    # The array ended here: what looked like events are later lists.
                    window.drop(cut)
                    while window.fill():
                        pass
                    return rest.encode("utf-8", "replace") + window.text()
            window.drop(begin)
        if ended:
            return _read_last(window, add, damaged)
        ended = not window.fill()
        if ended:
            limit = len(window) - _EDGE
        else:
            limit = len(window) if len(window) >= BLOCK else 0


def _read_last(window: _Window, add: AddBlock, damaged: AddDamaged) -> bytes | None:
    """The last stretch: events, the end of the array, the rest of the document."""
    text = window.text()
    front = len(text) - len(text.lstrip(_BLANK + b","))
    end = len(text)
    for _ in range(_TAIL_CANDIDATES):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            break
        tail = text[end + 1 :]
        if _closes(tail) and add(b"[" + text[front:end].rstrip(_BLANK + b",") + b"]"):
            return tail
    rest = damaged(text, window.begin, True)
    return None if rest is None else rest.encode("utf-8", "replace")


def _closes(tail: bytes) -> bool:
    tail = tail.strip(_BLANK + b"\0")
    return not tail or (tail.endswith(b"}") and (tail == b"}" or tail.startswith(b",")))


def _parse_head(head: bytes, health: HealthLog) -> dict[str, Any]:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").rstrip(b" \t\r\n,")
    if not text:
        return {}
    return _parse_object(text + b"}", 0, health)


def _parse_tail(tail: bytes | None, *, bare: bool, health: HealthLog, end: int) -> dict[str, Any]:
    if tail is None:
        if not bare and "truncated" not in health:
            health.add("truncated", "error", "the file ends before the list of events does", offset=end)
        return {}
    text = tail.strip(b" \t\r\n,\0")
    if bare or text in (b"", b"}"):
        return {}
    return _parse_object(b"{" + text, end - len(tail), health)


def _parse_object(text: bytes, offset: int, health: HealthLog) -> dict[str, Any]:
    try:
        value = json.loads(text.decode("utf-8", "replace"), strict=False)
    except ValueError as error:
        health.add("metadata_damaged", "warning", f"the trace's metadata cannot be read: {error}", offset=offset)
        return {}
    return value if isinstance(value, dict) else {}
