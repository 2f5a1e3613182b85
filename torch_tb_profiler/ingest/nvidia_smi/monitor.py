"""Lines of `nvidia-smi dmon -o DT`: every few of them two headers come again, the names and their units.

#Date       Time        gpu    pwr  gtemp     sm
#YYYYMMDD   HH:MM:SS    Idx      W      C      %
 20240104   13:54:35      0    239     40      6

With `--format csv` commas stand between the cells.
"""

from __future__ import annotations

import re

from torch_tb_profiler.ingest.gpu_metrics.lines import Sample
from torch_tb_profiler.ingest.nvidia_smi.table import local_ns

_HEADER = re.compile(r"^#\s*(?:Date[,\s]+Time|Time[,\s]+Date)[,\s]+gpu(?:[,\s]|$)", re.IGNORECASE)
_UNITS = re.compile(r"^#.*\bYYYYMMDD\b")
_PLACES = 3
"""Columns that say when and where; a header is one by these three, so a damaged name further on is a counter."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NO_UNIT = ("", "-", "Idx")


def looks_like_monitor(head: bytes) -> bool:
    """True for the first bytes (unpacked) of such lines."""
    return _HEADER.match(head.partition(b"\n")[0].decode("utf-8-sig", "replace")) is not None


class MonitorLines:
    """Reads one line after the other."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._units: list[str] = []

    def __call__(self, line: str) -> Sample | bool:
        cells = [cell for cell in re.split(r"[,\s]+", line.strip().lstrip("#")) if cell]
        if _HEADER.match(line):
            self._names, self._units = cells, []
            return True
        if _UNITS.match(line):
            self._units = cells if len(cells) == len(self._names) else []
            return True
        if not self._names or len(cells) != len(self._names):
            return False
        return self._sample(cells)

    def _sample(self, cells: list[str]) -> Sample | bool:
        date, time, gpu = cells[:_PLACES] if self._names[0].lower() == "date" else (cells[1], cells[0], cells[2])
        moment = local_ns(f"{date[:4]}-{date[4:6]}-{date[6:]} {time}") if date.isdecimal() else None
        if moment is None:
            return False
        units = self._units or [""] * len(cells)
        values = [
            (name if unit in _NO_UNIT else f"{name} [{unit}]", float(cell))
            for name, unit, cell in list(zip(self._names, units, cells, strict=True))[_PLACES:]
            if _NUMBER.fullmatch(cell)
        ]
        return Sample(moment, f"GPU {gpu}", values)
