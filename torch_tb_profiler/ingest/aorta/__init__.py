"""Iteration metrics of AORTA's benchmarks: `rank_<rr>_metrics.jsonl`, a line per iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]

_LINE = lazy_regex(rb'\{(?=[^\n]*"global_step"\s*:)[^\n]*"profile"\s*:\s*\{')


def _looks_like_metrics(head: bytes) -> bool:
    """Return whether a file with these unpacked first bytes begins with an iteration and its profile."""
    return b'"global_step"' in head and bool(_LINE.match(head.lstrip(b"\xef\xbb\xbf \t\r\n")))


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.aorta.metrics import read_metrics

    return read_metrics(stream, size=size, report=report, limit=limit)


FORMATS = (TraceFormat("AORTA metrics", (".jsonl", ".jsonl.gz"), _looks_like_metrics, _parse, recordings=True),)
