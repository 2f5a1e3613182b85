"""What happens in a window by name: how often, how long, and how much of it nothing nested covers."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.analyses.tracks.positions import nested_time
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, distinct_codes

Sort = Literal["total", "self", "count", "mean", "most", "name"]


class Totals(msgspec.Struct, frozen=True):
    """Slices that touch a window, by name; all times are clipped to it, ns.

    name     int32[k]  codes
    row      int32[k]  the longest slice of the name inside the window
    count, total, self_time, least, most  int64[k]; `self_time` is covered by no nested slice
    """

    name: Int32
    row: Int32
    count: Int64
    total: Int64
    self_time: Int64
    least: Int64
    most: Int64

    @property
    def slices(self) -> int:
        """How many slices of any name."""
        return int(self.count.sum())


class NameTotal(msgspec.Struct, frozen=True):
    """One row of `Totals`, with the text of its name."""

    name: str
    row: int
    count: int
    total: int
    self_time: int
    least: int
    most: int


def totals(trace: Trace, python: bool, chosen: Int64, begin: int, end: int) -> Totals:
    """Totals by name over some lanes (by index; of those with Python frames if `python`) in [begin, end)."""
    layout, whole_self = lanes(trace, python), self_times(trace, python)
    sums = _Sums(trace)
    for lane in chosen.tolist():
        low, high = layout.bounds[lane : lane + 2].tolist()
        first = low + int(np.searchsorted(layout.end[low:high], begin, "left"))
        last = low + int(np.searchsorted(layout.start[low:high], end, "left"))
        while first < last and layout.end[first] <= begin and layout.start[first] < begin:
            first += 1  # what ends where the window begins is outside
        # Nothing overlaps in a lane, so only its first and last slice can reach over an edge.
        edges = {first, last - 1} if first < last else set()
        over = sorted(at for at in edges if layout.start[at] < begin or layout.end[at] > end)
        inner = slice(first + (first in over), last - (last - 1 in over and last - 1 > first))
        sums.add(layout.rows[inner], layout.end[inner] - layout.start[inner], whole_self[inner])
        start, finish = np.maximum(layout.start[over], begin), np.minimum(layout.end[over], end)
        nested = nested_time(layout, lane, start, finish)
        sums.add(layout.rows[over], finish - start, finish - start - nested)
    return sums.finish()


@derived
def self_times(trace: Trace, python: bool) -> Int64:
    """int64[k]: self time of every slice, ns, in the order of the lanes."""
    layout = lanes(trace, python)
    times = layout.end - layout.start
    for lane, (low, high) in enumerate(zip(layout.bounds[:-1].tolist(), layout.bounds[1:].tolist(), strict=True)):
        times[low:high] -= nested_time(layout, lane, layout.start[low:high], layout.end[low:high])
    return times


class _Sums:
    """Sums by name code, exact; the last cell is for slices without a name."""

    def __init__(self, trace: Trace) -> None:
        size = len(trace.strings) + 1
        self._names = trace.events.name
        self._count, self._total, self._self = (np.zeros(size, np.int64) for _ in range(3))
        self._least, self._most = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        self._row = np.full(size, NO_CODE, np.int32)

    def add(self, rows: Int32, durations: Int64, self_times: Int64) -> None:
        name = self._names[rows]
        np.add.at(self._count, name, 1)
        np.add.at(self._total, name, durations)
        np.add.at(self._self, name, self_times)
        np.minimum.at(self._least, name, durations)
        before = self._most.copy()
        np.maximum.at(self._most, name, durations)
        longest = np.flatnonzero((durations == self._most[name]) & (durations > before[name]))[::-1]
        self._row[name[longest]] = rows[longest]  # of equals the first, which is written last

    def finish(self) -> Totals:
        cells = np.flatnonzero(self._count)
        name = np.where(cells == len(self._count) - 1, NO_CODE, cells).astype(np.int32)
        return Totals(
            name,
            self._row[cells],
            self._count[cells],
            self._total[cells],
            self._self[cells],
            self._least[cells],
            self._most[cells],
        )


def family_of(trace: Trace, row: int) -> str | None:
    """The family of device work; None of everything else."""
    number = int(family_codes(trace)[row])
    return FAMILIES[number] if number >= 0 else None


class FamilyTotal(msgspec.Struct, frozen=True):
    """Device work of one family in a window, clipped to it, ns."""

    family: str
    count: int
    total: int


def by_family(trace: Trace, table: Totals) -> list[FamilyTotal]:
    """Device work by family, most time first; a name that a host call has, too, is what its longest slice is."""
    number = family_codes(trace)[table.row]
    totals = [
        FamilyTotal(FAMILIES[each], int(table.count[number == each].sum()), int(table.total[number == each].sum()))
        for each in distinct_codes(number.astype(np.int32))
    ]
    return sorted(totals, key=lambda each: each.total, reverse=True)


def ranked(trace: Trace, table: Totals, sort: Sort, page: slice) -> list[NameTotal]:
    """A page of the table, largest first; by name in alphabetical order."""
    texts = [trace.strings[code] if code >= 0 else "" for code in table.name.tolist()]
    columns = (table.row, table.count, table.total, table.self_time, table.least, table.most)
    return [NameTotal(texts[i], *(int(column[i]) for column in columns)) for i in _order(table, texts, sort)[page]]


def _order(table: Totals, texts: list[str], sort: Sort) -> list[int]:
    if sort == "name":
        return sorted(range(len(texts)), key=texts.__getitem__)
    keys = {
        "total": table.total,
        "self": table.self_time,
        "count": table.count,
        "mean": table.total / table.count,
        "most": table.most,
    }
    order: list[int] = np.argsort(-keys[sort], kind="stable").tolist()
    return order
