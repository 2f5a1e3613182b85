"""Hardware counters of rocprofv3: sums by dispatch, and its tables `<pid>_counter_collection.csv`.

A table has a line per dispatch and counter:

"Correlation_Id","Dispatch_Id","Agent_Id",...,"Kernel_Name",...,"Counter_Name","Counter_Value",...
1,1,4,...,"void add<float>(float*, int)",...,"SQ_WAVES",16384.000000,...
"""

from __future__ import annotations

import csv
from array import array
from math import isfinite
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.runtime import Report, without_gc
from torch_tb_profiler.ingest.source import UnpackedStream, read_lines
from torch_tb_profiler.model.counters.dispatches import DispatchCounters
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Float64, Int64

_COLUMNS = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")

MAX_COUNTERS = 512
"""Limit of distinct counters in a file; the tool itself collects a few dozen at once."""


class CounterSums:
    """The sum of each counter's values per id, that of a dispatch or of its event.

    The tool may write one value for each part of a device; the counter's value is their sum.
    """

    def __init__(self) -> None:
        self._values: dict[str, tuple[array[int], array[float]]] = {}
        self._sums: dict[str, tuple[Int64, Float64]] = {}

    def add(self, name: str, id: int, value: float) -> None:
        """Add a value; counters beyond MAX_COUNTERS are left out."""
        if name in self._values or len(self._values) < MAX_COUNTERS:
            ids, values = self._values.setdefault(name, (array("q"), array("d")))
            ids.append(id)
            values.append(value)
            self._sums.pop(name, None)

    def values(self, ids: Int64) -> dict[str, Float64]:
        """Return the sums of each counter for these ids (float64[k]), NaN where it has no value."""
        columns = {}
        for name in self._values:
            distinct, sums = self._sorted_sums(name)
            index = np.minimum(np.searchsorted(distinct, ids), len(distinct) - 1)
            columns[name] = sums[np.where(distinct[index] == ids, index, len(distinct))]
        return columns

    def _sorted_sums(self, name: str) -> tuple[Int64, Float64]:
        """Return sorted ids (int64[d]) and their sums followed by NaN (float64[d + 1]); cache both."""
        if name not in self._sums:
            ids, values = self._values[name]
            distinct, where = np.unique(np.array(ids, np.int64), return_inverse=True)
            self._sums[name] = distinct, np.append(np.bincount(where.ravel(), np.array(values)), np.nan)
        return self._sums[name]


def looks_like_counters(head: bytes) -> bool:
    """Return whether a file with these unpacked first bytes is such a table."""
    return _parse_header(head.partition(b"\n")[0]) is not None


def read_counters(stream: BinaryIO, *, size: int, report: Report, limit: int) -> DispatchCounters:
    """Return the dispatches in order of their process and number; unreadable lines are left out.

    Raise TraceError if there is none, TooLargeError if the file holds more than `limit`.
    """
    health, table = HealthLog(), _DispatchTable()
    source = UnpackedStream(stream, size, report, health, limit)
    header: list[str] | None = None
    with without_gc():
        for _, line in read_lines(source, health):
            if header is None:
                header = _parse_header(line)
                if header is None:
                    raise TraceError("the file is not a counter table of rocprofv3")
            else:
                table.add(header, line)
        return table.dispatches()


class _DispatchTable:
    """Collects dispatches and their counters line by line."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], int] = {}
        self._kernels: list[str] = []
        self._counters = CounterSums()

    def add(self, header: list[str], line: bytes) -> None:
        """Add the value of a line."""
        cells = split_cells(line)
        if len(cells) != len(header):
            return
        row = dict(zip(header, cells, strict=True))
        try:
            key = int(row.get("Process_Id", "0")), int(row["Dispatch_Id"])
            value = float(row["Counter_Value"])
        except ValueError:
            return
        if not isfinite(value):
            return
        index = self._rows.setdefault(key, len(self._kernels))
        if index == len(self._kernels):
            self._kernels.append(row["Kernel_Name"])
        self._counters.add(row["Counter_Name"], index, value)

    def dispatches(self) -> DispatchCounters:
        """Return all dispatches; raise TraceError if there are none."""
        if not self._rows:
            raise TraceError("the counter table has no dispatches")
        order = [index for _, index in sorted(self._rows.items())]
        counters = self._counters.values(np.array(order, np.int64))
        return DispatchCounters([self._kernels[index] for index in order], counters)


def _parse_header(line: bytes) -> list[str] | None:
    """Return the columns of a header, or None if it isn't one of counters."""
    cells = [cell.strip() for cell in split_cells(line)]
    return cells if set(_COLUMNS) <= set(cells) else None


def split_cells(line: bytes) -> list[str]:
    """Return the cells of a line of CSV, or nothing if it isn't CSV."""
    try:
        return next(csv.reader([line.decode("utf-8-sig", "replace").rstrip("\r\n")]), [])
    except csv.Error:
        return []
