"""Nesting of intervals and call trees in C: what `model/calls` calls where a session tells it to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.ingest.kineto.native.library import Library, load
from torch_tb_profiler.model.calls.nesting import CompiledFunctions
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64

_SLICE_BYTES = 24
"""Begin, finish, row and thread of a slice, as in native/tree.h."""


def compiled_functions() -> CompiledFunctions | None:
    """The functions of the library; None where there is none, or this process is not to use it."""
    library = load()
    if library is None:
        return None
    functions = _Functions(library)
    return CompiledFunctions(functions.nest, functions.tree, functions.changes, functions.enclosing)


class _Functions:
    def __init__(self, library: Library) -> None:
        self._library = library

    def nest(self, begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
        begin, finish = _as(np.int64, begin, finish)
        count = _length(begin, finish)
        parent, depth, stack = (np.empty(count, np.int64) for _ in range(3))
        fits = np.empty(count, np.bool_)
        self._library.reader_nest(*_at(begin, finish), count, *_at(parent, depth, fits, stack))
        return parent, depth, fits

    def tree(
        self, rows: Int32, start: Int64, finish: Int64, thread: Int32, threads: int
    ) -> tuple[Int32, Int32, Int32, Int32]:
        (start, finish), (rows, thread) = _as(np.int64, start, finish), _as(np.int32, rows, thread)
        events, left = _length(start, finish, thread), len(rows)
        parent, depth, lane = np.full(events, NO_CODE, np.int32), *np.full((2, events), -1, np.int32)
        slices, spare = (np.empty(left * _SLICE_BYTES, np.uint8) for _ in range(2))
        next_of = np.zeros(threads, np.uintp)
        given = *_at(start, finish, thread), events, threads
        if not self._library.reader_arrange(*_at(rows), left, *given, *_at(slices, spare, next_of)):
            raise ValueError("a row or a thread is out of bounds")
        nested = np.empty(left, np.int32)
        at = number = 0
        while left:
            columns = _at(parent, depth, lane, nested[at:], spare)
            fit = self._library.reader_nest_lane(*_at(slices), left, number, *columns)
            at, left, number = at + fit, left - fit, number + 1
        return nested, parent, depth, lane

    def changes(self, rows: Int32, start: Int64, finish: Int64, parent: Int32) -> tuple[Int64, Int32]:
        (start, finish), (rows, parent) = _as(np.int64, start, finish), _as(np.int32, rows, parent)
        events, count = _length(start, finish, parent), len(rows)
        times, running = np.empty(2 * count, np.int64), np.empty(2 * count + 1, np.int32)
        stack = np.empty(count, np.int32)
        places = *_at(start, finish, parent), events, *_at(times, running, stack)
        made = self._library.reader_changes(*_at(rows), count, *places)
        return times[:made], running[: made + 1]

    def enclosing(self, rows: Int32, parent: Int32, is_operator: Bool) -> Int32:
        (rows, parent), (is_operator,) = _as(np.int32, rows, parent), _as(np.bool_, is_operator)
        events = _length(parent, is_operator)
        around = np.full(events, NO_CODE, np.int32)
        self._library.reader_enclosing(*_at(rows), len(rows), *_at(parent, is_operator), events, *_at(around))
        return around


def _as(dtype: npt.DTypeLike, *columns: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    return tuple(np.ascontiguousarray(column, dtype) for column in columns)


def _length(first: npt.NDArray[Any], *others: npt.NDArray[Any]) -> int:
    """That of all of these columns: no other ones reach compiled code."""
    if any(len(other) != len(first) for other in others):
        raise ValueError(f"columns of different lengths: {', '.join(str(len(each)) for each in (first, *others))}")
    return len(first)


def _at(*columns: npt.NDArray[Any]) -> tuple[int, ...]:
    return tuple(column.ctypes.data for column in columns)
