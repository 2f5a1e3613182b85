"""Split a chrome trace into blocks of events and the metadata before and after them.

    {"schemaVersion": 1, ..., "traceEvents": [ {...}, {...} ], "traceName": "..."}
    [ {...}, {...}                                   (a bare list, whose end may be missing)

Events are passed on in blocks of about BLOCK_BYTES, cut between two events. The cut is found by a pattern; a wrong
one (the pattern occurred inside a text) leaves a block that is not JSON, which is then read event by event. Blocks
between the first and the last may be read ahead by other threads; after a damaged one, blocks are read in turn.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog

BLOCK_BYTES = 1 << 19
"""Size of a block; with its decoded objects it fits the second-level cache (twice the size takes 5% longer)."""

_EDGE = 1 << 16
"""Bytes at both ends of a file that get small blocks: events without a category, which decode slowly."""

_HEAD_LIMIT = 1 << 26
"""Most bytes before the first event, and after the last one where the array ends early."""

_EVENTS_KEY = lazy_regex(rb'"traceEvents"\s*:\s*\[')
_OTHER_EVENTS = lazy_regex(rb'"traceEvents"\s*:\s*([^\s\[])')
_JSON_KINDS = {b"{": "an object", b'"': "a string", b"n": "null", b"t": "a boolean", b"f": "a boolean"}
"""First byte of a JSON value that is no array -> what it is; the others are numbers."""

_CUT = lazy_regex(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|dur|pid|tid|args|id|s|bp)"\s*:)')
_ANY_CUT = lazy_regex(rb'\}\s*,\s*(?=\{\s*"[^"\\]{1,64}"\s*:)')
_MAX_BYTES_WITHOUT_CUT = 1 << 23
"""Bytes without a cut after which any JSON object is accepted as the start of an event."""

_CUT_WINDOW = 1 << 10
"""Bytes before the end of a block in which a cut is searched first: a few events."""

_LOOK_BACK = 1 << 12
"""Bytes before text without a cut that are searched again, as a cut may begin in them."""

_MAX_EVENT_BYTES = 1 << 27
"""Longest event in bytes; reading stops where no event ends within this size."""

_ARRAY_END = lazy_regex(rb"\](?=[\xef\xbb\xbf \t\r\n\0]*(?:,|\}[\xef\xbb\xbf \t\r\n\0]*\Z|\Z))")
"""A bracket that further keys of the document can follow, or nothing; most of those in logged messages can't."""

_CANDIDATES = 8
"""Most cuts, or ends of the array, that are tried where several are possible."""

_KEY_LENGTH = 64
"""Bytes that `"traceEvents": [` may extend into what was already searched."""

_BUFFER_BYTES = BLOCK_BYTES + _EDGE
"""Size of a buffer for a block and what is left of an event before it; its pages are cleared by the system."""

_SURROGATE_ESCAPE = lazy_regex(rb"\\u[dD][89a-fA-F]")
_NOT_BLANK = lazy_regex(rb"[^\xef\xbb\xbf \t\r\n]")
_BLANK = b"\xef\xbb\xbf \t\r\n"

BlockHandler = Callable[["bytes | memoryview"], bool]
"""Takes `[{...},{...}]`, valid only during the call; returns False if it is not well-formed."""

DamageHandler = Callable[[bytes, int, bool], "str | None"]
"""Takes damaged text, its offset and whether the file ends there; returns the text after the array if it ended."""


class DetachedBlock:
    """A block detached from the document's buffer, with the buffer it lies in.

    buffer  a spare byte, then part of the file
    cut     bytes of the block
    begin   bytes up to the next block
    reach   bytes that had been read when the end of the block was searched
    """

    def __init__(self, buffer: bytearray, cut: int, begin: int, reach: int) -> None:
        self.buffer, self.reach = buffer, reach
        self._cut, self._begin = cut, begin
        self._behind = buffer[1 + cut]
        buffer[0], buffer[1 + cut] = ord("["), ord("]")

    @property
    def block(self) -> memoryview:
        """Return the block as a JSON array."""
        return memoryview(self.buffer)[: self._cut + 2]

    def text(self) -> bytes:
        """Return the bytes of the file up to the next block."""
        cut = 1 + self._cut
        return bytes(self.buffer[1:cut]) + bytes([self._behind]) + bytes(self.buffer[cut + 1 : 1 + self._begin])


class DamagedBlockError(Exception):
    """A block read ahead is not JSON; `blocks` start with it and include all that were detached since."""

    def __init__(self, blocks: Sequence[DetachedBlock]) -> None:
        super().__init__("a block that was read ahead is damaged")
        self.blocks = blocks


class ReadAhead(Protocol):
    """A reader that takes blocks and reports later whether they could be read."""

    def buffer(self, size: int) -> bytearray:
        """Return a buffer of at least this size for the bytes after a detached block."""

    def add(self, block: DetachedBlock) -> None:
        """Take a block; raise DamagedBlockError if one that was detached before can't be read."""

    def drain(self) -> None:
        """Wait until all blocks have been read; raise DamagedBlockError as `add` does."""


