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

_ID_LIMIT = 1 << 40
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
        self._forget()
        sequence = np.maximum(packets.numbers(SEQUENCE), 0)
        distinct, of = np.unique(sequence, return_inverse=True)
        of = of.ravel()
        for each in distinct.tolist():
            if each not in self._current:
                self._begin(each)
        generation = np.array([self._current[each] for each in distinct.tolist()], np.int64)[of]
        interned = np.zeros(packets.count, np.bool_)
        interned[packets.parts(_INTERNED)[0]] = True
        # Packets after a reset of their sequence belong to the generation that starts there.
        turns = np.flatnonzero(clears_state(packets))
        new = np.array([self._begin(each) for each in sequence[turns].tolist()], np.int64)
        generation = forward_fill(of, turns, new, generation)
        for packet in np.flatnonzero(interned & ~packets.damaged).tolist():
            begin = int(at[packet])
            try:
                self._learn(int(generation[packet]), content.content[begin : begin + int(size[packet])])
            except TraceError:
                packets.damaged[packet] = True
        return generation

    def _begin(self, sequence: int) -> int:
        if sequence in self._current:
            self._ended.append(self._current[sequence])
        self._generations += 1
        self._current[sequence] = self._generations
        return self._generations

    def _forget(self) -> None:
        for generation in self._ended:
            for kind in _KINDS.values():
                self._texts.pop((generation, kind), None)
        self._ended.clear()

    def _learn(self, generation: int, packet: bytes) -> None:
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
        return self._texts.get((generation, kind), {}).get(number)

    def name(self, kind: str, generation: int, number: int | bytes | None) -> str | None:
        """Return the text of this number, or None."""
        raw = self.raw(kind, generation, number) if isinstance(number, int) else None
        return None if raw is None else decode_text(raw)

    def codes(self, kind: str, generation: Int64, number: Int64, table: Codes) -> Int32:
        """Return int32[k]: codes of texts in `table`, NO_CODE where a number is ABSENT or was never interned."""
        known = (number > 0) & (number < _ID_LIMIT)
        keys, of = np.unique(np.where(known, generation * _ID_LIMIT + number, 0), return_inverse=True)
        names = [self.name(kind, *divmod(key, _ID_LIMIT)) if key else None for key in keys.tolist()]
        codes: Int32 = np.array([NO_CODE if name is None else table[name] for name in names], np.int32)[of.ravel()]
        return codes

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
    lost: Bool = ((flags != ABSENT) & (flags & _CLEARED == _CLEARED)) | (packets.numbers(_STATE_CLEARED) > 0)
    return lost


def forward_fill(sequence: Int64, turns: Int64, new: Int64, before: Int64) -> Int64:
    """Return int64[k]: `new` of the last packet in `turns` up to each packet in its sequence, else `before`."""
    if len(turns) == 0:
        return before
    turn_at = np.full(len(sequence), -1)
    turn_at[turns] = np.arange(len(turns))
    order = np.argsort(sequence, kind="stable")
    last = np.maximum.accumulate(np.where(turn_at[order] >= 0, np.arange(len(order)), -1))
    same = (last >= 0) & (sequence[order[last]] == sequence[order])
    latest: Int64 = before.copy()
    latest[order[same]] = new[turn_at[order[last[same]]]]
    return latest
