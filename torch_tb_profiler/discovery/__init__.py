"""A log folder to runs, workers and spans: lists names, opens only what no name explains."""

from __future__ import annotations

from torch_tb_profiler.discovery.arrange import arrange_runs, other_files
from torch_tb_profiler.discovery.catalog import Catalog, ListedFile, MemoryFile, OtherFiles, Run, Span, Worker
from torch_tb_profiler.discovery.counters import with_counters
from torch_tb_profiler.discovery.distinct import distinct_names
from torch_tb_profiler.discovery.sniffer import Sniffer
from torch_tb_profiler.discovery.tables import with_tables

__all__ = [
    "Catalog",
    "ListedFile",
    "MemoryFile",
    "OtherFiles",
    "Run",
    "Sniffer",
    "Span",
    "Worker",
    "arrange_runs",
    "distinct_names",
    "other_files",
    "with_counters",
    "with_tables",
]
