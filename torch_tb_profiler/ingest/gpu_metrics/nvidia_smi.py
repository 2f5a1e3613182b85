"""Read lines of nvidia-smi: its query as CSV, and its monitor. Both write local times without a time zone.

nvidia-smi --query-gpu=timestamp,... --format=csv -l 1     a header, then a line per GPU and time

timestamp, index, name, utilization.gpu [%], power.draw [W]
2024/01/02 03:04:05.678, 0, NVIDIA H100, 45 %, 312.45 W
2024/01/02 03:04:05.681, 1, NVIDIA H100, [N/A], 98.00 W

nvidia-smi dmon -o DT                                      names and units, repeated every few lines

#Date       Time        gpu    pwr  gtemp     sm
#YYYYMMDD   HH:MM:SS    Idx      W      C      %
 20240104   13:54:35      0    239     40      6

With `--format csv` the monitor separates cells by commas.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.gpu_metrics.sample import GpuSample, SamplingTool, gpu_label

QUERY = SamplingTool("nvidia-smi", "local", "record with `nvidia-smi --query-gpu=timestamp,... --format=csv`")
MONITOR = SamplingTool("nvidia-smi", "local", "record with `nvidia-smi dmon -o DT`")

_TIME_COLUMN = "timestamp"
_QUERY_HEADER = lazy_regex(
    r"^(?=.*\b(?:utilization|power|memory|clocks|temperature|fan|pcie|ecc)\.\w).*(?:^|,)\s*timestamp\s*(?:,|$)"
)
_SAMPLED_COLUMN = lazy_regex(
    r"^(?:utilization|power|enforced|memory|clocks|temperature|fan|pcie|ecc|encoder|pstate)\b"
)
_IDENTITY_COLUMNS = ("index", "gpu_index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
_NAME_COLUMNS = ("name", "gpu_name")
_NUMBER_WITH_UNIT = lazy_regex(r"^[+-]?\d+(?:\.\d+)?")

_MONITOR_HEADER = lazy_regex(r"^#\s*(?:Date[,\s]+Time|Time[,\s]+Date)[,\s]+gpu(?:[,\s]|$)", re.IGNORECASE)
_MONITOR_UNITS = lazy_regex(r"^#.*\bYYYYMMDD\b")
_MONITOR_PLACE_COLUMNS = 3
"""Leading columns: date, time, and GPU. They alone identify a header, so a damaged later name is a counter."""

_MONITOR_NUMBER = lazy_regex(r"\d+(?:\.\d+)?")
_NO_UNIT = ("", "-", "Idx")


def looks_like_query(head: bytes) -> bool:
    """Return whether a file with these unpacked first bytes is a table of the query."""
    return _parse_query_header(head.partition(b"\n")[0].decode("utf-8-sig", "replace")) is not None


def looks_like_monitor(head: bytes) -> bool:
    """Return whether a file with these unpacked first bytes is output of the monitor."""
    line = head.partition(b"\n")[0]
    return b"#" in line and _MONITOR_HEADER.match(line.decode("utf-8-sig", "replace")) is not None


class QueryLineReader:
    """A `ReadLine` for the query; a repeated header starts another table."""

    def __init__(self) -> None:
        self._header: _QueryHeader | None = None

    def __call__(self, line: str) -> GpuSample | bool:
        header = _parse_query_header(line)
        if header is not None:
            self._header = header
            return True
        return self._header is not None and _query_sample(self._header, line)


class MonitorLineReader:
    """A `ReadLine` for the monitor."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._units: list[str] = []

    def __call__(self, line: str) -> GpuSample | bool:
        cells = [cell for cell in re.split(r"[,\s]+", line.strip().lstrip("#")) if cell]
        if _MONITOR_HEADER.match(line):
            self._names, self._units = cells, []
            return True
        if _MONITOR_UNITS.match(line):
            self._units = cells if len(cells) == len(self._names) else []
            return True
        if not self._names or len(cells) != len(self._names):
            return False
        date, time, gpu = cells[:_MONITOR_PLACE_COLUMNS]
        if self._names[0].lower() != "date":
            date, time = time, date
        time_ns = _local_time_ns(f"{date[:4]}-{date[4:6]}-{date[6:]} {time}") if date.isdecimal() else None
        if time_ns is None:
            return False
        columns = list(zip(self._names, self._units or [""] * len(cells), cells, strict=True))
        values = [
            (name if unit in _NO_UNIT else f"{name} [{unit}]", float(cell))
            for name, unit, cell in columns[_MONITOR_PLACE_COLUMNS:]
            if _MONITOR_NUMBER.fullmatch(cell)
        ]
        return GpuSample(time_ns, f"GPU {gpu}", values)


class _QueryHeader(msgspec.Struct, frozen=True):
    """The columns of a query's table by position; `sampled` has their names with units: `power.draw [W]`."""

    time: int
    identity: int | None
    name: int | None
    sampled: tuple[tuple[int, str], ...]
    width: int


def _parse_query_header(line: str) -> _QueryHeader | None:
    """Return the columns of a header, or None for any other line."""
    # Most traces are a single line, in which the pattern would look for its words from every place.
    if _TIME_COLUMN not in line or not _QUERY_HEADER.match(line):
        return None
    columns = [cell.strip() for cell in line.split(",")]
    sampled = tuple((index, name) for index, name in enumerate(columns) if _SAMPLED_COLUMN.match(name))
    identity = next((columns.index(name) for name in _IDENTITY_COLUMNS if name in columns), None)
    name = next((columns.index(name) for name in _NAME_COLUMNS if name in columns), None)
    return _QueryHeader(columns.index(_TIME_COLUMN), identity, name, sampled, len(columns))


def _query_sample(header: _QueryHeader, line: str) -> GpuSample | bool:
    """Return the sample in a line, or False if the line doesn't fit `header` or has no time.

    Cells without a number (`[N/A]`) are skipped; a unit after the number repeats that of the header.
    """
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != header.width or (time_ns := _local_time_ns(cells[header.time])) is None:
        return False
    gpu = "GPU" if header.identity is None else f"GPU {cells[header.identity]}"
    values = [
        (name, float(match[0]))
        for index, name in header.sampled
        if (match := _NUMBER_WITH_UNIT.match(cells[index])) is not None
    ]
    return GpuSample(time_ns, gpu_label(gpu, None if header.name is None else cells[header.name]), values)


def _local_time_ns(text: str) -> int | None:
    """Return a time such as `2024/01/02 03:04:05.678` as ns since 1970 in its unknown zone, or None if invalid."""
    try:
        time = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None
    if time.tzinfo is not None:
        return None
    since_1970 = time - datetime(1970, 1, 1)
    return (since_1970.days * 86_400 + since_1970.seconds) * 10**9 + since_1970.microseconds * 1000
