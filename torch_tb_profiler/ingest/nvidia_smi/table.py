"""Lines of the table: a header that names what is sampled, then a line per GPU and time.

timestamp, index, name, utilization.gpu [%], power.draw [W]
2024/01/02 03:04:05.678, 0, NVIDIA H100, 45 %, 312.45 W
2024/01/02 03:04:05.681, 1, NVIDIA H100, [N/A], 98.00 W
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal, NamedTuple

from torch_tb_profiler.ingest.gpu_metrics.lines import Sample, gpu_label

TIME = "timestamp"
_HEADER = re.compile(
    r"^(?=.*\b(?:utilization|power|memory|clocks|temperature|fan|pcie|ecc)\.\w).*(?:^|,)\s*timestamp\s*(?:,|$)"
)
_SAMPLED = re.compile(r"^(?:utilization|power|enforced|memory|clocks|temperature|fan|pcie|ecc|encoder|pstate)\b")
_IDENTITY = ("index", "gpu_index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
_NAMES = ("name", "gpu_name")
_NUMBER = re.compile(r"^[+-]?\d+(?:\.\d+)?")


class Header(NamedTuple):
    """Columns by position: `sampled` with the names that the tool spells, `power.draw [W]`."""

    time: int
    identity: int | None
    name: int | None
    sampled: tuple[tuple[int, str], ...]
    width: int


def looks_like_samples(head: bytes) -> bool:
    """True for the first bytes (unpacked) of such a table."""
    return parse_header(head.partition(b"\n")[0].decode("utf-8-sig", "replace")) is not None


def parse_header(line: str) -> Header | None:
    """The columns of a header line; None if it is none."""
    if not _HEADER.match(line):
        return None
    columns = [cell.strip() for cell in line.split(",")]
    sampled = tuple((at, name) for at, name in enumerate(columns) if _SAMPLED.match(name))
    identity = next((columns.index(name) for name in _IDENTITY if name in columns), None)
    name = next((columns.index(name) for name in _NAMES if name in columns), None)
    return Header(columns.index(TIME), identity, name, sampled, len(columns))


class QueryLines:
    """Reads one line after the other; a header that comes again begins a new table."""

    def __init__(self) -> None:
        self._header: Header | None = None

    def __call__(self, line: str) -> Sample | bool:
        again = parse_header(line)
        if again is not None:
            self._header = again
            return True
        return False if self._header is None else _sample(self._header, line)


def _sample(header: Header, line: str) -> Sample | Literal[False]:
    """False if it has another width or no time. Cells without a number (`[N/A]`) are left out; a unit behind a
    number is that of the header."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != header.width or (time := local_ns(cells[header.time])) is None:
        return False
    who = "GPU" if header.identity is None else f"GPU {cells[header.identity]}"
    values = [
        (name, float(match[0])) for at, name in header.sampled if (match := _NUMBER.match(cells[at])) is not None
    ]
    return Sample(time, gpu_label(who, None if header.name is None else cells[header.name]), values)


def local_ns(text: str) -> int | None:
    """Of `2024/01/02 03:04:05.678`, on a clock of its own: the file does not say of which zone it is."""
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    since = moment - datetime(1970, 1, 1)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
