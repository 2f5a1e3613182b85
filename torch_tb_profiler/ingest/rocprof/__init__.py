"""Recordings of rocprofv3 (ROCm): its databases (rocpd), its JSON and its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.rocprof.sniff import looks_like_rocpd, looks_like_rocprof_json, looks_like_tables
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]


def _read_rocpd(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    # Imported here so that only such a file costs the import of sqlite3.
    from torch_tb_profiler.ingest.rocprof.rocpd import read_rocpd

    return read_rocpd(stream, size=size, report=report, limit=limit)


def _read_json(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.rocprof.document import read_rocprof_json

    return read_rocprof_json(stream, size=size, report=report, limit=limit)


def _read_tables(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.rocprof.tables import read_tables

    return read_tables(stream, size=size, report=report, limit=limit)


FORMATS = (
    TraceFormat("rocprofv3 database", (".db", ".db.gz"), looks_like_rocpd, _read_rocpd),
    TraceFormat("rocprofv3 JSON", (".json", ".json.gz"), looks_like_rocprof_json, _read_json),
    TraceFormat("rocprofv3 tables", (".csv", ".csv.gz"), looks_like_tables, _read_tables),
)
