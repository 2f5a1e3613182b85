"""Slices of a table, a list per field, appended to the columns of a trace: what importers of tables share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from torch_tb_profiler.ingest.kineto.columns import Block, Columns
from torch_tb_profiler.model.trace import ABSENT, ArgKind, Int64


def add_slices(
    columns: Columns,
    category: str | Sequence[str | None],
    names: Sequence[str | None],
    pids: Sequence[int | str | None],
    tids: Sequence[int | str | None],
    starts: Int64,
    ends: Int64,
    args: Mapping[str, tuple[ArgKind, Iterable[Any]]],
) -> None:
    """Append k slices; every list holds k values, times are ns in the clock of the file.

    category  of each, or of all
    args      key -> (kind, k values), None (of numbers: ABSENT or NaN) where a slice has none; JSON as bytes
    """
    count = len(names)
    if count == 0:
        return
    known = (starts != ABSENT) & (ends != ABSENT)
    categories = [category] * count if category is None or isinstance(category, str) else category
    first = columns.add_block(
        Block(
            np.full(count, ord("X"), np.uint8),
            columns.strings.of(categories),
            columns.strings.of(names),
            columns.threads.of_pairs(pids, tids),
            starts,
            np.where(known, ends - np.where(known, starts, 0), ABSENT),
            np.full(count, ABSENT, np.int64),
        )
    )
    for key, (kind, values) in args.items():
        add_arguments(columns, first, key, kind, values)


def add_arguments(columns: Columns, first: int, key: str, kind: ArgKind, values: Iterable[Any]) -> None:
    """Values of one argument of the rows from `first` on."""
    if kind in ("int", "float"):
        numbers = np.asarray(values, np.int64 if kind == "int" else np.float64)
        rows = np.flatnonzero(numbers != ABSENT if kind == "int" else np.isfinite(numbers))
        columns.add_cells(key, kind, (rows + first).astype(np.int32), numbers[rows])
        return
    present = [(first + at, value) for at, value in enumerate(values) if value is not None]
    cells = np.array([row for row, _ in present], np.int32)
    columns.add_cells(key, kind, cells, [value for _, value in present])


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
    add_arguments(columns, first, "name", "text", [name])


def whole_numbers(values: Sequence[Any]) -> Int64:
    """int64[k] of values of a file; what is no whole number of 64 bits is ABSENT."""
    try:
        # A float array would round 1.5 without a word; booleans and texts are no numbers here.
        if all(type(value) is int for value in values):
            return np.array(values, np.int64)
    except OverflowError:
        pass
    return np.array([_whole(value) for value in values], np.int64)


def _whole(value: Any) -> int:
    return value if type(value) is int and -(2**63) < value < 2**63 else int(ABSENT)


def optional(numbers: Int64) -> list[int | None]:
    """The numbers, None where ABSENT."""
    return [None if number == ABSENT else number for number in numbers.tolist()]
