"""Values that messages carry beside their fields, by key: annotations of slices, further data of stages.

keys    codes of texts, int64[k]
events  int64[k]  index of the message that carries it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.codes import Codes
from torch_tb_profiler.ingest.kineto.columns import Columns
from torch_tb_profiler.ingest.perfetto import content as messages
from torch_tb_profiler.ingest.perfetto.sequences import Sequences
from torch_tb_profiler.ingest.perfetto.wire import text
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, ArgKind, Bool, Int64

_BOOL, _UINT, _INT, _DOUBLE, _STRING, _POINTER, _INTERNED, _OBJECT, _LIST = 2, 3, 4, 5, 6, 7, 17, 11, 12
_VALUES = np.array([_BOOL, _UINT, _INT, _DOUBLE, _STRING, _POINTER, _INTERNED, _OBJECT, _LIST])
_MOST_KEPT = 1 << 16
"""Lists and objects that are kept decoded: shapes repeat."""


@dataclass(frozen=True)
class Cells:
    """The values of one key and kind: of each event at most one.

    events  int64[k]
    values  int64[k] or float64[k], else a list of texts or of JSON as bytes
    """

    key: str
    kind: ArgKind
    events: Int64
    values: Any


@dataclass
class Reader:
    """Reads annotations; `keys` and `strings` go on over the batches of a file."""

    sequences: Sequences
    keys: Codes = field(default_factory=Codes)
    _kept: dict[tuple[int, bytes], bytes | None] = field(default_factory=dict)

    def annotations(
        self, content: messages.Content, parts: tuple[Int64, Int64, Int64], generation: Int64, damaged: Bool
    ) -> Iterator[Cells]:
        """Those that lie in `parts`; `generation` of every event. Marks events whose annotations are damaged."""
        events, at, size = parts
        read = content.fields(at, size)
        damaged[events[read.damaged]] = True
        key = self._keys(content, read, generation[events])
        chosen = np.isin(read.number, _VALUES)
        which = np.full(read.count, -1)
        which[read.message[chosen]] = np.flatnonzero(chosen)
        known = np.flatnonzero((which >= 0) & (key != NO_CODE))
        known = known[last_of_each(key[known], events[known])]
        which, key, events, at, size = which[known], key[known], events[known], at[known], size[known]
        kind = read.number[which]
        names = self.keys.table()
        for group in _groups(key * 32 + kind):
            one, rows = int(kind[group[0]]), events[group]
            name, value = names[int(key[group[0]])], read.value[which[group]]
            if one in (_OBJECT, _LIST):
                whole = content.pieces(at[group], size[group])
                yield Cells(name, "json", rows, self._nested(whole, generation[rows], rows, damaged))
            elif one == _STRING:
                texts = content.pieces(read.at[which[group]], value.view(np.int64))
                yield Cells(name, "text", rows, [text(each) for each in texts])
            else:
                yield from self._plain(name, one, rows, value, generation[rows])

    def _plain(
        self, name: str, kind: int, rows: Int64, value: messages.UInt64, generation: Int64
    ) -> Iterator[Cells]:
        if kind == _DOUBLE:
            yield Cells(name, "float", rows, value.view(np.float64))
        elif kind == _BOOL:
            yield Cells(name, "json", rows, [b"true" if each else b"false" for each in value.tolist()])
        elif kind == _INTERNED:
            pairs = zip(generation.tolist(), value.tolist(), strict=True)
            texts = [self.sequences.name("value", *pair) for pair in pairs]
            present = [at for at, each in enumerate(texts) if each is not None]
            yield Cells(name, "text", rows[present], [texts[at] for at in present])
        else:
            small = (value < 2**63) if kind != _INT else np.ones(len(value), np.bool_)
            yield Cells(name, "int", rows[small], value[small].view(np.int64))
            if not small.all():
                yield Cells(name, "json", rows[~small], [b"%d" % each for each in value[~small].tolist()])

    def _keys(self, content: messages.Content, read: messages.Columns, generation: Int64) -> Int64:
        """int64[k]: code of the key of every annotation."""
        code = self.sequences.codes("annotation", generation, read.numbers(1), self.keys).astype(np.int64)
        named, at, size = read.parts(10)
        code[named] = text_codes(self.keys, content.pieces(at, size))
        return code

    def _nested(self, whole: list[bytes], generation: Int64, rows: Int64, damaged: Bool) -> list[bytes]:
        values: list[bytes] = []
        for key, row in zip(zip(generation.tolist(), whole, strict=True), rows.tolist(), strict=True):
            if key not in self._kept:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                try:
                    self._kept[key] = msgspec.json.encode(self.sequences.annotation(key[1], key[0])[1])
                except (TraceError, RecursionError):
                    self._kept[key] = None
            damaged[row] |= self._kept[key] is None
            values.append(self._kept[key] or b"null")
        return values


def text_codes(table: Codes, raw: list[bytes]) -> Int64:
    """int64[k]: codes of texts in `table`."""
    of = {each: table[text(each)] for each in set(raw)}
    return np.array([of[each] for each in raw], np.int64)


def add_cells(columns: Columns, cells: Cells, row_of: Int64) -> None:
    """Append values; `row_of` event: its row, below 0 of events that have none."""
    rows = row_of[cells.events]
    kept = np.flatnonzero(rows >= 0)
    values = cells.values
    if len(kept) < len(rows):
        values = values[kept] if isinstance(values, np.ndarray) else [values[at] for at in kept.tolist()]
    columns.add_cells(cells.key, cells.kind, rows[kept].astype(np.int32), values)


def last_of_each(key: Int64, event: Int64) -> Int64:
    """Positions of the last value of every pair, by key and event."""
    order = np.lexsort((event, key))
    key, event = key[order], event[order]
    final = np.append((key[1:] != key[:-1]) | (event[1:] != event[:-1]), True) if len(order) else order > 0
    kept: Int64 = order[final]
    return kept


def _groups(key: Int64) -> list[Int64]:
    """Positions of equal keys, in order."""
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(order) else []


def numbers_of(cells: Sequence[Cells], key: str, count: int) -> Int64:
    """int64[count]: the integers of a key by event, ABSENT where there is none."""
    numbers = np.full(count, ABSENT, np.int64)
    for each in cells:
        if each.key == key and each.kind == "int":
            numbers[each.events] = each.values
    return numbers
