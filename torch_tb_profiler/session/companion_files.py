"""Add what files beside a trace say about it: hardware counters of its kernels, and its requests and their queue.

A file that can't be used costs a health note.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace

from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.discovery.companions import is_engine_log
from torch_tb_profiler.ingest.engine_log.read import read_engine_log
from torch_tb_profiler.ingest.otlp.request_spans import read_request_spans
from torch_tb_profiler.ingest.rocprof.counters import read_counters
from torch_tb_profiler.model.counters.dispatches import DispatchCounters, with_counters
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.queue import QueueSample, with_queue
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
    """Return the trace with the requests in the files (path, stored bytes) that overlap it, and its queue.

    limit  bytes of each file that may be read, 0 for no limit

    Spans say more than a log, so where there are both, the log only tells the queue.

    Raises StorageError if a file can't be read.
    """
    health, spans, logged, samples = HealthLog(), list[RequestRecord](), list[RequestRecord](), list[QueueSample]()
    begin = trace.wall_start_ns
    for path, size in files:
        name, is_log = posixpath.basename(path), is_engine_log(path)
        try:
            with location.open(path) as stream:
                if not is_log:
                    spans += read_request_spans(stream, size=size, health=health, limit=limit)
                elif (
                    log := read_engine_log(stream, size=size, health=health, near_ns=begin, limit=limit)
                ) is not None:
                    logged += log.requests
                    samples += log.samples
        except (TraceError, TooLargeError) as error:
            health.add("requests_unreadable", "warning", f"{name}: its requests can't be used: {error.message}")
    records, joined = spans or logged, trace
    if (records or samples) and begin is None:
        health.add(
            "requests_outside",
            "warning",
            "the requests beside the trace can't be placed: the trace doesn't say when it was recorded",
        )
    elif records or samples:
        joined = with_queue(with_requests(trace, records), samples)
        if joined is trace:
            found = f"none of the {len(records):,} requests" if records else "no line of the server's log"
            health.add(
                "requests_outside",
                "warning",
                f"{found} beside the trace {'ran' if records else 'was written'} while it was recorded",
            )
    if joined is trace and not health.notes():
        return trace
    return replace(joined, health=(*joined.health, *health.notes()))
