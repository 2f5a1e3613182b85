"""Samples of GPUs that `amd-smi metric --watch 1 --csv` (or `amd-smi monitor`) writes beside a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _sniff(head: bytes) -> bool:
    from torch_tb_profiler.ingest.amd_smi.table import looks_like_amd_samples

    return looks_like_amd_samples(head)


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.amd_smi.table import AmdLines
    from torch_tb_profiler.ingest.gpu_metrics.lines import Tool
    from torch_tb_profiler.ingest.gpu_metrics.read import read_samples

    tool = Tool("amd-smi", "epoch", "amd-smi metric --watch 1 --csv")
    return read_samples(stream, tool, AmdLines(), size=size, report=report, limit=limit)


FORMATS = (TraceFormat("amd-smi samples", (".csv", ".csv.gz"), _sniff, _parse, alone=True),)
