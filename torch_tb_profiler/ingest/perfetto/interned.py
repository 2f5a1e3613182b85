"""Interned texts: names, categories and values that packets write once and refer to by number.

A sequence may clear its interned texts and start again; until then each number has one text. A generation is the
time between two such resets.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import Any

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.codes import Codes
from torch_tb_profiler.ingest.perfetto.protobuf import (
    MessageBuffer,
    MessageFields,
    decode_text,
    parse_fields,
    to_signed,
)
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64

SEQUENCE, _INTERNED, _FLAGS, _STATE_CLEARED = 10, 12, 13, 41
_CLEARED = 1
_MAX_DEPTH = 16
"""Deepest nesting of values that is read."""

_KINDS = {
    1: "category",
    2: "event",
    3: "annotation",
    24: "stage",
    29: "value",
    47: "counters",
    1000: "kernel",
    1001: "argument",
}
"""Field of InternedData -> kind of text."""

_NUMBER_LIMIT = 1 << 40
"""Exclusive upper bound of numbers; sequences count them from 1."""


class InternedTexts:
    """Interned texts by generation, kind and number."""

    def __init__(self) -> None:
        self._current: dict[int, int] = {}
        self._generations = 0
        self._texts: defaultdict[tuple[int, str], dict[int, bytes]] = defaultdict(dict)
        self._ended: list[int] = []

    def enter(self, content: MessageBuffer, packets: MessageFields, at: Int64, size: Int64) -> Int64:
        """Store the texts that packets intern; return int64[k]: the generation of each packet."""
        self._forget_ended()
        sequence = np.maximum(packets.numbers(SEQUENCE), 0)
        distinct, of = np.unique(sequence, return_inverse=True)
        of = of.ravel()
        for each in distinct.tolist():
            if each not in self._current:
                self._begin_generation(each)
        generation = np.array([self._current[each] for each in distinct.tolist()], np.int64)[of]
        # Packets after a reset of their sequence belong to the generation that starts there.
        resets = np.flatnonzero(clears_state(packets))
        new = np.array([self._begin_generation(each) for each in sequence[resets].tolist()], np.int64)
        generation = forward_fill(of, resets, new, generation)
        for packet in np.flatnonzero(packets.has_part(_INTERNED) & ~packets.damaged).tolist():
            begin = int(at[packet])
            try:
                self._learn(int(generation[packet]), content.content[begin : begin + int(size[packet])])
            except TraceError:
                packets.damaged[packet] = True
        return generation

    def _begin_generation(self, sequence: int) -> int:
        """Start a new generation of this sequence and return its number."""
        if sequence in self._current:
            self._ended.append(self._current[sequence])
        self._generations += 1
        self._current[sequence] = self._generations
        return self._generations

    def _forget_ended(self) -> None:
        """Free the texts of generations that ended in an earlier batch."""
        for generation in self._ended:
            for kind in _KINDS.values():
                self._texts.pop((generation, kind), None)
        self._ended.clear()

    def _learn(self, generation: int, packet: bytes) -> None:
        """Store the texts that a packet interns."""
        for number, interned in parse_fields(packet):
            if number == _INTERNED and isinstance(interned, bytes):
                for field, entry in parse_fields(interned):
                    if field in _KINDS and isinstance(entry, bytes):
                        entry_fields = dict(parse_fields(entry))
                        # A kernel's demangled name is its third field; a counter description stays raw bytes.
                        name = entry_fields.get(3, entry_fields.get(2)) if field == 1000 else entry_fields.get(2)
                        id = entry_fields.get(1)
                        if field == 47:
                            name = entry
                        if isinstance(id, int) and isinstance(name, bytes):
                            self._texts[generation, _KINDS[field]].setdefault(id, name)

    def raw(self, kind: str, generation: int, number: int) -> bytes | None:
        """Return the bytes of this number, or None."""
        return self._texts.get((generation, kind), {}).get(number)

    def name(self, kind: str, generation: int, number: int | bytes | None) -> str | None:
        """Return the text of this number, or None."""
        raw = self.raw(kind, generation, number) if isinstance(number, int) else None
        return None if raw is None else decode_text(raw)

    def codes(self, kind: str, generation: Int64, number: Int64, table: Codes) -> Int32:
        """Return int32[k]: codes of texts in `table`, NO_CODE where a number is ABSENT or was never interned."""
        known = (number > 0) & (number < _NUMBER_LIMIT)
        keys, of = np.unique(np.where(known, generation * _NUMBER_LIMIT + number, 0), return_inverse=True)
        names = [self.name(kind, *divmod(key, _NUMBER_LIMIT)) if key else None for key in keys.tolist()]
        codes: Int32 = np.array([NO_CODE if name is None else table[name] for name in names], np.int32)[of.ravel()]
        return codes

    def field_codes(
        self,
        kind: str,
        generation: Int64,
        content: MessageBuffer,
        read: MessageFields,
        fields: tuple[int, int],
        table: Codes,
    ) -> Int32:
        """Return int32[k]: codes in `table` of texts that messages name by number or spell out.

        fields  of the number and of the spelled text
        """
        by_number, spelled = fields
        code = self.codes(kind, generation, read.numbers(by_number), table)
        message, at, size = read.parts(spelled)
        code[message] = text_codes(table, content.pieces(at, size))
        return code

    def annotation(self, message: bytes, generation: int, depth: int = 0) -> tuple[str | None, Any]:
        """Return (name, value) of a DebugAnnotation: a number, text, bool, list or object.

        Values nested deeper than any writer does become None. Raises TraceError if it is damaged.
        """
        name: str | None = None
        value: Any = None
        if depth > _MAX_DEPTH:
            return None, None
        for field, content in parse_fields(message):
            if field == 10 and isinstance(content, bytes):
                name = decode_text(content)
            elif field == 1:
                name = self.name("annotation", generation, content)
            elif field == 6 and isinstance(content, bytes):
                value = decode_text(content)
            elif field == 17:
                value = self.name("value", generation, content)
            elif field == 4 and isinstance(content, int):
                value = to_signed(content)
            elif field == 5 and isinstance(content, int):
                value = struct.unpack("<d", content.to_bytes(8, "little"))[0]
            elif field == 2:
                value = bool(content)
            elif field in (3, 7):
                value = content
            elif field == 12 and isinstance(content, bytes):
                value = value if isinstance(value, list) else []
                value.append(self.annotation(content, generation, depth + 1)[1])
            elif field == 11 and isinstance(content, bytes):
                value = value if isinstance(value, dict) else {}
                key, inner = self.annotation(content, generation, depth + 1)
                value[key or ""] = inner
        return name, value


def clears_state(packets: MessageFields) -> Bool:
    """Return bool[k]: whether a packet resets the state of its sequence."""
    flags = packets.numbers(_FLAGS)
    cleared: Bool = ((flags != ABSENT) & (flags & _CLEARED == _CLEARED)) | (packets.numbers(_STATE_CLEARED) > 0)
    return cleared


def forward_fill(sequence: Int64, changes: Int64, new: Int64, before: Int64) -> Int64:
    """Return int64[k]: `new` of the last packet in `changes` up to each packet in its sequence, else `before`."""
    if len(changes) == 0:
        return before
    change_of = np.full(len(sequence), -1)
    change_of[changes] = np.arange(len(changes))
    order = np.argsort(sequence, kind="stable")
    last = np.maximum.accumulate(np.where(change_of[order] >= 0, np.arange(len(order)), -1))
    same = (last >= 0) & (sequence[order[last]] == sequence[order])
    latest: Int64 = before.copy()
    latest[order[same]] = new[change_of[order[last[same]]]]
    return latest


def text_codes(table: Codes, raw: list[bytes]) -> Int64:
    """Return int64[k]: codes of texts in `table`."""
    codes = {text: table[decode_text(text)] for text in set(raw)}
    return np.array([codes[text] for text in raw], np.int64)
