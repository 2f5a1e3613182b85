"""Samples of GPUs that `nvidia-smi --query-gpu=timestamp,... --format=csv` writes beside a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.nvidia_smi.table import looks_like_samples
from torch_tb_profiler.ingest.progress import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.nvidia_smi.read import read_samples

    return read_samples(stream, size=size, report=report, limit=limit)


FORMATS = (TraceFormat("nvidia-smi samples", (".csv", ".csv.gz"), looks_like_samples, _parse, alone=True),)
