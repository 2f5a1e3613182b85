"""Read a part of a file that is too large to load: two passes that keep only the requested events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.errors import TooLargeError
from torch_tb_profiler.ingest.kineto.assemble import WINDOW_MARKERS
from torch_tb_profiler.ingest.kineto.clock import is_absurd_time
from torch_tb_profiler.ingest.kineto.columns import EventBlock, EventColumns
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, ArgKind, Bool, Int32

FLOW_SLACK_NS = 60 * 10**9
"""Flows are kept this far around the window, so that flows crossing its border are recognized."""

_BLOCK_FIELDS = EventBlock.__struct_fields__


class PartWindow(msgspec.Struct, frozen=True):
    """The events to keep: ns in the file's clock (None: no limit), categories in lower case (empty: all)."""

    begin: int | None = None
    end: int | None = None
    categories: frozenset[str] = frozenset()
    min_duration_ns: int = 0


class StartColumns(EventColumns):
    """Columns that keep only the start time of the trace (`start`, None if no event has a time).

    It equals that of a fully loaded trace (see `assemble`), except that outliers are judged by their distance from
    the first events instead of all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.start: int | None = None
        self._middle: int | None = None

    def add_block(self, block: EventBlock) -> int:
        rows = np.flatnonzero((block.start != ABSENT) & (block.phase != ord("M")))
        rows = rows[~is_absurd_time(block.start[rows], block.duration[rows])]
        if len(rows) and self._middle is None:
            self._middle = int(median(block.start[rows]))
        if self._middle is not None:
            rows = rows[np.abs(block.start[rows] // 2 - self._middle // 2) <= MAX_RECORDING_NS // 2]
        if self.start is not None:
            rows = rows[block.start[rows] < self.start]
        for row in rows[np.argsort(block.start[rows], kind="stable")].tolist():
            if not _text(self.strings, int(block.name[row])).startswith(WINDOW_MARKERS):
                self.start = int(block.start[row])
                break
        return 0

    def add_cells(self, key: str, kind: ArgKind, rows: Int32, values: Iterable[Any]) -> None:
        return


class PartColumns(EventColumns):
    """Columns that keep only events that overlap a window.

    Names of processes and threads, and separate begin and end events, are always kept.
    Raises TooLargeError when more than `limit` events are kept.
    """

    def __init__(self, window: PartWindow, limit: int) -> None:
        super().__init__()
        self._window = window
        self._limit = limit
        self._category_wanted: dict[int, bool] = {}
        self._first = 0
        self._new_rows = np.empty(0, np.int32)

    def add_block(self, block: EventBlock) -> int:
        keep = self._rows_to_keep(block)
        self._first = super().add_block(EventBlock(*(getattr(block, name)[keep] for name in _BLOCK_FIELDS)))
        self._new_rows = np.where(keep, self._first + np.cumsum(keep) - 1, -1).astype(np.int32)
        if self.length > self._limit:
            raise TooLargeError(
                f"this part has more than {self._limit:,} events",
                hint="choose a shorter time range, fewer categories, or a larger minimum duration",
            )
        return self._first

    def add_cells(self, key: str, kind: ArgKind, rows: Int32, values: Iterable[Any]) -> None:
        moved = self._new_rows[rows - self._first]
        keep = moved >= 0
        super().add_cells(key, kind, moved[keep], list(compress(values, keep.tolist())))

    def _rows_to_keep(self, block: EventBlock) -> Bool:
        window, phase = self._window, block.phase
        known = block.duration != ABSENT
        ends = block.start + np.where(known, np.maximum(block.duration, 0), 0)
        inside = _overlaps_window(block.start, ends, window.begin, window.end, 0)
        keep: Bool = inside & self._has_wanted_category(block.category) | np.isin(phase, _phases(b"C"))
        keep &= inside
        if window.min_duration_ns:
            keep &= ~(phase == ord("X")) | (known & (block.duration >= window.min_duration_ns))
        flows = np.isin(phase, _phases(b"stf"))
        keep[flows] = _overlaps_window(block.start, ends, window.begin, window.end, FLOW_SLACK_NS)[flows]
        return keep | np.isin(phase, _phases(b"MBE"))

    def _has_wanted_category(self, category: Int32) -> Bool:
        if not self._window.categories:
            return np.ones(len(category), np.bool_)
        distinct, code = np.unique(category, return_inverse=True)
        for number in distinct.tolist():
            if number not in self._category_wanted:
                self._category_wanted[number] = _text(self.strings, number).lower() in self._window.categories
        wanted: Bool = np.array([self._category_wanted[number] for number in distinct.tolist()], np.bool_)[
            code.ravel()
        ]
        return wanted


def _overlaps_window(start: Any, ends: Any, begin: int | None, end: int | None, slack: int) -> Bool:
    inside: Bool = start != ABSENT
    if begin is not None:
        inside &= (ends > begin - slack) | (start >= begin - slack)
    if end is not None:
        inside &= start < end + slack
    return inside


def _phases(letters: bytes) -> Any:
    return np.frombuffer(letters, np.uint8)


def _text(codes: dict[Any, int], code: int) -> str:
    """Return the text of a code; slow, for few codes only."""
    texts: Sequence[Any] = [text for text, number in codes.items() if number == code]
    return str(texts[0] or "") if texts else ""
