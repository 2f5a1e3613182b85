"""Functions in C that a session may load for loops over long columns: the same results, several times as fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer[Any]]

Operation = Literal["union", "intersection", "difference"]

_MIN_LENGTH = 1_000
"""Entries of a column from which on it is worth a call."""


class ColumnFunctions(msgspec.Struct, frozen=True):
    """Functions in C with the results of those in Python. Numbers are 0..count-1.

    lowest    `arrays.lowest_by_number`; highest: `arrays.highest_by_number`
    dense     codes of numbers 0..count-1 that it replaces in place -> how many occur
    ordinals  (numbers, count) -> which of the entries with its number each one is
    order     (numbers, count) -> the stable order by number
    search    `np.searchsorted`: (sorted values, values, whether to the right of equal ones)
    sort      (numbers, values, count) -> the stable order by number and value
    middles   (numbers, values, count) -> the middle entry of each number, -1 without any, in the order of `sort`
    others    (numbers, values, count) -> the median, rounded down, of the other values with the number of each
              one, and the middle entries
    windows   (ranks, steps, kinds, count of steps) -> numbers from 0 on as they appear, equal for entries of one
              kind in one step if the same kinds came before in it; and the first entry with each
    sums      `arrays.sums_by_number`
    first     (numbers, count) -> the first entry with each number, -1 without any
    changes   (numbers, ascending values, count) -> how many different values each number has
    mark      (codes, count) -> which of the codes 0..count-1 occur
    pick      (rows that have a cell, their cells, wanted rows, result that it fills where a wanted row has one)
    select    `kinds.rows_of_kind`: (codes, whether each entry counts, wanted codes, how many entries have one of
              these) -> the entries that do
    group     `kinds._rows_by_kind`: (codes, whether each entry counts, number of codes) -> the entries of each
    named     `kinds.rows_named`: (rows, names, whether each name, and last any other number, is wanted) -> rows,
              None if one is none of the events
    spans     `kinds.event_spans`: (rows, starts, durations), None if a row is none of the events
    intervals  `kinds.event_intervals`: (rows, starts, durations), None if the starts don't ascend or as in `spans`
    merge     `intervals.merge` of starts and ends, None if the starts don't ascend
    combine   a set of starts and ends, and another -> their union, intersection or difference
    covered   `intervals.covered_time_before`: (starts, ends, times)
    totals    `intervals.totals_by_owner`: (owners, starts, ends, count), None if an owner's starts don't ascend
    """

    lowest: Callable[[Numbers, Int64, int], Int64]
    highest: Callable[[Numbers, Int64, int], Int64]
    dense: Callable[[Int64, int], int]
    ordinals: Callable[[Numbers, int], Int64]
    order: Callable[[Numbers, int], Int64]
    search: Callable[[Int64, Int64, bool], Int64]
    sort: Callable[[Numbers, Int64, int], Int64]
    middles: Callable[[Numbers, Int64, int], Int64]
    others: Callable[[Numbers, Int64, int], tuple[Int64, Int64]]
    windows: Callable[[Int32, Int32, Numbers, int], tuple[Int64, Int64]]
    sums: Callable[[Numbers, Int64, int], Int64]
    first: Callable[[Numbers, int], Int64]
    changes: Callable[[Numbers, Int32, int], Int64]
    mark: Callable[[Numbers, int], Bool]
    pick: Callable[[Numbers, npt.NDArray[Any], Numbers, npt.NDArray[Any]], None]
    select: Callable[[Int8, Bool, Sequence[int], int], Int32]
    group: Callable[[Int8, Bool, int], list[Int32]]
    named: Callable[[Numbers, Int32, Bool], Int32 | None]
    spans: Callable[[Numbers, Int64, Int64], tuple[Int64, Int64] | None]
    intervals: Callable[[Numbers, Int64, Int64], tuple[Int64, Int64] | None]
    merge: Callable[[Int64, Int64], tuple[Int64, Int64] | None]
    combine: Callable[[Operation, tuple[Int64, Int64], tuple[Int64, Int64]], tuple[Int64, Int64]]
    covered: Callable[[Int64, Int64, Int64], Int64]
    totals: Callable[[Numbers, Int64, Int64, int], Int64 | None]


_functions: ColumnFunctions | None = None


def use_column_functions(functions: ColumnFunctions | None) -> None:
    """Use these functions from now on, or those in Python if None."""
    global _functions
    _functions = functions


def column_functions(length: int) -> ColumnFunctions | None:
    """Return the functions in C for columns of this length, or None if those in Python are to be used."""
    return _functions if length >= _MIN_LENGTH else None
