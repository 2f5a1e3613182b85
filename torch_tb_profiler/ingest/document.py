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
_HEAD_LIMIT = 1 << 26
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_CUT = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|dur|pid|tid|args|id|s|bp)"\s*:)')
_CUT_WINDOW = 1 << 14
_TAIL_CANDIDATES = 8

AddBlock = Callable[[bytes], bool]
"""Takes `[{...},{...}]`; False if it is not well-formed."""

AddDamaged = Callable[[bytes, int, bool], "str | None"]
"""Takes damaged text, its offset and whether the file ends there; returns what follows the array, if met."""


def read_document(source: Source, health: HealthLog, add: AddBlock, damaged: AddDamaged) -> dict[str, Any]:
    """Walk through the document, hand over its events, return the metadata around them.

    Raises TraceError if there is no array of events.
    """
    head, rest = _read_head(source)
    tail = _read_events(source, rest, add, damaged)
    metadata = _parse_head(head, health)
    metadata.update(_parse_tail(tail, bare=not head, health=health, end=source.offset))
    return metadata


def _read_head(source: Source) -> tuple[bytes, bytes]:
    """What stands before the first event, and what was read beyond; the head of a bare list is empty."""
    text = b""
    while len(text) < _HEAD_LIMIT:
        piece = source.read(BLOCK)
        text += piece
        start = text.lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith(b"["):
            return b"", start[1:]
        found = _EVENTS_KEY.search(text, max(0, len(text) - len(piece) - 64))
        if found and start.startswith(b"{"):
            return text[: found.start()], text[found.end() :]
        if not piece:
            break
    raise _no_events(text)


def _no_events(text: bytes) -> TraceError:
    text = text.strip(b"\xef\xbb\xbf \t\r\n\0")
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


def _read_events(source: Source, text: bytes, add: AddBlock, damaged: AddDamaged) -> bytes | None:
    """Hand over all events; returns what follows the array, None if its end is missing."""
    # `begin` is the offset in the file of the first byte of `text`.
    while True:
        begin = source.offset - len(text)
        cut = _last_cut(text) if len(text) >= BLOCK else 0
        if cut:
            if not add(b"[" + text[:cut] + b"]"):
                rest = damaged(text[:cut], begin, False)
                if rest is not None:
                    return rest.encode("utf-8", "replace") + text[cut - 1 :] + _read_all(source)
            text = text[cut:].lstrip(b" \t\r\n,")
        piece = source.read(BLOCK)
        if not piece:
            return _read_last(source.offset - len(text), text, add, damaged)
        text += piece


def _last_cut(text: bytes) -> int:
    """Just behind the last event that surely ended in `text`, 0 if none is found."""
    window = _CUT_WINDOW
    while True:
        start = max(0, len(text) - window)
        cuts = [match.start() + 1 for match in _CUT.finditer(text, start)]
        if cuts:
            return cuts[-1]
        if start == 0:
            return 0
        window *= 8


def _read_last(begin: int, text: bytes, add: AddBlock, damaged: AddDamaged) -> bytes | None:
    """The last stretch: events, the end of the array, the rest of the document."""
    end = len(text)
    for _ in range(_TAIL_CANDIDATES):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            break
        tail = text[end + 1 :]
        if _closes(tail) and add(b"[" + text[:end].rstrip(b" \t\r\n,") + b"]"):
            return tail
    rest = damaged(text, begin, True)
    return None if rest is None else rest.encode("utf-8", "replace")


def _closes(tail: bytes) -> bool:
    tail = tail.strip(b" \t\r\n\0")
    return not tail or (tail.endswith(b"}") and (tail == b"}" or tail.startswith(b",")))


def _read_all(source: Source) -> bytes:
    pieces = []
    while piece := source.read(BLOCK):
        pieces.append(piece)
    return b"".join(pieces)


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
        health.add(
            "metadata_damaged", "warning", f"the trace's metadata cannot be read: {error}", offset=offset
        )
        return {}
    return value if isinstance(value, dict) else {}
