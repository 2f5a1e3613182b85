"""Read lines of `amd-smi metric --watch 1 --csv`: a header, then a line per GPU and time.

timestamp,gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,hotspot
1772939616,0,95,80,350,1980,72
1772939616,1,N/A,0,98,132,44

Times are seconds since the epoch.
"""

from __future__ import annotations

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.gpu_metrics.sample import GpuSample, SamplingTool

AMD_SMI = SamplingTool("amd-smi", "epoch", "record with `amd-smi metric --watch 1 --csv`")

_HEADER = lazy_regex(r"^timestamp\s*,\s*gpu\s*,")
_TIME = lazy_regex(r"^\d{9,11}(?:\.\d{1,9})?$")
_NUMBER = lazy_regex(r"^[+-]?\d+(?:\.\d+)?(?=$|\s)")
_IDENTITY_COLUMNS = ("timestamp", "gpu", "xcp", "partition_id", "serial_number")


def looks_like_amd_smi(head: bytes) -> bool:
    """Return whether a file with these unpacked first bytes is such a table."""
    line = head.partition(b"\n")[0]
    return b"timestamp" in line and _HEADER.match(line.decode("utf-8-sig", "replace")) is not None


class AmdLineReader:
    """A `ReadLine`; a repeated header starts another table."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __call__(self, line: str) -> GpuSample | bool:
        cells = [cell.strip() for cell in line.split(",")]
        if _HEADER.match(line):
            self._names = cells
            return True
        if not self._names or len(cells) != len(self._names) or not _TIME.match(cells[0]):
            return False
        seconds, _, fraction = cells[0].partition(".")
        values = [
            (name, float(match[0]))
            for name, cell in zip(self._names, cells, strict=True)
            if name not in _IDENTITY_COLUMNS and (match := _NUMBER.match(cell)) is not None
        ]
        return GpuSample(int(seconds) * 10**9 + int(fraction.ljust(9, "0")), f"GPU {cells[1]}", values)
