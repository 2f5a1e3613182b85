"""Lines of the table: a header, then a line per GPU and time, in whole seconds since the epoch.

timestamp,gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,hotspot
1772939616,0,95,80,350,1980,72
1772939616,1,N/A,0,98,132,44
"""

from __future__ import annotations

import re

from torch_tb_profiler.ingest.gpu_metrics.lines import Sample

_HEADER = re.compile(r"^timestamp\s*,\s*gpu\s*,")
_TIME = re.compile(r"^\d{9,11}(?:\.\d{1,9})?$")
_NUMBER = re.compile(r"^[+-]?\d+(?:\.\d+)?(?=$|\s)")
_NO_SAMPLES = ("timestamp", "gpu", "xcp", "partition_id", "serial_number")


def looks_like_amd_samples(head: bytes) -> bool:
    """True for the first bytes (unpacked) of such a table."""
    return _HEADER.match(head.partition(b"\n")[0].decode("utf-8-sig", "replace")) is not None


class AmdLines:
    """Reads one line after the other; a header that comes again begins a new table."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __call__(self, line: str) -> Sample | bool:
        cells = [cell.strip() for cell in line.split(",")]
        if _HEADER.match(line):
            self._names = cells
            return True
        if not self._names or len(cells) != len(self._names) or not _TIME.match(cells[0]):
            return False
        whole, _, fraction = cells[0].partition(".")
        values = [
            (name, float(match[0]))
            for name, cell in zip(self._names, cells, strict=True)
            if name not in _NO_SAMPLES and (match := _NUMBER.match(cell)) is not None
        ]
        return Sample(int(whole) * 10**9 + int(fraction.ljust(9, "0")), f"GPU {cells[1]}", values)
