"""Tables of counters that rocprofv3 writes: `<pid>_counter_collection.csv`, a line per dispatch and counter.

"Correlation_Id","Dispatch_Id","Agent_Id",...,"Kernel_Name",...,"Counter_Name","Counter_Value",...
1,1,4,...,"void add<float>(float*, int)",...,"SQ_WAVES",16384.000000,...
"""

from __future__ import annotations

import csv
from math import isfinite
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.rocprof.counted import Counted
from torch_tb_profiler.ingest.runtime import Report, without_gc
from torch_tb_profiler.ingest.source import Source, read_lines
from torch_tb_profiler.model.counters.dispatches import DispatchCounters
from torch_tb_profiler.model.health import HealthLog

_COLUMNS = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")


def looks_like_counters(head: bytes) -> bool:
    """True for the first bytes (unpacked) of such a table."""
    return _header(head.partition(b"\n")[0]) is not None


def read_counters(stream: BinaryIO, *, size: int, report: Report, limit: int) -> DispatchCounters:
    """Dispatches in order of their process and number; lines that are none are left out.

    Raises TraceError if there is none, TooLargeError if the file holds more than `limit`.
    """
    health, table = HealthLog(), _Table()
    source = Source(stream, size, report, health, limit)
    header: list[str] | None = None
    with without_gc():
        for _, line in read_lines(source, health):
            if header is None:
                header = _header(line)
                if header is None:
                    raise TraceError("the file is no table of counters of rocprofv3")
            else:
                table.add(header, line)
        return table.dispatches()


class _Table:
    """Grows by one line after the other."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], int] = {}
        self._kernels: list[str] = []
        self._counted = Counted()

    def add(self, header: list[str], line: bytes) -> None:
        """Append the value of a line."""
        cells = cells_of(line)
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
        place = self._places.setdefault(key, len(self._kernels))
        if place == len(self._kernels):
            self._kernels.append(row["Kernel_Name"])
        self._counted.add(row["Counter_Name"], place, value)

    def dispatches(self) -> DispatchCounters:
        """Raises TraceError if there is none."""
        if not self._places:
            raise TraceError("the table of counters holds no dispatch")
        order = [place for _, place in sorted(self._places.items())]
        counters = self._counted.of(np.array(order, np.int64))
        return DispatchCounters([self._kernels[place] for place in order], counters)


def _header(line: bytes) -> list[str] | None:
    """The columns that a first line names; None if it names no counters."""
    cells = [cell.strip() for cell in cells_of(line)]
    return cells if set(_COLUMNS) <= set(cells) else None


def cells_of(line: bytes) -> list[str]:
    """None of a line that is no table's."""
    try:
        return next(csv.reader([line.decode("utf-8-sig", "replace").rstrip("\r\n")]), [])
    except csv.Error:
        return []
