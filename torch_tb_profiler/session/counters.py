"""Files of hardware counters that lie beside a trace, read and joined with its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.rocprof.counters import read_counters
from torch_tb_profiler.model.counters.dispatches import Dispatches, with_counters
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.storage import Location


def with_files(trace: Trace, location: Location, files: Sequence[tuple[str, int]], limit: int) -> Trace:
    """A trace with the counters of files (path, stored bytes); what cannot be used is left out with a note.

    limit  bytes of each that may be read, 0 for any number. Raises StorageError if one cannot be read.
    """
    health = HealthLog()
    tables: list[Dispatches] = []
    for path, size in files:
        try:
            with location.open(path) as stream:
                tables.append(read_counters(stream, size=size, report=lambda progress: None, limit=limit))
        except TraceError as error:
            health.add(
                "counters_unreadable", "warning", f"counters beside the trace are left out: {error.message}"
            )
    return with_counters(replace(trace, health=(*trace.health, *health.notes())), tables)
