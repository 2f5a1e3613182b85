"""Recover events from damaged text, so that one bad event costs one event.

The standard library's lenient decoder accepts raw control characters, NaN and Infinity. This module repairs
escapes that JSON lacks and words such as `N/A`, and skips text that is garbled or truncated.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.health import HealthLog, Severity

_EVENT_START = lazy_regex(r'\{\s*"(?:ph|name|cat|ts|dur|pid|tid|args|id|s|bp)"\s*:')
_TOKEN = lazy_regex(r'"(?:[^"\\]|\\.)*"|[-+]?\b(?:N/A|nan|inf(?:inity)?)\b', re.IGNORECASE | re.DOTALL)
_ESCAPE = lazy_regex(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|)')
_SURROGATE = lazy_regex("[\ud800-\udfff]")
_MAX_STARTS_PER_EVENT = 8
"""Most later event starts that are tried as the end of an event; its texts may contain some."""


class EventSalvage:
    """The events recovered from a piece of text that starts between two events.

    offset  where the bytes lie in the unpacked file, for the notes
    final   the file ends here, so an unfinished last event means that the file is truncated

    events  what could be read;  rest  what follows the array if its end was met, else None
    """

    def __init__(self, raw: bytes, offset: int, health: HealthLog, *, final: bool) -> None:
        self.events: list[Any] = []
        self.rest: str | None = None
        self._offset = offset
        self._health = health
        self._final = final
        # Decimal: a float64 of microseconds since the epoch has lost the nanoseconds.
        self._strict = json.JSONDecoder(parse_float=Decimal, parse_constant=self._constant)
        self._lenient = json.JSONDecoder(parse_float=Decimal, parse_constant=self._constant, strict=False)
        self._text = self._decode(raw)
        self._at = 0
        self._read()

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            text = raw.decode("utf-8", "replace")
            self._health.add(
                "invalid_utf8",
                "warning",
                "invalid UTF-8 bytes were replaced by \ufffd",
                count=max(1, text.count("\ufffd")),
                offset=self._offset + error.start,
            )
            return text

    def _read(self) -> None:
        text = self._text
        while True:
            while self._at < len(text) and text[self._at] in " \t\r\n,\0":
                self._at += 1
            if self._at >= len(text):
                return
            if text[self._at] == "]":
                self.rest = text[self._at + 1 :]
                return
            if not self._read_one():
                self._repair_one()

    def _read_one(self) -> bool:
        """Decode the event at this position unchanged; return False if it can't be decoded."""
        try:
            event, end = self._strict.raw_decode(self._text, self._at)
        except RecursionError:
            return False
        except ValueError:
            try:
                event, end = self._lenient.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                return False
            self._note("control_character", "warning", "texts with raw control characters; left as they are")
        self.events.append(replace_surrogates(event))
        self._at = end
        return True

    def _repair_one(self) -> None:
        """Repair or skip the event at this position."""
        ends = self._boundaries()
        for end in ends:
            repaired = _TOKEN.sub(_repair_token, self._text[self._at : end])
            try:
                event, used = self._lenient.raw_decode(repaired)
            except (ValueError, RecursionError):
                continue
            self._note(
                "repaired_event",
                "warning",
                "events with invalid escapes or words that are not JSON (N/A, nan, inf) were repaired",
            )
            self.events.append(replace_surrogates(event))
            rest = repaired[used:].lstrip()
            if rest.startswith("]"):
                self.rest = rest[1:] + self._text[end:]
                end = len(self._text)
            self._at = end
            return
        if self._final and ends[0] == len(self._text):
            self._note(
                "truncated", "error", "the file is truncated inside an event; only what precedes it is shown"
            )
        else:
            self._note("skipped_event", "error", "events that can't be read were skipped")
        self._at = ends[0]

    def _boundaries(self) -> list[int]:
        """Return where the event that begins here may end: before a later event starts, or with the text."""
        text, ends = self._text, []
        for match in _EVENT_START.finditer(text, self._at + 1):
            before = match.start() - 1
            while before > self._at and text[before] in " \t\r\n":
                before -= 1
            if text[before] == ",":
                ends.append(match.start())
                if len(ends) == _MAX_STARTS_PER_EVENT:
                    return ends
        return [*ends, len(text)]

    def _note(self, kind: str, severity: Severity, message: str) -> None:
        offset = None
        if kind not in self._health:  # the offset is counted only for the first note of a kind
            offset = self._offset + len(self._text[: self._at].encode("utf-8", "replace"))
        self._health.add(kind, severity, message, offset=offset)

    def _constant(self, word: str) -> float:
        self._note("not_a_number", "warning", "numbers that are NaN or infinite; treated as unknown")
        return float(word)


def _repair_token(match: re.Match[str]) -> str:
    token = match.group()
    if token[0] == '"':
        return _ESCAPE.sub(lambda escape: escape.group() if len(escape.group()) > 1 else "\\\\", token)
    word = token.lstrip("+-").lower()
    if word == "n/a":
        return "null"
    return "NaN" if word == "nan" else "-Infinity" if token[0] == "-" else "Infinity"


def replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which can't be encoded, in a decoded JSON value."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    return value
