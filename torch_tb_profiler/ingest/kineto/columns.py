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

_EMPTY_COLUMNS: dict[str, npt.NDArray[Any]] = {
    "phase": np.empty(0, np.uint8),
    "category": np.empty(0, np.int32),
    "name": np.empty(0, np.int32),
    "thread": np.empty(0, np.int32),
    "start": np.empty(0, np.int64),
    "duration": np.empty(0, np.int64),
    "id": np.empty(0, np.int64),
}


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


class _GrowingArg(msgspec.Struct):
    """An argument column that still grows; its blocks may be of several kinds."""

    texts: TextCodes = msgspec.field(default_factory=TextCodes)
    jsons: JsonCodes = msgspec.field(default_factory=JsonCodes)
    blocks: list[_CellBlock] = []


class EventColumns:
    """Collects blocks and sparse argument columns; `dropped` counts cells of keys beyond MAX_ARGUMENT_KEYS."""

    def __init__(self) -> None:
        self.strings = Codes()
        self.threads = Codes()
        self.text_ids = Codes()
        self.length = 0
        self.dropped = 0
        self._blocks: list[EventBlock] = []
        self._args: dict[str, _GrowingArg] = {}

    def add_block(self, block: EventBlock) -> int:
        """Append a block and return the row number of its first event."""
        first = self.length
        self._blocks.append(block)
        self.length += len(block.phase)
        return first

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
            self._growing(key).blocks.append(_CellBlock(kind, rows, cells))
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
        """Return the event columns; blocks are freed as they are concatenated."""
        joined = {}
        for name in EventBlock.__annotations__:
            parts = [getattr(block, name) for block in self._blocks]
            joined[name] = np.concatenate(parts) if parts else _EMPTY_COLUMNS[name]
            for block in self._blocks:
                setattr(block, name, None)
            step()
        self._blocks.clear()
        return Events(**joined)

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
    kind = common_kind({block.kind for block in column.blocks})
    parts = [block.values for block in column.blocks]
    dictionary: Sequence[str] = ()
    if kind == "text":
        parts, dictionary = _finish_texts(column)
    elif kind == "json":
        parts, dictionary = _finish_json(column)
    elif kind == "float":
        parts = [part.astype(np.float64, copy=False) for part in parts]
    rows = np.concatenate([block.rows for block in column.blocks])
    values = np.concatenate(parts)
    if kind == "json" and _NULL in dictionary:
        present = values != dictionary.index(_NULL)
        rows, values = rows[present], values[present]
    if len(rows) > 1 and not (rows[1:] > rows[:-1]).all():
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
    return ArgColumn(kind, rows, values, dictionary)


def _finish_texts(column: _GrowingArg) -> tuple[list[npt.NDArray[Any]], Sequence[str]]:
    """Return the final codes of each block of a text column, and its texts."""
    dictionary, code_of = column.texts.merge()
    return [code_of(block.values) for block in column.blocks], dictionary


def _finish_json(column: _GrowingArg) -> tuple[list[npt.NDArray[Any]], list[str]]:
    """Return the codes of each block of a column of mixed kinds, and the JSON texts they stand for."""
    texts, code_of = column.texts.merge()
    dictionary, text_index, json_index = _merge_dictionaries(texts, column.jsons.table())
    numbers = Codes()
    parts: list[npt.NDArray[Any]] = []
    for block in column.blocks:
        if block.kind == "text":
            parts.append(text_index[code_of(block.values)])
        elif block.kind == "json":
            parts.append(json_index[block.values])
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