def read_document(
    source: UnpackedStream,
    health: HealthLog,
    add: BlockHandler,
    damaged: DamageHandler,
    ahead: ReadAhead | None = None,
) -> dict[str, Any]:
    """Pass the events of the document to `add` and return the metadata around them.

    Raises TraceError if there is no array of events.
    """
    window = _DocumentWindow(source)
    head = _read_head(window)
    tail = _read_events(window, health, add, damaged, ahead)
    metadata = _parse_head(head, health)
    metadata.update(_parse_tail(tail, bare=not head, health=health, end=source.offset))
    return metadata


class _DocumentWindow:
    """A part of the file in one buffer that is filled at its end and emptied at its front.

    The buffer starts with a spare byte, so that a block of events can be wrapped in brackets in place, without a
    copy.
    """

    def __init__(self, source: UnpackedStream) -> None:
        self._source = source
        self._buffer = bytearray(2 * BLOCK_BYTES)
        self._end = 1
        self._cutless = 1  # no event ends before this position
        self._cut = _CUT

    @property
    def begin(self) -> int:
        """Return the offset in the file of the first byte."""
        return self._source.offset - len(self)

    def __len__(self) -> int:
        return self._end - 1

    def fill(self) -> int:
        """Read up to BLOCK_BYTES more bytes; return how many, 0 at the end of the file."""
        needed = self._end + BLOCK_BYTES + 1
        if needed > len(self._buffer):
            # The old buffer can't grow while a memoryview refers to it.
            previous, self._buffer = self._buffer, bytearray(max(needed, 2 * len(self._buffer)))
            self._buffer[: self._end] = memoryview(previous)[: self._end]
        done = self._source.read_into(memoryview(self._buffer)[self._end : self._end + BLOCK_BYTES])
        self._end += done
        return done

    def text(self, start: int = 0, end: int | None = None) -> bytes:
        return bytes(self._buffer[1 + start : self._end if end is None else 1 + end])

    def search(self, pattern: re.Pattern[bytes], start: int) -> tuple[int, int] | None:
        """Return (start, end) of the first match that begins at `start` or later, or None."""
        match = pattern.search(self._buffer, 1 + start, self._end)
        return (match.start() - 1, match.end() - 1) if match else None

    def drop(self, count: int) -> None:
        """Drop the first `count` bytes."""
        rest = self._buffer[1 + count : self._end]
        self._buffer[1 : 1 + len(rest)] = rest
        self._end = 1 + len(rest)
        self._cutless = 1

    def pass_block(self, length: int, add: BlockHandler) -> bool:
        """Pass the first `length` bytes to `add` as a JSON array."""
        buffer = self._buffer
        behind = buffer[1 + length]
        buffer[0], buffer[1 + length] = ord("["), ord("]")
        try:
            # Not released explicitly: that fails while another thread (a sampling profiler) inspects this one.
            return add(memoryview(buffer)[: length + 2])
        finally:
            buffer[1 + length] = behind

    def detach_block(self, cut: int, begin: int, reach: int, ahead: ReadAhead) -> DetachedBlock:
        """Split off the first `begin` bytes with their buffer; the rest moves to another buffer."""
        rest = self._end - begin
        detached, self._buffer = self._buffer, ahead.buffer(max(rest + BLOCK_BYTES + 1, _BUFFER_BYTES))
        self._buffer[1:rest] = memoryview(detached)[1 + begin : self._end]
        self._end, self._cutless = rest, 1
        return DetachedBlock(detached, cut, begin, reach)

    def restore_blocks(self, blocks: Sequence[DetachedBlock]) -> int:
        """Restore detached blocks; return how many bytes had been read when the first of them was cut."""
        text = b"".join([*(each.text() for each in blocks), self.text()])
        reach = blocks[0].reach
        self._source.give_back(text[reach:])
        self._buffer = bytearray(b"[" + text[:reach] + bytes(BLOCK_BYTES))
        self._end, self._cutless, self._cut = 1 + reach, 1, _CUT
        return reach

    def last_cuts(self, limit: int) -> list[tuple[int, int]]:
        """Return (end of an event, start of the next) within `limit` bytes, last first; several if unsure."""
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
                if self._cut is _CUT and self._cutless > _MAX_BYTES_WITHOUT_CUT:
                    self._cut, self._cutless = _ANY_CUT, 1
                return []
            reach *= 8


def _read_head(window: _DocumentWindow) -> bytes:
    """Return the text before the first event (b"" for a bare list); the window then starts at the events."""
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
    raise _no_events_error(window.text())


