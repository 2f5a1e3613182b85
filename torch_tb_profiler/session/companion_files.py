"""Add what files beside a trace say about it: hardware counters of its kernels, and when requests arrived.

A file that can't be used costs a health note.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace

from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest.otlp.request_spans import read_request_spans
from torch_tb_profiler.ingest.rocprof.counters import read_counters
from torch_tb_profiler.model.counters.dispatches import DispatchCounters, with_counters
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.requests import RequestRecord, with_requests
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.storage import Location


def add_counters(trace: Trace, location: Location, files: Sequence[tuple[str, int]], limit: int) -> Trace:
    """Add the hardware counters in `files` (path, stored bytes) to a trace; unusable files only leave a note.

    limit  bytes of each file that may be read, 0 for no limit

    Raises StorageError if a file can't be read.
    """
    health = HealthLog()
    tables: list[DispatchCounters] = []
    for path, size in files:
        try:
            with location.open(path) as stream:
                tables.append(read_counters(stream, size=size, report=lambda progress: None, limit=limit))
        except TraceError as error:
            health.add(
                "counters_unreadable", "warning", f"skipped a counter file next to the trace: {error.message}"
            )
    return with_counters(replace(trace, health=(*trace.health, *health.notes())), tables)


def add_request_files(trace: Trace, location: Location, files: Sequence[tuple[str, int]], limit: int) -> Trace:
    """Return the trace with the requests in the files (path, stored bytes) that overlap it.

    limit  bytes of each file that may be read, 0 for no limit

    Raises StorageError if a file can't be read.
    """
    health, records = HealthLog(), list[RequestRecord]()
    for path, size in files:
        name = posixpath.basename(path)
        try:
            with location.open(path) as stream:
                records += read_request_spans(stream, size=size, health=health, limit=limit)
        except (TraceError, TooLargeError) as error:
            health.add("requests_unreadable", "warning", f"{name}: its requests can't be used: {error.message}")
    joined = trace
    if records and trace.wall_start_ns is None:
        health.add(
            "requests_outside",
            "warning",
            "the requests beside the trace can't be placed: the trace doesn't say when it was recorded",
        )
    elif records:
        joined = with_requests(trace, records)
        if joined is trace:
            health.add(
                "requests_outside",
                "warning",
                f"none of the {len(records):,} requests beside the trace ran while it was recorded",
            )
    if joined is trace and not health.notes():
        return trace
    return replace(joined, health=(*joined.health, *health.notes()))
