"""What packets refer to by number: names, categories and values that a sequence of packets wrote down once."""

from __future__ import annotations

import struct
from typing import Any

from torch_tb_profiler.ingest.perfetto.wire import Fields, fields, signed

_CLEARED = 1
_DEEPEST = 16
"""Of values in values."""

_KINDS = {1: "category", 2: "event", 3: "annotation", 24: "stage", 29: "value", 1000: "kernel", 1001: "argument"}
"""Field of InternedData -> what it names."""


class Sequences:
    """Interned texts by (sequence, kind, number)."""

    def __init__(self) -> None:
        self._texts: dict[int, dict[tuple[str, int], str]] = {}
        self._own: dict[tuple[str, int], str] = {}

    def enter(self, packet: Fields) -> None:
        """Learn what a packet writes down; questions are then answered for its sequence."""
        told = dict(packet)
        sequence = told.get(10, 0)
        flags = told.get(13, 0)
        number = sequence if isinstance(sequence, int) else 0
        if told.get(41) or (isinstance(flags, int) and flags & _CLEARED):
            self._texts[number] = {}
        self._own = self._texts.setdefault(number, {})
        for field, value in packet:
            if field == 12 and isinstance(value, bytes):
                self._learn(value)

    def _learn(self, interned: bytes) -> None:
        for field, entry in fields(interned):
            if field in _KINDS and isinstance(entry, bytes):
                told = dict(fields(entry))
                # A kernel's demangled name is its third field.
                id, name = told.get(1), told.get(3, told.get(2)) if field == 1000 else told.get(2)
                if isinstance(id, int) and isinstance(name, bytes):
                    self._own[_KINDS[field], id] = text(name)

    def name(self, kind: str, number: int | bytes | None) -> str | None:
        """The text of this number in the sequence of the last packet."""
        return self._own.get((kind, number)) if isinstance(number, int) else None

    def annotation(self, message: bytes, depth: int = 0) -> tuple[str | None, Any]:
        """(name, value) of a DebugAnnotation: a number, text, bool, list or object; None for what lies deeper than
        any writer nests it."""
        name: str | None = None
        value: Any = None
        if depth > _DEEPEST:
            return None, None
        for field, content in fields(message):
            if field == 10 and isinstance(content, bytes):
                name = text(content)
            elif field == 1:
                name = self.name("annotation", content)
            elif field == 6 and isinstance(content, bytes):
                value = text(content)
            elif field == 17:
                value = self.name("value", content)
            elif field == 4 and isinstance(content, int):
                value = signed(content)
            elif field == 5 and isinstance(content, int):
                value = struct.unpack("<d", content.to_bytes(8, "little"))[0]
            elif field == 2:
                value = bool(content)
            elif field in (3, 7):
                value = content
            elif field == 12 and isinstance(content, bytes):
                value = value if isinstance(value, list) else []
                value.append(self.annotation(content, depth + 1)[1])
            elif field == 11 and isinstance(content, bytes):
                value = value if isinstance(value, dict) else {}
                key, inner = self.annotation(content, depth + 1)
                value[key or ""] = inner
        return name, value


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
