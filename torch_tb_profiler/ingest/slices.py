"""Append slices of a table, one column per field, to the columns of a trace; shared by table importers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from torch_tb_profiler.ingest.kineto.codes import Codes, distinct_rows
from torch_tb_profiler.ingest.kineto.columns import EventBlock, EventColumns
from torch_tb_profiler.model.trace import ABSENT, ArgKind, Int32, Int64

_ABSENT = int(ABSENT)


class CodedTexts:
    """k texts as codes: text i is `texts[index[i]]`, None where it is missing; JSON texts are bytes."""

    def __init__(self, texts: Sequence[Any], index: Int64 | Int32) -> None:
        self.texts, self.index = texts, index

    def __len__(self) -> int:
        return len(self.index)

    def map(self, change: Callable[[str], str | None]) -> CodedTexts:
        return CodedTexts([None if each is None else change(each) for each in self.texts], self.index)

    def codes(self, table: Codes) -> Int32:
        """Return int32[k]: the codes of the k texts in `table`."""
        return table.encode(self.texts)[self.index]


TextColumn = CodedTexts | Sequence[str | None]


def encode_texts(texts: TextColumn) -> CodedTexts:
    """Return the texts as codes; texts that are coded already are returned as they are."""
    if isinstance(texts, CodedTexts):
        return texts
    table = Codes()
    index = table.encode(texts)
    return CodedTexts([*table.table(), None], index)


def append_slices(
    columns: EventColumns,
    category: str | CodedTexts,
    names: CodedTexts,
    pids: Int64,
    tids: Int64,
    starts: Int64,
    ends: Int64,
    args: Mapping[str, tuple[ArgKind, Any]],
) -> None:
    """Append k slices. Every column holds k values, ABSENT where unknown; times are ns in the clock of the file.

    category  one for all slices, or one per slice
    args      key -> (kind, k values); texts and JSON as `CodedTexts`, numbers ABSENT or NaN where a slice has none
    """
    count = len(names)
    if count == 0:
        return
    known = (starts != ABSENT) & (ends != ABSENT)
    categories = (
        category if isinstance(category, CodedTexts) else CodedTexts([category], np.zeros(count, np.int64))
    )
    first = columns.add_block(
        EventBlock(
            np.full(count, ord("X"), np.uint8),
            categories.codes(columns.strings),
            names.codes(columns.strings),
            _threads(columns.threads, pids, tids),
            starts,
            np.where(known, ends - np.where(known, starts, 0), ABSENT),
            np.full(count, ABSENT, np.int64),
        )
    )
    for key, (kind, values) in args.items():
        add_argument(columns, first, key, kind, values)


def _threads(table: Codes, pids: Int64, tids: Int64) -> Int32:
    """Return int32[k]: the codes of (process, thread) pairs."""
    distinct, index = distinct_rows(pids, tids)
    return table.encode(tuple(None if id == ABSENT else id for id in pair) for pair in distinct)[index]


def add_argument(columns: EventColumns, first: int, key: str, kind: ArgKind, values: Any) -> None:
    """Append the values of one argument for the rows from `first` on."""
    if isinstance(values, CodedTexts):
        table = columns.table(key, kind)
        codes = values.index if table is None else values.codes(table)
        rows = np.flatnonzero(codes >= 0)
        columns.add_coded(key, kind, (rows + first).astype(np.int32), codes[rows])
        return
    numbers = np.asarray(values, np.int64 if kind == "int" else np.float64)
    rows = np.flatnonzero(numbers != ABSENT if kind == "int" else np.isfinite(numbers))
    columns.add_cells(key, kind, (rows + first).astype(np.int32), numbers[rows])


def add_name_event(
    columns: EventColumns, what: str, pid: int | str | None, tid: int | str | None, name: str
) -> None:
    """Append the metadata event `what` ("process_name" or "thread_name") of a process or thread."""
    none = np.full(1, ABSENT, np.int64)
    first = columns.add_block(
        EventBlock(
            np.full(1, ord("M"), np.uint8),
            columns.strings.encode([None]),
            columns.strings.encode([what]),
            columns.threads.encode([(pid, tid)]),
            none,
            none.copy(),
            none.copy(),
        )
    )
    add_argument(columns, first, "name", "text", CodedTexts([name], np.zeros(1, np.int64)))


def integers_or_absent(values: Sequence[Any]) -> Int64:
    """Return int64[k] of decoded values; whatever is no 64-bit integer becomes ABSENT."""
    # A float array would silently round 1.5; booleans and texts don't count as numbers here.
    types = set(map(type, values))
    try:
        if types <= {int}:
            return np.array(values, np.int64)
        if types == {NoneType}:
            return np.full(len(values), ABSENT, np.int64)
        if types == {int, NoneType}:
            return np.array([_ABSENT if value is None else value for value in values], np.int64)
    except OverflowError:
        pass
    return np.array([_integer_or_absent(value) for value in values], np.int64)


def _integer_or_absent(value: Any) -> int:
    return value if type(value) is int and -(2**63) < value < 2**63 else _ABSENT
