"""Metrics of iterations as AORTA's benchmarks write them: `rank_<rr>_metrics.jsonl`, a line per iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.aorta.sniff import looks_like_metrics
from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.aorta.read import read_metrics

    return read_metrics(stream, size=size, report=report, limit=limit)


FORMATS = (TraceFormat("AORTA metrics", (".jsonl", ".jsonl.gz"), looks_like_metrics, _parse, recordings=True),)
