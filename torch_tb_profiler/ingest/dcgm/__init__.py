"""Metrics of DCGM's exporter with their times, as Prometheus hands them on (`/federate`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _sniff(head: bytes) -> bool:
    from torch_tb_profiler.ingest.dcgm.exposition import looks_like_dcgm

    return looks_like_dcgm(head)


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.dcgm.exposition import DcgmLines
    from torch_tb_profiler.ingest.gpu_metrics.lines import Tool
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples

    tool = Tool("DCGM", "epoch", "Prometheus writes times where it hands metrics on (`/federate?match[]=...`)")
    return read_samples(stream, tool, DcgmLines(), size=size, report=report, limit=limit)


FORMATS = (TraceFormat("DCGM metrics", (".prom", ".prom.gz"), _sniff, _parse, alone=True),)
