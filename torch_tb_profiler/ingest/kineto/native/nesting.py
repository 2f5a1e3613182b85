"""Nest intervals and call trees in C; `model/calls` uses these functions where a session enables them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.ingest.kineto.native.library import NativeLibrary, load_library
from torch_tb_profiler.model.calls.nesting import CompiledFunctions
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64

_SLICE_BYTES = 24
"""Bytes of a slice in C: begin, finish, row and thread, as in native/tree.h."""


def compiled_functions() -> CompiledFunctions | None:
    """Return the functions of the library, or None if it is missing or not enabled in this process."""
    library = load_library()
    if library is None:
        return None
    functions = _NestingFunctions(library)
    return CompiledFunctions(functions.nest, functions.tree, functions.changes, functions.enclosing)


class _NestingFunctions:
    def __init__(self, library: NativeLibrary) -> None:
        self._library = library

    def nest(self, begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
        begin, finish = _contiguous(np.int64, begin, finish)
        count = _common_length(begin, finish)
        parent, depth, stack = (np.empty(count, np.int64) for _ in range(3))
        fits = np.empty(count, np.bool_)
        self._library.reader_nest(*_addresses(begin, finish), count, *_addresses(parent, depth, fits, stack))
        return parent, depth, fits

    def tree(
        self, rows: Int32, start: Int64, finish: Int64, thread: Int32, threads: int
    ) -> tuple[Int32, Int32, Int32, Int32]:
        (start, finish), (rows, thread) = _contiguous(np.int64, start, finish), _contiguous(np.int32, rows, thread)
        events, left = _common_length(start, finish, thread), len(rows)
        parent, depth, lane = np.full(events, NO_CODE, np.int32), *np.full((2, events), -1, np.int32)
        slices, spare = (np.empty(left * _SLICE_BYTES, np.uint8) for _ in range(2))
        next_of = np.zeros(threads, np.uintp)
        times = *_addresses(start, finish, thread), events, threads
        if not self._library.reader_arrange(*_addresses(rows), left, *times, *_addresses(slices, spare, next_of)):
            raise ValueError("a row or a thread is out of bounds")
        nested = np.empty(left, np.int32)
        at = number = 0
        while left:
            columns = _addresses(parent, depth, lane, nested[at:], spare)
            fit = self._library.reader_nest_lane(*_addresses(slices), left, number, *columns)
            at, left, number = at + fit, left - fit, number + 1
        return nested, parent, depth, lane

    def changes(self, rows: Int32, start: Int64, finish: Int64, parent: Int32) -> tuple[Int64, Int32]:
        (start, finish), (rows, parent) = _contiguous(np.int64, start, finish), _contiguous(np.int32, rows, parent)
        events, count = _common_length(start, finish, parent), len(rows)
        times, running = np.empty(2 * count, np.int64), np.empty(2 * count + 1, np.int32)
        stack = np.empty(count, np.int32)
        places = *_addresses(start, finish, parent), events, *_addresses(times, running, stack)
        change_count = self._library.reader_changes(*_addresses(rows), count, *places)
        return times[:change_count], running[: change_count + 1]

    def enclosing(self, rows: Int32, parent: Int32, is_operator: Bool) -> Int32:
        (rows, parent), (is_operator,) = _contiguous(np.int32, rows, parent), _contiguous(np.bool_, is_operator)
        events = _common_length(parent, is_operator)
        around = np.full(events, NO_CODE, np.int32)
        self._library.reader_enclosing(
            *_addresses(rows), len(rows), *_addresses(parent, is_operator), events, *_addresses(around)
        )
        return around


def _contiguous(dtype: npt.DTypeLike, *columns: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    return tuple(np.ascontiguousarray(column, dtype) for column in columns)


def _common_length(first: npt.NDArray[Any], *others: npt.NDArray[Any]) -> int:
    """Return the common length of the columns; unequal lengths must not reach compiled code."""
    if any(len(other) != len(first) for other in others):
        raise ValueError(f"columns of different lengths: {', '.join(str(len(each)) for each in (first, *others))}")
    return len(first)


def _addresses(*columns: npt.NDArray[Any]) -> tuple[int, ...]:
    return tuple(column.ctypes.data for column in columns)
