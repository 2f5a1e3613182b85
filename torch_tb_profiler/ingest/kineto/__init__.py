"""Chrome traces as Kineto and its relatives write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.kineto.sniff import looks_like_chrome_trace
from torch_tb_profiler.ingest.progress import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.kineto.read import read_chrome_trace

    return read_chrome_trace(stream, size=size, report=report, limit=limit)


FORMATS = (TraceFormat("chrome trace", (".json", ".json.gz"), looks_like_chrome_trace, _parse),)
