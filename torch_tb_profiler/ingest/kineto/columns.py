"""Columns that grow block by block while a file is read, and become those of one Trace.

Texts are interned as they arrive, so memory holds codes and each distinct text once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.ingest.kineto.codes import Codes, JsonCodes, TextCodes
from torch_tb_profiler.ingest.kineto.growing import GrowingColumn
from torch_tb_profiler.ingest.runtime import ReportStep, ignore_step
from torch_tb_profiler.model.trace import (
    ABSENT,
    FIRST_TEXT_ID,
    ArgColumn,
    ArgKind,
    Events,
    Int32,
    Int64,
    Thread,
)

MAX_ARGUMENT_KEYS = 4096
"""Most argument keys that get a column; a file with more holds generated keys that occur once each."""

_NULL = "null"
"""JSON text of an argument that counts as absent."""

_DTYPES: dict[str, Any] = {
    "phase": np.uint8,
    "category": np.int32,
    "name": np.int32,
    "thread": np.int32,
    "start": np.int64,
    "duration": np.int64,
    "id": np.int64,
}

_CELL_DTYPES: dict[ArgKind, Any] = {"int": np.int64, "float": np.float64, "text": np.int32, "json": np.int32}


class EventBlock(msgspec.Struct):
    """The columns of consecutive events; times are ns in the file's clock."""

    phase: npt.NDArray[np.uint8]
    category: Int32
    name: Int32
    thread: Int32
    start: Int64
    duration: Int64
    id: Int64


class _CellBlock(msgspec.Struct):
    """Consecutive cells of an argument column; `values` are numbers, or codes of texts or JSON texts."""

    kind: ArgKind
    rows: Int32
    values: npt.NDArray[Any]


class _GrowingCells:
    """Cells of one kind of a growing argument column."""

    def __init__(self, kind: ArgKind) -> None:
        self.rows = GrowingColumn(np.int32)
        self.values = GrowingColumn(_CELL_DTYPES[kind])


class _GrowingArg(msgspec.Struct):
    """An argument column that still grows; `blocks` are the kinds and sizes of what came after each other."""

    texts: TextCodes = msgspec.field(default_factory=TextCodes)
    jsons: JsonCodes = msgspec.field(default_factory=JsonCodes)
    cells: dict[ArgKind, _GrowingCells] = {}
    blocks: list[tuple[ArgKind, int]] = []

    def extend(self, kind: ArgKind, count: int) -> _GrowingCells:
        """Return the cells of a kind, to which the caller appends `count`."""
        if kind not in self.cells:
            self.cells[kind] = _GrowingCells(kind)
        self.blocks.append((kind, count))
        return self.cells[kind]

    def finish(self) -> list[_CellBlock]:
        """Return all cells as they came: those of a single kind in one block."""
        done = {kind: (cells.rows.finish(), cells.values.finish()) for kind, cells in self.cells.items()}
        self.cells.clear()
        if len(done) == 1:
            return [_CellBlock(kind, *columns) for kind, columns in done.items()]
        parts = []
        begin = dict.fromkeys(done, 0)
        for kind, count in self.blocks:
            (rows, values), first = done[kind], begin[kind]
            begin[kind] = first + count
            parts.append(_CellBlock(kind, rows[first : begin[kind]], values[first : begin[kind]]))
        return parts


