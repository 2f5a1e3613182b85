"""Traces as Perfetto packets (`.pftrace`), as PyTorch and rocprofv3 write them.

The functions that recognize a file take its first bytes, unpacked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS", "SUFFIXES", "is_perfetto", "is_pytorch_pftrace", "is_rocprof_pftrace"]

SUFFIXES = (".pftrace", ".pftrace.gz", ".perfetto-trace")
"""Endings of the file names of Perfetto traces."""

_TRACE_PACKET = b"\x0a"  # field 1 of the protobuf message Trace, length-delimited
_TRACK_DESCRIPTOR = b"\xe2\x03"  # field 60 of a packet


def is_perfetto(head: bytes) -> bool:
    """Return whether the first packet ends where the next one begins, or with the file."""
    begin, end = _packet_span(head, 0)
    return 0 < begin < end <= len(head) and head[end : end + 1] in (b"", _TRACE_PACKET)


def is_rocprof_pftrace(head: bytes) -> bool:
    """Return whether rocprofv3 wrote the file: its records carry their own times and correlation ids."""
    return is_perfetto(head) and b"begin_ns" in head and b"corr_id" in head


def is_pytorch_pftrace(head: bytes) -> bool:
    """Return whether PyTorch wrote the file.

    It starts with the bare descriptor of a process, in newer versions after the time; recording services write
    more of their state first.
    """
    first = _packet_span(head, 0)
    second = _packet_span(head, first[1])
    starts_with_track = any(head[begin:end].startswith(_TRACK_DESCRIPTOR) for begin, end in (first, second))
    return is_perfetto(head) and starts_with_track and b"begin_ns" not in head


def _packet_span(head: bytes, start: int) -> tuple[int, int]:
    """Return (begin, end) of the content of the packet that begins at `start`, or (0, 0) if none does."""
    length = 0
    for at, shift in enumerate(range(0, 35, 7), start + 1):
        if at >= len(head) or not head.startswith(_TRACE_PACKET, start):
            break
        length |= (head[at] & 0x7F) << shift
        if head[at] < 0x80:
            return at + 1, at + 1 + length
    return 0, 0


def _read_rocprof(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    # The reader is imported only when such a file is parsed.
    from torch_tb_profiler.ingest.perfetto.rocprof import read_rocprof_pftrace

    return read_rocprof_pftrace(stream, size=size, report=report, limit=limit)


def _read_pytorch(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.perfetto.pytorch import read_pytorch_pftrace

    return read_pytorch_pftrace(stream, size=size, report=report, limit=limit)


FORMATS = (
    TraceFormat("PyTorch Perfetto trace", SUFFIXES, is_pytorch_pftrace, _read_pytorch),
    TraceFormat("rocprofv3 Perfetto trace", SUFFIXES, is_rocprof_pftrace, _read_rocprof),
)
