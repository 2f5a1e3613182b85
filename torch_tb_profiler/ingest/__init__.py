"""An open file to a Trace, whatever wrote it: the registry knows the formats, a folder each."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.gc import without_gc
from torch_tb_profiler.ingest.head import peek_head, unpack_head
from torch_tb_profiler.ingest.progress import Progress, Report, ignore
from torch_tb_profiler.ingest.registry import foreign_by_head, recognize, trace_formats

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["Progress", "Report", "ignore", "read_trace", "without_gc"]


def read_trace(stream: BinaryIO, *, size: int = 0, report: Report = ignore, limit: int = 0) -> Trace:
    """Read a trace of any registered format, plain or packed with gzip.

    stream  open for reading in binary; read forward once, in pieces
    size    stored bytes, for the progress (0 if unknown)
    limit   unpacked bytes that may be read, 0 for any number

    Everything that can be read is in the trace; what was skipped or repaired is said in `Trace.health`.
    Raises TraceError if nothing can be made of the file, TooLargeError as soon as it is known that it holds more
    than `limit`; errors of the stream itself pass through.
    """
    with peek_head(stream) as (head, whole):
        first = unpack_head(head)
        format_ = recognize(first)
        if format_ is None and (foreign := foreign_by_head(first)) is not None:
            raise TraceError(f"this is a file of another tool ({foreign.kind})", hint=foreign.advice)
        return (format_ or trace_formats()[0]).parse(whole, size=size, report=report, limit=limit)
