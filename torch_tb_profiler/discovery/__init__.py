"""Discovery: turn a log folder into runs, workers, and spans; only files with unclear names are opened."""

from __future__ import annotations

from torch_tb_profiler.discovery.arrange import arrange_runs, distinct_names, other_files
from torch_tb_profiler.discovery.catalog import (
    Catalog,
    ListedFile,
    ListedRun,
    MemoryFile,
    OtherFiles,
    Span,
    Worker,
)
from torch_tb_profiler.discovery.companions import with_counters, with_tables
from torch_tb_profiler.discovery.origin_files import with_origin_files
from torch_tb_profiler.discovery.sniffer import Sniffer

__all__ = [
    "Catalog",
    "ListedFile",
    "MemoryFile",
    "OtherFiles",
    "ListedRun",
    "Sniffer",
    "Span",
    "Worker",
    "arrange_runs",
    "distinct_names",
    "other_files",
    "with_counters",
    "with_origin_files",
    "with_tables",
]
