"""Slices of a table, a column per field, appended to the columns of a trace: what importers of tables share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from torch_tb_profiler.ingest.distinct import distinct_rows
from torch_tb_profiler.ingest.kineto.codes import Codes
from torch_tb_profiler.ingest.kineto.columns import Block, Columns
from torch_tb_profiler.model.trace import ABSENT, ArgKind, Int32, Int64

_ABSENT = int(ABSENT)


class Coded:
    """k texts, each distinct one kept once: `texts[of[i]]`, None for one that is not there; of JSON as bytes."""

    def __init__(self, texts: Sequence[Any], of: Int64 | Int32) -> None:
        self.texts, self.of = texts, of

    def __len__(self) -> int:
        return len(self.of)

    def map(self, change: Callable[[str], str | None]) -> Coded:
        return Coded([None if each is None else change(each) for each in self.texts], self.of)

    def codes(self, table: Codes) -> Int32:
        """int32[k]: of `table`."""
        return table.of(self.texts)[self.of]


Texts = Coded | Sequence[str | None]


def coded(texts: Texts) -> Coded:
    if isinstance(texts, Coded):
        return texts
    table = Codes()
    of = table.of(texts)
    return Coded([*table.table(), None], of)


def add_slices(
    columns: Columns,
    category: str | Coded,
    names: Coded,
    pids: Int64,
    tids: Int64,
    starts: Int64,
    ends: Int64,
    args: Mapping[str, tuple[ArgKind, Any]],
) -> None:
    """Append k slices; every column holds k values, ABSENT where not known, times are ns in the clock of the file.

    category  of each, or of all
    args      key -> (kind, k values); texts and JSON as `Coded`, numbers ABSENT or NaN where a slice has none
    """
    count = len(names)
    if count == 0:
        return
    known = (starts != ABSENT) & (ends != ABSENT)
    categories = category if isinstance(category, Coded) else Coded([category], np.zeros(count, np.int64))
    first = columns.add_block(
        Block(
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
        add_arguments(columns, first, key, kind, values)


def _threads(table: Codes, pids: Int64, tids: Int64) -> Int32:
    """int32[k]: codes of pairs of process and thread."""
    distinct, of = distinct_rows(pids, tids)
    return table.of(tuple(None if id == ABSENT else id for id in pair) for pair in distinct)[of]


def add_arguments(columns: Columns, first: int, key: str, kind: ArgKind, values: Any) -> None:
    """Values of one argument of the rows from `first` on."""
    if isinstance(values, Coded):
        table = columns.table(key, kind)
        codes = values.of if table is None else values.codes(table)
        rows = np.flatnonzero(codes >= 0)
        columns.add_coded(key, kind, (rows + first).astype(np.int32), codes[rows])
        return
    numbers = np.asarray(values, np.int64 if kind == "int" else np.float64)
    rows = np.flatnonzero(numbers != ABSENT if kind == "int" else np.isfinite(numbers))
    columns.add_cells(key, kind, (rows + first).astype(np.int32), numbers[rows])


def add_name(columns: Columns, what: str, pid: int | str | None, tid: int | str | None, name: str) -> None:
    """The metadata event `what` ("process_name", "thread_name") of a process or thread."""
    none = np.full(1, ABSENT, np.int64)
    first = columns.add_block(
        Block(
            np.full(1, ord("M"), np.uint8),
            columns.strings.of([None]),
            columns.strings.of([what]),
            columns.threads.of([(pid, tid)]),
            none,
            none.copy(),
            none.copy(),
        )
    )
    add_arguments(columns, first, "name", "text", Coded([name], np.zeros(1, np.int64)))


def whole_numbers(values: Sequence[Any]) -> Int64:
    """int64[k] of values of a file; what is no whole number of 64 bits is ABSENT."""
    # A float array would round 1.5 without a word; booleans and texts are no numbers here.
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
    return np.array([_whole(value) for value in values], np.int64)


def _whole(value: Any) -> int:
    return value if type(value) is int and -(2**63) < value < 2**63 else _ABSENT
