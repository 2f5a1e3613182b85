"""Metrics of iterations as AORTA's benchmarks write them: `rank_<rr>_metrics.jsonl`, a line per iteration."""

from __future__ import annotations

from torch_tb_profiler.ingest.aorta.read import read_metrics
from torch_tb_profiler.ingest.aorta.sniff import looks_like_metrics
from torch_tb_profiler.ingest.formats import TraceFormat

__all__ = ["FORMATS"]

FORMATS = (
    TraceFormat("AORTA metrics", (".jsonl", ".jsonl.gz"), looks_like_metrics, read_metrics, recordings=True),
)
