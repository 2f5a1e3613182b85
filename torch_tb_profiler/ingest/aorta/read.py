"""An open file of metrics to a Trace: iterations laid end to end, a lane per stream."""

from __future__ import annotations

from typing import BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.aorta.columns import Columns
from torch_tb_profiler.ingest.aorta.records import decode_record
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.source import Source, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace


def read_metrics(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Lines that are no iterations are left out and noted.

    Every run appends to the file, so a global step that does not rise begins a new recording.
    Raises TraceError if there is no iteration, TooLargeError if the file holds more than `limit`.
    """
    health, columns = HealthLog(), Columns()
    source = Source(stream, size, report, health, limit)
    last_error = None
    with without_gc():
        for offset, line in read_lines(source, health):
            try:
                columns.add(decode_record(line), health)
            except TraceError as error:
                last_error = error.message
                health.add("line_unreadable", "warning", "a line is no iteration and is left out", offset=offset)
            source.events = columns.length
        if columns.iterations == 0:
            raise TraceError("the file holds no iteration", hint=last_error)
        report(Progress("arranging", size, size, columns.length))
        return columns.trace(health)
