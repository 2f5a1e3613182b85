"""Small joins without SQL: what lies in the rows that ids name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from torch_tb_profiler.ingest.slices import CodedTexts, integers_or_absent
from torch_tb_profiler.model.trace import ABSENT, Int64


class Lookup:
    """Columns of numbers by id."""

    def __init__(self, ids: Int64, values: Sequence[Int64]) -> None:
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._values = [column[order] for column in values]

    def of(self, ids: Int64) -> list[Int64]:
        """Of each column int64[k]: its values at these ids, ABSENT where an id is unknown."""
        if len(self._ids) == 0:
            return [np.full(len(ids), ABSENT, np.int64) for _ in self._values]
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = (self._ids[at] == ids) & (ids != ABSENT)
        return [np.where(known, column[at], ABSENT) for column in self._values]


def lookup_of(pieces: Iterable[Sequence[Sequence[Any]]], columns: int) -> Lookup:
    """Of pieces of a table: its ids, and so many further columns."""
    read = [[integers_or_absent(column) for column in piece] for piece in pieces]
    joined = [np.concatenate(each) for each in zip(*read, strict=True)]
    ids, *values = joined or [np.empty(0, np.int64) for _ in range(columns + 1)]
    return Lookup(ids, values)


def named(texts: Mapping[int, str], ids: Int64) -> CodedTexts:
    """The texts with these ids."""
    distinct, of = np.unique(ids, return_inverse=True)
    return CodedTexts([texts.get(id) for id in distinct.tolist()], of.ravel())


def either(first: Int64, second: Int64) -> Int64:
    """int64[k]: `first`, and where it is ABSENT `second`."""
    return np.where(first == ABSENT, second, first)