class EventColumns:
    """Collects blocks and sparse argument columns; `dropped` counts cells of keys beyond MAX_ARGUMENT_KEYS."""

    def __init__(self) -> None:
        self.strings = Codes()
        self.threads = Codes()
        self.text_ids = Codes()
        self.length = 0
        self.dropped = 0
        self._events = {name: GrowingColumn(dtype) for name, dtype in _DTYPES.items()}
        self._args: dict[str, _GrowingArg] = {}

    def add_block(self, block: EventBlock) -> int:
        """Append a block and return the row number of its first event."""
        first = self.length
        for name, column in self._events.items():
            column.append(getattr(block, name))
        self.length += len(block.phase)
        return first

    def set_durations(self, first: int, durations: Int64) -> None:
        """Set the durations of the events from row `first` on."""
        self._events["duration"].overwrite(first, durations)

    def reserve_rows(self, count: int) -> list[int]:
        """Append events; return where to write each column, addresses in the order of `EventBlock`."""
        self.length += count
        return [column.reserve(count) for column in self._events.values()]

    def reserve_cells(self, key: str, kind: ArgKind, count: int) -> tuple[int, int] | None:
        """Append cells; return where to write their rows and values, None for a key without a column."""
        if not self._has_column(key):
            self.dropped += count
            return None
        cells = self._growing(key).extend(kind, count)
        return cells.rows.reserve(count), cells.values.reserve(count)

    def ids(self, values: Sequence[Any]) -> Int64:
        """Return flow ids as int64[n]: integers, ABSENT, or numbers that stand for texts (see `Events.id`)."""
        try:
            return np.array(values, np.int64)
        except (TypeError, ValueError, OverflowError):
            return np.array([self._id(value) for value in values], np.int64)

    def _id(self, value: Any) -> int:
        if value is None:
            return int(ABSENT)
        if isinstance(value, int) and -(2**61) < value < 2**63 or value == ABSENT:
            return int(value)
        return FIRST_TEXT_ID + self.text_ids[str(value)]

    def add_cells(self, key: str, kind: ArgKind, rows: Int32, values: Iterable[Any]) -> None:
        """Append numbers, texts, or JSON texts as bytes to an argument column of this `kind`."""
        if len(rows) == 0:
            return
        table = self.table(key, kind)
        if table is not None:
            self.add_coded(key, kind, rows, table.encode(values))
        elif self._has_column(key):
            self.add_coded(key, kind, rows, np.asarray(values, np.int64 if kind == "int" else np.float64))
        else:
            self.dropped += len(rows)

    def add_coded(self, key: str, kind: ArgKind, rows: Int32, cells: npt.NDArray[Any]) -> None:
        """Append numbers, or codes into the column's `table`, to an argument column."""
        if self._has_column(key):
            growing = self._growing(key).extend(kind, len(rows))
            growing.rows.append(rows)
            growing.values.append(cells)
        else:
            self.dropped += len(rows)

    def table(self, key: str, kind: ArgKind) -> TextCodes | JsonCodes | None:
        """Return the text codes of an argument column; None for numbers and for keys beyond MAX_ARGUMENT_KEYS."""
        if kind not in ("text", "json") or not self._has_column(key):
            return None
        column = self._growing(key)
        return column.texts if kind == "text" else column.jsons

    def _growing(self, key: str) -> _GrowingArg:
        if key not in self._args:
            self._args[key] = _GrowingArg()
        return self._args[key]

    def _has_column(self, key: str) -> bool:
        return key in self._args or len(self._args) < MAX_ARGUMENT_KEYS

    def finish_events(self, step: ReportStep = ignore_step) -> Events:
        """Return the event columns."""
        finished = {}
        for name, column in self._events.items():
            finished[name] = column.finish()
            step()
        return Events(**finished)

    def finish_args(self, step: ReportStep = ignore_step) -> dict[str, ArgColumn]:
        """Return one column per argument key, with ascending rows."""
        finished = {}
        for key in list(self._args):
            column = _finish_argument(self._args.pop(key))
            if len(column.rows):
                finished[key] = column
            step()
        return finished

    def finish_threads(self) -> list[Thread]:
        return [Thread(pid, tid) for pid, tid in self.threads.table()]


def _finish_argument(column: _GrowingArg) -> ArgColumn:
    blocks = column.finish()
    kind = common_kind({block.kind for block in blocks})
    parts = [block.values for block in blocks]
    dictionary: Sequence[str] = ()
    if kind == "text":
        parts, dictionary = _finish_texts(column, blocks)
    elif kind == "json":
        parts, dictionary = _finish_json(column, blocks)
    elif kind == "float":
        parts = [part.astype(np.float64, copy=False) for part in parts]
    rows, values = _join([block.rows for block in blocks]), _join(parts)
    if kind == "json" and _NULL in dictionary:
        present = values != dictionary.index(_NULL)
        rows, values = rows[present], values[present]
    if len(rows) > 1 and not (rows[1:] > rows[:-1]).all():
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
    return ArgColumn(kind, rows, values, dictionary)


def _join(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _finish_texts(column: _GrowingArg, blocks: list[_CellBlock]) -> tuple[list[npt.NDArray[Any]], Sequence[str]]:
    """Return the final codes of each block of a text column, and its texts."""
    dictionary, code_of = column.texts.merge()
    return [code_of(block.values) for block in blocks], dictionary


def _finish_json(column: _GrowingArg, blocks: list[_CellBlock]) -> tuple[list[npt.NDArray[Any]], list[str]]:
    """Return the codes of each block of a column of mixed kinds, and the JSON texts they stand for."""
    texts, code_of = column.texts.merge()
    dictionary, text_index, json_index = _merge_dictionaries(texts, column.jsons.table())
    if {block.kind for block in blocks} == {"json"} and (json_index == np.arange(len(json_index))).all():
        return [block.values for block in blocks], dictionary  # no value is spelled in two ways
    numbers = Codes()
    parts: list[npt.NDArray[Any]] = []
    for block in blocks:
        if block.kind == "text":
            parts.append(text_index[code_of(block.values)])
        elif block.kind == "json":
            parts.append(json_index.take(block.values))
        else:
            parts.append(numbers.encode(map(str, block.values.tolist())) + np.int32(len(dictionary)))
    return parts, [*dictionary, *numbers.table()]


def _merge_dictionaries(texts: Sequence[str], jsons: Sequence[bytes]) -> tuple[list[str], Int32, Int32]:
    """Return one dictionary of compact JSON texts, and the index in it of each text and each JSON value."""
    merged = Codes()
    text_index = merged.encode(msgspec.json.encode(text).decode() for text in texts)
    json_index = merged.encode(map(compact_json, jsons))
    return merged.table(), text_index, json_index


def compact_json(raw: bytes) -> str:
    """Return JSON without blanks between tokens, so that equal values are equal texts."""
    if b" " in raw or b"\n" in raw or b"\t" in raw:
        raw = msgspec.json.format(raw, indent=-1)
    return raw.decode("utf-8", "replace")


def common_kind(kinds: Iterable[ArgKind]) -> ArgKind:
    """Return the one kind that can hold values of all `kinds`."""
    distinct = set(kinds)
    if len(distinct) == 1:
        return distinct.pop()
    return "float" if distinct <= {"int", "float"} and distinct else "json"
