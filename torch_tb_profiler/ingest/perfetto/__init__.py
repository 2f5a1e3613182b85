"""Traces as Perfetto's packets (`.pftrace`): those of PyTorch and of rocprofv3."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.perfetto.sniff import is_pytorch_pftrace, is_rocprof_pftrace
from torch_tb_profiler.ingest.progress import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS", "SUFFIXES"]

SUFFIXES = (".pftrace", ".pftrace.gz", ".perfetto-trace")


def _read_rocprof(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    # Nobody but who has such a file pays for the reader.
    from torch_tb_profiler.ingest.perfetto.rocprof import read_rocprof_pftrace

    return read_rocprof_pftrace(stream, size=size, report=report, limit=limit)


def _read_pytorch(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.perfetto.pytorch import read_pytorch_pftrace

    return read_pytorch_pftrace(stream, size=size, report=report, limit=limit)


FORMATS = (
    TraceFormat("PyTorch Perfetto trace", SUFFIXES, is_pytorch_pftrace, _read_pytorch),
    TraceFormat("rocprofv3 Perfetto trace", SUFFIXES, is_rocprof_pftrace, _read_rocprof),
)
