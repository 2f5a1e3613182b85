"""Samples of GPUs that nvidia-smi writes beside a run.

nvidia-smi --query-gpu=timestamp,... --format=csv -l 1
nvidia-smi dmon -o DT
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _sniff(head: bytes) -> bool:
    from torch_tb_profiler.ingest.nvidia_smi.table import looks_like_samples

    return looks_like_samples(head)


def _sniff_monitor(head: bytes) -> bool:
    from torch_tb_profiler.ingest.nvidia_smi.monitor import looks_like_monitor

    return looks_like_monitor(head)


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.gpu_metrics.lines import Tool
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples
    from torch_tb_profiler.ingest.nvidia_smi.table import QueryLines

    tool = Tool("nvidia-smi", "local", "nvidia-smi --query-gpu=timestamp,... --format=csv")
    return read_samples(stream, tool, QueryLines(), size=size, report=report, limit=limit)


def _parse_monitor(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.gpu_metrics.lines import Tool
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples
    from torch_tb_profiler.ingest.nvidia_smi.monitor import MonitorLines

    tool = Tool("nvidia-smi", "local", "nvidia-smi dmon -o DT")
    return read_samples(stream, tool, MonitorLines(), size=size, report=report, limit=limit)


FORMATS = (
    TraceFormat("nvidia-smi samples", (".csv", ".csv.gz"), _sniff, _parse, alone=True),
    TraceFormat("nvidia-smi dmon", (".csv", ".csv.gz"), _sniff_monitor, _parse_monitor, alone=True),
)
