"""Samples of GPUs that other tools write while a program runs.

    nvidia-smi --query-gpu=timestamp,... --format=csv -l 1
    nvidia-smi dmon -o DT
    amd-smi metric --watch 1 --csv                             or `amd-smi monitor`
    DCGM's exporter, with the times that Prometheus adds       `/federate`

Each file is a run of its own with counters only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _is_query(head: bytes) -> bool:
    from torch_tb_profiler.ingest.gpu_metrics.nvidia_smi import looks_like_query

    return looks_like_query(head)


def _is_monitor(head: bytes) -> bool:
    from torch_tb_profiler.ingest.gpu_metrics.nvidia_smi import looks_like_monitor

    return looks_like_monitor(head)


def _is_amd_smi(head: bytes) -> bool:
    from torch_tb_profiler.ingest.gpu_metrics.amd_smi import looks_like_amd_smi

    return looks_like_amd_smi(head)


def _is_dcgm(head: bytes) -> bool:
    from torch_tb_profiler.ingest.gpu_metrics.dcgm import looks_like_dcgm

    return looks_like_dcgm(head)


def _parse_query(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.gpu_metrics.nvidia_smi import QUERY, QueryLineReader
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples

    return read_samples(stream, QUERY, QueryLineReader(), size=size, report=report, limit=limit)


def _parse_monitor(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.gpu_metrics.nvidia_smi import MONITOR, MonitorLineReader
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples

    return read_samples(stream, MONITOR, MonitorLineReader(), size=size, report=report, limit=limit)


def _parse_amd_smi(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.gpu_metrics.amd_smi import AMD_SMI, AmdLineReader
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples

    return read_samples(stream, AMD_SMI, AmdLineReader(), size=size, report=report, limit=limit)


def _parse_dcgm(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.gpu_metrics.dcgm import DCGM, read_dcgm_line
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples

    return read_samples(stream, DCGM, read_dcgm_line, size=size, report=report, limit=limit)


FORMATS = (
    TraceFormat("nvidia-smi samples", (".csv", ".csv.gz"), _is_query, _parse_query, alone=True),
    TraceFormat("nvidia-smi dmon", (".csv", ".csv.gz"), _is_monitor, _parse_monitor, alone=True),
    TraceFormat("amd-smi samples", (".csv", ".csv.gz"), _is_amd_smi, _parse_amd_smi, alone=True),
    TraceFormat("DCGM metrics", (".prom", ".prom.gz"), _is_dcgm, _parse_dcgm, alone=True),
)
