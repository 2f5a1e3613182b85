"""Memory snapshots (`_dump_snapshot`) and exported memory timelines (`export_memory_timeline`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import FileFormat, TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]

_KEYS = (b"segments", b"device_traces", b"total_size")
"""Keys of which the first bytes of a snapshot hold one."""

_KEY_BYTES = 4096
"""Bytes at the front of a pickle in which a key of a snapshot must occur."""


def is_snapshot(head: bytes) -> bool:
    """Return whether the first unpacked bytes of a file are those of a pickled memory snapshot."""
    is_pickle = head[:1] in (b"(", b"]", b"}") or (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05")
    return is_pickle and any(key in head[:_KEY_BYTES] for key in _KEYS) and not head.startswith((b"[", b"{"))


def _parse_snapshot(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.memory.snapshot import read_snapshot_trace

    return read_snapshot_trace(stream, size=size, report=report)


def _snapshot_of(trace: Trace) -> object:
    return trace.snapshot


def _parse_timeline(stream: BinaryIO) -> object:
    from torch_tb_profiler.ingest.memory.timeline import read_timeline

    return read_timeline(stream)


FORMATS = (
    TraceFormat("memory snapshot", (), is_snapshot, _parse_snapshot),
    FileFormat(
        "snapshot", (".pickle", ".pkl", ".pickle.gz", ".pkl.gz"), loaded=_parse_snapshot, content=_snapshot_of
    ),
    FileFormat("timeline", (".raw.json", ".raw.json.gz"), _parse_timeline),
)
