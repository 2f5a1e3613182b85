"""The layout of a chrome trace: what stands before, in and after the array of events.

    {"schemaVersion": 1, ..., "traceEvents": [ {...}, {...} ], "traceName": "..."}
    [ {...}, {...}                                   (a bare list, its end may be missing)

Events leave in blocks of about BLOCK bytes, cut between two events. A cut is a guess by pattern; a wrong
one (the pattern stood inside a text) leaves a block that is no JSON, which is then read event by event. Blocks
between the first and the last may be read ahead, by other threads; from a damaged one on, one follows the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.ahead import Ahead, NotReadError, Stretch
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog

BLOCK = 1 << 19
"""With all objects made of it a block stays within the second-level cache: twice as much costs 5 % more time."""

_EDGE = 1 << 16
"""Kineto begins and ends with events without a category, which decode slowly: they get small blocks."""

_HEAD_LIMIT = 1 << 26
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|dur|pid|tid|args|id|s|bp)"\s*:)')
_ANY_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*"[^"\\]{1,64}"\s*:)')
_PATIENCE = 1 << 23
"""After so many bytes without a cut the file spells its events in its own way, and any object may be one."""

_CUT_WINDOW = 1 << 12
_LOOK_BACK = 1 << 12
_LONGEST_EVENT = 1 << 27
"""No event is longer; what goes on for longer without a cut between events is not read on."""

_CANDIDATES = 8
_KEY_LENGTH = 64
_NOT_BLANK = re.compile(rb"[^\xef\xbb\xbf \t\r\n]")
_BLANK = b"\xef\xbb\xbf \t\r\n"

AddBlock = Callable[["bytes | memoryview"], bool]
"""Takes `[{...},{...}]`, to be used up before it returns; False if it is not well-formed."""

AddDamaged = Callable[[bytes, int, bool], "str | None"]
"""Takes damaged text, its offset and whether the file ends there; returns what follows the array, if met."""


def read_document(
    source: Source, health: HealthLog, add: AddBlock, damaged: AddDamaged, ahead: Ahead | None = None
) -> dict[str, Any]:
    """Walk through the document, hand over its events, return the metadata around them.

    Raises TraceError if there is no array of events.
    """
    window = _Window(source)
    head = _read_head(window)
    tail = _read_events(window, health, add, damaged, ahead)
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
        self._cutless = 1  # up to here no event ends
        self._cut = _CUT

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
            # A new one, for the old one cannot grow while anything refers to a part of it.
            former, self._buffer = self._buffer, bytearray(max(wanted, 2 * len(self._buffer)))
            self._buffer[: self._end] = memoryview(former)[: self._end]
        done = self._source.read_into(memoryview(self._buffer)[self._end : self._end + BLOCK])
        self._end += done
        return done

    def text(self, start: int = 0, end: int | None = None) -> bytes:
        return bytes(self._buffer[1 + start : self._end if end is None else 1 + end])

    def search(self, pattern: re.Pattern[bytes], start: int) -> tuple[int, int] | None:
        """(start, end) of the first match that begins at `start` or later."""
        match = pattern.search(self._buffer, 1 + start, self._end)
        return (match.start() - 1, match.end() - 1) if match else None

    def drop(self, count: int) -> None:
        """Forget the first `count` bytes."""
        rest = self._buffer[1 + count : self._end]
        self._buffer[1 : 1 + len(rest)] = rest
        self._end = 1 + len(rest)
        self._cutless = 1

    def block(self, length: int, add: AddBlock) -> bool:
        """Hand the first `length` bytes to `add` as a JSON array."""
        buffer = self._buffer
        behind = buffer[1 + length]
        buffer[0], buffer[1 + length] = ord("["), ord("]")
        try:
            # Not released by hand: that fails while another thread (a sampling profiler) looks at this one.
            return add(memoryview(buffer)[: length + 2])
        finally:
            buffer[1 + length] = behind

    def take_out(self, cut: int, begin: int, reach: int, ahead: Ahead) -> Stretch:
        """The first `begin` bytes with the buffer that they lie in; the rest goes on in another one."""
        taken, self._buffer = self._buffer, ahead.buffer(len(self._buffer))
        rest = self._end - begin
        self._buffer[1:rest] = memoryview(taken)[1 + begin : self._end]
        self._end, self._cutless = rest, 1
        return Stretch(taken, cut, begin, reach)

    def put_back(self, stretches: Sequence[Stretch]) -> int:
        """What was taken out is here again; returns how much of it is known, as it was when its first was cut."""
        text = b"".join([*(each.text() for each in stretches), self.text()])
        reach = stretches[0].reach
        self._source.give_back(text[reach:])
        self._buffer = bytearray(b"[" + text[:reach] + bytes(BLOCK))
        self._end, self._cutless, self._cut = 1 + reach, 1, _CUT
        return reach

    def last_cuts(self, limit: int) -> list[tuple[int, int]]:
        """(end of an event, start of the next) within `limit` bytes, the last first; more than one if unsure."""
        reach = _CUT_WINDOW if self._cut is _CUT else 4 * _CUT_WINDOW
        stop = min(self._end, 1 + limit)
        first = max(1, self._cutless - _LOOK_BACK)
        while True:
            start = max(first, stop - reach)
            cuts = [match.span() for match in self._cut.finditer(self._buffer, start, stop)]
            if cuts:
                sure = self._cut is _CUT
                return [(end, begin - 1) for end, begin in cuts[: -2 if sure else -1 - _CANDIDATES : -1]]
            if start == first:
                self._cutless = max(self._cutless, stop)
                if self._cut is _CUT and self._cutless > _PATIENCE:
                    self._cut, self._cutless = _ANY_CUT, 1
                return []
            reach *= 8


def _read_head(window: _Window) -> bytes:
    """What stands before the first event, b"" for a bare list; the window then begins at the events."""
    first = None
    while len(window) < _HEAD_LIMIT:
        known = len(window)
        done = window.fill()
        first = first or window.search(_NOT_BLANK, known)
        if first is not None and window.text(*first) == b"[":
            window.drop(first[1])
            return b""
        key = window.search(_EVENTS_KEY, max(0, known - _KEY_LENGTH))
        if key is not None and first is not None and window.text(*first) == b"{":
            head = window.text(0, key[0])
            window.drop(key[1])
            return head
        if not done:
            break
    raise _no_events(window.text())


def _no_events(text: bytes) -> TraceError:
    text = text.strip(_BLANK + b"\0")
    if not text:
        return TraceError("the file is empty", hint="record it again; the job ended before it was written")
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


def _read_events(
    window: _Window, health: HealthLog, add: AddBlock, damaged: AddDamaged, ahead: Ahead | None
) -> bytes | None:
    """Hand over all events; returns what follows the array, None if its end is missing."""
    limit, ended = _EDGE, False
    while True:
        cuts = window.last_cuts(limit)
        if ahead is not None and (limit or ended):
            try:
                if len(cuts) == 1 and limit >= BLOCK and not ended:
                    ahead.add(window.take_out(*cuts.pop(), limit, ahead))
                else:
                    ahead.drain()
            except NotReadError as error:
                limit, ended, ahead = window.put_back(error.stretches), False, None
                continue
        if cuts:
            cut, begin = next((pair for pair in cuts if window.block(pair[0], add)), (0, 0))
            if not cut:
                cut, begin = cuts[0]
                rest = damaged(window.text()[:cut], window.begin, False)
                if rest is not None:
                    # The array ended here: what looked like events are later lists.
                    window.drop(cut)
                    while len(window) < _HEAD_LIMIT and window.fill():
                        pass
                    return rest.encode("utf-8", "replace") + window.text()
            window.drop(begin)
        elif len(window) > _LONGEST_EVENT:
            damaged(window.text()[:BLOCK], window.begin, False)
            health.add(
                "endless_event", "error", "an event does not end; what came before is shown", offset=window.begin
            )
            return None
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
    for _ in range(_CANDIDATES):
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
