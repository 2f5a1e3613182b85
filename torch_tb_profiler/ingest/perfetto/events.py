"""Events of packets as growing columns: a begin and an end far apart make one slice.

PyTorch writes a group of slices as all their begins, then all their ends in the same order, so on each track the
first end belongs to the first begin that has none. (A viewer that takes them by time nests equal times wrongly.)
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.ingest.kineto.columns import Block, Columns
from torch_tb_profiler.ingest.kineto.schema import kind_of
from torch_tb_profiler.model.trace import ABSENT, ArgKind

_FLUSH = 1 << 15
"""Rows whose arguments are held as Python objects at a time."""


class Events:
    """Rows in the order they begin."""

    def __init__(self) -> None:
        self.columns = Columns()
        self._category, self._name, self._thread = array("i"), array("i"), array("i")
        self._start, self._duration = array("q"), array("q")
        self._open: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
        self._ended: defaultdict[int, int] = defaultdict(int)
        self._cells: dict[tuple[str, ArgKind], tuple[list[int], list[Any]]] = {}
        self._flushed = 0

    def __len__(self) -> int:
        return len(self._start)

    def begin(
        self,
        track: int | None,
        place: tuple[int, int],
        category: str,
        name: str | None,
        start: int,
        duration: int | None,
    ) -> int:
        """A row; without a duration it waits for the end on its track."""
        row = len(self._start)
        self._category.append(self.columns.strings[category])
        self._name.append(self.columns.strings[name])
        self._thread.append(self.columns.threads[place])
        self._start.append(start)
        self._duration.append(int(ABSENT) if duration is None else duration)
        if duration is None and track is not None:
            self._open[track].append(row)
        return row

    def end(self, track: int, time: int) -> bool:
        """False if nothing on this track waits for an end."""
        waiting, at = self._open[track], self._ended[track]
        if at >= len(waiting):
            return False
        self._duration[waiting[at]] = time - self._start[waiting[at]]
        self._ended[track] += 1
        if self._ended[track] == len(waiting):
            del self._open[track], self._ended[track]
        return True

    def argument(self, row: int, key: str, value: Any) -> None:
        """None says nothing."""
        kind = kind_of(value)
        if kind is not None:
            rows, values = self._cells.setdefault((key, kind), ([], []))
            rows.append(row)
            values.append(msgspec.json.encode(value) if kind == "json" else value)
            if row - self._flushed >= _FLUSH:
                self._flush()

    def finish(self) -> Columns:
        """All rows as one block."""
        self._flush()
        count = len(self._start)
        self.columns.add_block(
            Block(
                np.full(count, ord("X"), np.uint8),
                np.array(self._category, np.int32),
                np.array(self._name, np.int32),
                np.array(self._thread, np.int32),
                np.array(self._start, np.int64),
                np.array(self._duration, np.int64),
                np.full(count, ABSENT, np.int64),
            )
        )
        return self.columns

    def _flush(self) -> None:
        for (key, kind), (rows, values) in self._cells.items():
            self.columns.add_cells(key, kind, np.array(rows, np.int32), values)
        self._cells.clear()
        self._flushed = len(self._start)
