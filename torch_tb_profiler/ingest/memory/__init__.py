"""Memory snapshots (`_dump_snapshot`) and exported memory timelines (`export_memory_timeline`)."""

from __future__ import annotations

from torch_tb_profiler.ingest.formats import FileFormat
from torch_tb_profiler.ingest.memory.snapshot import read_snapshot
from torch_tb_profiler.ingest.memory.timeline import read_timeline

__all__ = ["FORMATS"]

FORMATS = (
    FileFormat("snapshot", (".pickle", ".pkl"), read_snapshot),
    FileFormat("timeline", (".raw.json", ".raw.json.gz"), read_timeline),
)
