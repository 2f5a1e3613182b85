"""Read a trace file of any known format; `formats.py` lists the importers."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.formats import (
    file_format_by_name,
    foreign_format_by_head,
    recognize_trace,
    trace_formats,
)
from torch_tb_profiler.ingest.runtime import Progress, Report, ignore_progress, without_gc
from torch_tb_profiler.ingest.streams import peek_head, unpack_head

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["Progress", "Report", "ignore_progress", "read_trace", "without_gc"]


def read_trace(
    stream: BinaryIO, *, size: int = 0, report: Report = ignore_progress, limit: int = 0, name: str = ""
) -> Trace:
    """Read a trace of any registered format, plain or packed with gzip.

    stream  open for reading in binary; read forward once, in pieces
    size    stored bytes, for the progress (0 if unknown)
    limit   unpacked bytes that may be read, 0 for any number
    name    of the file, for a format that its first bytes don't show

    Everything that can be read is in the trace; `Trace.health` lists what was skipped or repaired.
    Raises TraceError if the file can't be read at all, and TooLargeError as soon as it is known to hold more than
    `limit` bytes; errors of the stream itself pass through.
    """
    with peek_head(stream) as (head, rewound):
        first = unpack_head(head)
        format_ = recognize_trace(first)
        if format_ is None and (foreign := foreign_format_by_head(first)) is not None:
            raise TraceError(f"this is a file of another tool ({foreign.kind})", hint=foreign.advice)
        named = file_format_by_name(name) if format_ is None else None
        if named is not None and named.loaded is not None:
            return named.loaded(rewound, size=size, report=report, limit=limit)
        return (format_ or trace_formats()[0]).parse(rewound, size=size, report=report, limit=limit)
