"""What packets refer to by number: names, categories and values that a sequence of packets wrote down once.

A sequence may forget all it wrote down and begin anew; until then it must not give a number twice. Between two
such moments lies a generation.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import Any

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.codes import Codes
from torch_tb_profiler.ingest.perfetto.content import Columns, Content
from torch_tb_profiler.ingest.perfetto.wire import fields, signed, text
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64

SEQUENCE, _INTERNED, _FLAGS, _STATE_CLEARED = 10, 12, 13, 41
_CLEARED = 1
_DEEPEST = 16
"""Of values in values."""

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
"""Field of InternedData -> what it names."""

_IDS = 1 << 40
"""Numbers are small: sequences count them."""


class Sequences:
    """Interned texts by generation, kind and number."""

    def __init__(self) -> None:
        self._current: dict[int, int] = {}
        self._generations = 0
        self._texts: defaultdict[tuple[int, str], dict[int, bytes]] = defaultdict(dict)
        self._ended: list[int] = []

    def enter(self, content: Content, packets: Columns, at: Int64, size: Int64) -> Int64:
        """Learn what packets write down; int64[k]: the generation that each belongs to."""
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
        # What follows a moment at which its sequence begins anew is of the generation that begins there.
        turns = np.flatnonzero(cleared(packets))
        new = np.array([self._begin(each) for each in sequence[turns].tolist()], np.int64)
        generation = since_turn(of, turns, new, generation)
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
        for number, interned in fields(packet):
            if number == _INTERNED and isinstance(interned, bytes):
                for field, entry in fields(interned):
                    if field in _KINDS and isinstance(entry, bytes):
                        entry_fields = dict(fields(entry))
                        # A kernel's demangled name is its third field; a description of counters stays as it is.
                        name = entry_fields.get(3, entry_fields.get(2)) if field == 1000 else entry_fields.get(2)
                        id = entry_fields.get(1)
                        if field == 47:
                            name = entry
                        if isinstance(id, int) and isinstance(name, bytes):
                            self._texts[generation, _KINDS[field]].setdefault(id, name)

    def raw(self, kind: str, generation: int, number: int) -> bytes | None:
        return self._texts.get((generation, kind), {}).get(number)

    def name(self, kind: str, generation: int, number: int | bytes | None) -> str | None:
        """The text of this number."""
        raw = self.raw(kind, generation, number) if isinstance(number, int) else None
        return None if raw is None else text(raw)

    def codes(self, kind: str, generation: Int64, number: Int64, table: Codes) -> Int32:
        """int32[k]: codes of texts in `table`, NO_CODE where a number is ABSENT or was not written down."""
        known = (number > 0) & (number < _IDS)
        keys, of = np.unique(np.where(known, generation * _IDS + number, 0), return_inverse=True)
        names = [self.name(kind, *divmod(key, _IDS)) if key else None for key in keys.tolist()]
        codes: Int32 = np.array([NO_CODE if name is None else table[name] for name in names], np.int32)[of.ravel()]
        return codes

    def annotation(self, message: bytes, generation: int, depth: int = 0) -> tuple[str | None, Any]:
        """(name, value) of a DebugAnnotation: a number, text, bool, list or object; None for what lies deeper than
        any writer nests it. Raises TraceError if it is damaged."""
        name: str | None = None
        value: Any = None
        if depth > _DEEPEST:
            return None, None
        for field, content in fields(message):
            if field == 10 and isinstance(content, bytes):
                name = text(content)
            elif field == 1:
                name = self.name("annotation", generation, content)
            elif field == 6 and isinstance(content, bytes):
                value = text(content)
            elif field == 17:
                value = self.name("value", generation, content)
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
                value.append(self.annotation(content, generation, depth + 1)[1])
            elif field == 11 and isinstance(content, bytes):
                value = value if isinstance(value, dict) else {}
                key, inner = self.annotation(content, generation, depth + 1)
                value[key or ""] = inner
        return name, value


def cleared(packets: Columns) -> Bool:
    """bool[k]: packets with which their sequence begins anew."""
    flags = packets.numbers(_FLAGS)
    lost: Bool = ((flags != ABSENT) & (flags & _CLEARED == _CLEARED)) | (packets.numbers(_STATE_CLEARED) > 0)
    return lost


def since_turn(sequence: Int64, turns: Int64, new: Int64, before: Int64) -> Int64:
    """int64[k]: `new` of the last of the packets `turns` in a packet's sequence up to it, else its `before`."""
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
