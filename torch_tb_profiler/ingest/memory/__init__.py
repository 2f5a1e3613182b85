"""Memory snapshots (`_dump_snapshot`) and exported memory timelines (`export_memory_timeline`)."""

from __future__ import annotations

from typing import BinaryIO

from torch_tb_profiler.ingest.formats import FileFormat

__all__ = ["FORMATS"]


def _parse_snapshot(stream: BinaryIO) -> object:
    from torch_tb_profiler.ingest.memory.snapshot import read_snapshot

    return read_snapshot(stream)


def _parse_timeline(stream: BinaryIO) -> object:
    from torch_tb_profiler.ingest.memory.timeline import read_timeline

    return read_timeline(stream)


FORMATS = (
    FileFormat("snapshot", (".pickle", ".pkl"), _parse_snapshot),
    FileFormat("timeline", (".raw.json", ".raw.json.gz"), _parse_timeline),
)
