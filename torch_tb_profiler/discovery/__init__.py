"""Discovery: turn a log folder into runs, workers, and spans; only files with unclear names are opened."""

from __future__ import annotations

from torch_tb_profiler.discovery.arrange import arrange_runs, distinct_names, find_other_files
from torch_tb_profiler.discovery.catalog import (
    Catalog,
    DumpFile,
    ListedFile,
    ListedRun,
    MemoryFile,
    OtherFiles,
    Span,
    Worker,
)
from torch_tb_profiler.discovery.companions import with_counter_files, with_request_files, with_tables
from torch_tb_profiler.discovery.dumps import find_dumps, with_dumps
from torch_tb_profiler.discovery.origin_files import with_origin_files
from torch_tb_profiler.discovery.sniffer import Sniffer

__all__ = [
    "Catalog",
    "DumpFile",
    "ListedFile",
    "MemoryFile",
    "OtherFiles",
    "ListedRun",
    "Sniffer",
    "Span",
    "Worker",
    "arrange_runs",
    "distinct_names",
    "find_dumps",
    "find_other_files",
    "with_counter_files",
    "with_dumps",
    "with_origin_files",
    "with_request_files",
    "with_tables",
]