def _no_events_error(text: bytes) -> TraceError:
    """Return the error of a file without an array of events; `text` are its first bytes."""
    text = text.strip(_BLANK + b"\0")
    if not text:
        return TraceError("the file is empty", hint="record it again: the job ended before the profiler wrote it")
    if not text.startswith(b"{"):
        return TraceError("the file is not JSON", where="byte 0", hint="open a trace that torch.profiler wrote")
    other = _OTHER_EVENTS.search(text)
    if other is not None:
        return TraceError(
            f"`traceEvents` is {_JSON_KINDS.get(other[1], 'a number')}, not a list of events",
            where=f"byte {other.start()}",
            hint="open the file as torch.profiler wrote it: a script that rewrote it may have changed its layout",
        )
    try:
        json.loads(text)
    except ValueError as error:
        return TraceError(
            f"the file ends before the first event ({error})",
            where=f"byte {len(text)}",
            hint="record it again: the job ended while the profiler was writing it",
        )
    return TraceError(
        "the file is JSON, but has no `traceEvents`",
        hint="open a trace that torch.profiler wrote, not an execution trace or a settings file",
    )


def _read_events(
    window: _DocumentWindow, health: HealthLog, add: BlockHandler, damaged: DamageHandler, ahead: ReadAhead | None
) -> bytes | None:
    """Pass on all events; return the text after the array, or None if its end is missing."""
    limit, ended = _EDGE, False
    while True:
        cuts = window.last_cuts(limit)
        if ahead is not None and (limit or ended):
            try:
                if len(cuts) == 1 and limit >= BLOCK_BYTES and not ended:
                    ahead.add(window.detach_block(*cuts.pop(), limit, ahead))
                else:
                    ahead.drain()
            except DamagedBlockError as error:
                limit, ended, ahead = window.restore_blocks(error.blocks), False, None
                continue
        if cuts:
            cut, begin = next((pair for pair in cuts if window.pass_block(pair[0], add)), (0, 0))
            if not cut:
                cut, begin = cuts[0]
                rest = damaged(window.text()[:cut], window.begin, False)
                if rest is not None:
                    # The array ended here; what looked like further events belongs to later lists.
                    window.drop(cut)
                    while len(window) < _HEAD_LIMIT and window.fill():
                        pass
                    return rest.encode("utf-8", "replace") + window.text()
            window.drop(begin)
        elif len(window) > _MAX_EVENT_BYTES:
            damaged(window.text()[:BLOCK_BYTES], window.begin, False)
            health.add(
                "endless_event",
                "error",
                "an event never ends; only what precedes it is shown",
                offset=window.begin,
            )
            return None
        if ended:
            return _read_last(window, add, damaged)
        ended = not window.fill()
        if ended:
            limit = len(window) - _EDGE
        else:
            limit = len(window) if len(window) >= BLOCK_BYTES else 0


def _read_last(window: _DocumentWindow, add: BlockHandler, damaged: DamageHandler) -> bytes | None:
    """Pass on the last block: events up to the end of the array. Return the text after it, or None."""
    text = window.text()
    front = len(text) - len(text.lstrip(_BLANK + b","))
    for end in reversed(deque((match.start() for match in _ARRAY_END.finditer(text, front)), _CANDIDATES)):
        tail = text[end + 1 :]
        if _may_follow_array(tail) and add(b"[" + text[front:end].rstrip(_BLANK + b",") + b"]"):
            return tail
    rest = damaged(text, window.begin, True)
    return None if rest is None else rest.encode("utf-8", "replace")


def _may_follow_array(tail: bytes) -> bool:
    """Return whether `tail` can follow the end of the array: nothing, or further keys of the document."""
    tail = tail.strip(_BLANK + b"\0")
    return not tail or (tail.endswith(b"}") and (tail == b"}" or tail.startswith(b",")))


def _parse_head(head: bytes, health: HealthLog) -> dict[str, Any]:
    text = head.lstrip(_BLANK).rstrip(b" \t\r\n,")
    if not text:
        return {}
    return _parse_object(text + b"}", 0, health)


def _parse_tail(tail: bytes | None, *, bare: bool, health: HealthLog, end: int) -> dict[str, Any]:
    if tail is None:
        if not bare and "truncated" not in health:
            health.add(
                "truncated", "error", "the file is truncated: it ends inside the list of events", offset=end
            )
        return {}
    text = tail.strip(b" \t\r\n,\0")
    if bare or text in (b"", b"}"):
        return {}
    return _parse_object(b"{" + text, end - len(tail), health)


def _parse_object(text: bytes, offset: int, health: HealthLog) -> dict[str, Any]:
    try:
        value = json.loads(text.decode("utf-8", "replace"), strict=False)
        if b"\\u" in text and _SURROGATE_ESCAPE.search(text):
            from torch_tb_profiler.ingest.kineto.repair import replace_surrogates

            value = replace_surrogates(value)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        health.add("metadata_damaged", "warning", f"the trace's metadata can't be read: {reason}", offset=offset)
        return {}
    return value if isinstance(value, dict) else {}
