"""A log folder to runs, workers and spans: lists names, opens only what no name explains."""

from __future__ import annotations

from torch_tb_profiler.discovery.catalog import Catalog, MemoryFile, Run, Span, TraceFile, Worker, build_catalog
from torch_tb_profiler.discovery.sniff import Sniffer

__all__ = ["Catalog", "MemoryFile", "Run", "Sniffer", "Span", "TraceFile", "Worker", "build_catalog"]
