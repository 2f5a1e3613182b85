"""Values that messages carry by key: annotations of slices and extra data of stages.

keys    int64[k]  codes of texts
events  int64[k]  index of the message that carries the value
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.codes import Codes
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.perfetto.interned import InternedTexts
from torch_tb_profiler.ingest.perfetto.protobuf import MessageBuffer, UInt64, decode_text
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, ArgKind, Bool, Int64

_KEY = 1, 10
"""Fields of a DebugAnnotation: the number of its key, or the key."""

_BOOL, _UINT, _INT, _DOUBLE, _STRING, _POINTER, _INTERNED, _OBJECT, _LIST = 2, 3, 4, 5, 6, 7, 17, 11, 12
_VALUE_FIELDS = np.array([_BOOL, _UINT, _INT, _DOUBLE, _STRING, _POINTER, _INTERNED, _OBJECT, _LIST])
"""Fields of a DebugAnnotation that hold its value."""

_MAX_CACHED_VALUES = 1 << 16
"""Most decoded lists and objects that are cached; shapes repeat."""


@dataclass(frozen=True)
class ArgumentCells:
    """The values of one key and kind, at most one per event.

    events  int64[k]
    values  int64[k], float64[k], or a list of texts or of JSON as bytes
    """

    key: str
    kind: ArgKind
    events: Int64
    values: Any


@dataclass
class AnnotationReader:
    """Reads annotations; `keys` are shared by all batches of a file."""

    interned: InternedTexts
    keys: Codes = field(default_factory=Codes)
    _cached: dict[tuple[int, bytes], bytes | None] = field(default_factory=dict)

    def annotations(
        self, content: MessageBuffer, parts: tuple[Int64, Int64, Int64], generation: Int64, damaged: Bool
    ) -> Iterator[ArgumentCells]:
        """Yield the annotations in `parts`, and mark events whose annotations are damaged.

        generation  of every event
        """
        events, at, size = parts
        read = content.parse_fields(at, size)
        damaged[events[read.damaged]] = True
        key = self.interned.field_codes("annotation", generation[events], content, read, _KEY, self.keys).astype(
            np.int64
        )
        chosen = np.isin(read.number, _VALUE_FIELDS)
        which = np.full(read.count, -1)
        which[read.message[chosen]] = np.flatnonzero(chosen)
        known = np.flatnonzero((which >= 0) & (key != NO_CODE))
        known = known[last_value_positions(key[known], events[known])]
        which, key, events, at, size = which[known], key[known], events[known], at[known], size[known]
        kind = read.number[which]
        names = self.keys.table()
        for group in _groups(key * 32 + kind):
            group_kind, rows = int(kind[group[0]]), events[group]
            name, value = names[int(key[group[0]])], read.value[which[group]]
            if group_kind in (_OBJECT, _LIST):
                messages = content.pieces(at[group], size[group])
                yield ArgumentCells(
                    name, "json", rows, self._nested_values(messages, generation[rows], rows, damaged)
                )
            elif group_kind == _STRING:
                texts = content.pieces(read.at[which[group]], value.view(np.int64))
                yield ArgumentCells(name, "text", rows, [decode_text(each) for each in texts])
            else:
                yield from self._simple_values(name, group_kind, rows, value, generation[rows])

    def _simple_values(
        self, name: str, kind: int, rows: Int64, value: UInt64, generation: Int64
    ) -> Iterator[ArgumentCells]:
        if kind == _DOUBLE:
            yield ArgumentCells(name, "float", rows, value.view(np.float64))
        elif kind == _BOOL:
            yield ArgumentCells(name, "json", rows, [b"true" if each else b"false" for each in value.tolist()])
        elif kind == _INTERNED:
            pairs = zip(generation.tolist(), value.tolist(), strict=True)
            texts = [self.interned.name("value", *pair) for pair in pairs]
            present = [at for at, each in enumerate(texts) if each is not None]
            yield ArgumentCells(name, "text", rows[present], [texts[at] for at in present])
        else:
            small = (value < 2**63) if kind != _INT else np.ones(len(value), np.bool_)
            yield ArgumentCells(name, "int", rows[small], value[small].view(np.int64))
            if not small.all():
                yield ArgumentCells(name, "json", rows[~small], [b"%d" % each for each in value[~small].tolist()])

    def _nested_values(self, messages: list[bytes], generation: Int64, rows: Int64, damaged: Bool) -> list[bytes]:
        """Return lists and objects as JSON, and mark events whose values are damaged."""
        values: list[bytes] = []
        for key, row in zip(zip(generation.tolist(), messages, strict=True), rows.tolist(), strict=True):
            if key not in self._cached:
                if len(self._cached) >= _MAX_CACHED_VALUES:
                    self._cached.clear()
                try:
                    self._cached[key] = msgspec.json.encode(self.interned.annotation(key[1], key[0])[1])
                except (TraceError, RecursionError):
                    self._cached[key] = None
            damaged[row] |= self._cached[key] is None
            values.append(self._cached[key] or b"null")
        return values


def add_cells(columns: EventColumns, cells: ArgumentCells, row_of: Int64) -> None:
    """Append values; `row_of[event]` is negative for events without a row."""
    rows = row_of[cells.events]
    present = np.flatnonzero(rows >= 0)
    values = cells.values
    if len(present) < len(rows):
        values = values[present] if isinstance(values, np.ndarray) else [values[at] for at in present.tolist()]
    columns.add_cells(cells.key, cells.kind, rows[present].astype(np.int32), values)


def last_value_positions(key: Int64, event: Int64) -> Int64:
    """Return the positions of the last value of every (key, event) pair, sorted by it."""
    order = np.lexsort((event, key))
    key, event = key[order], event[order]
    final = np.append((key[1:] != key[:-1]) | (event[1:] != event[:-1]), True) if len(order) else order > 0
    positions: Int64 = order[final]
    return positions


def _groups(key: Int64) -> list[Int64]:
    """Return arrays of the positions of equal keys, in key order."""
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(order) else []


def integer_values(cells: Sequence[ArgumentCells], key: str, count: int) -> Int64:
    """Return int64[count]: the integers of a key by event, ABSENT where there is none."""
    numbers = np.full(count, ABSENT, np.int64)
    for each in cells:
        if each.key == key and each.kind == "int":
            numbers[each.events] = each.values
    return numbers
