"""Read memory timelines that `profiler.export_memory_timeline("x.raw.json")` writes, plain or gzip.

[[time ns, action, signed bytes, category], ...]      time -1: allocated before the profiler started
"""

from __future__ import annotations

from typing import BinaryIO

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.runtime import ignore_progress
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.memory.exports import CATEGORIES, RecordedTimeline

MAX_BYTES = 512 * 2**20
_HINT = 'the profiler writes one with `export_memory_timeline("x.raw.json.gz")`'
_CHUNK_BYTES = 1 << 20


def read_timeline(stream: BinaryIO) -> RecordedTimeline:
    """Read a timeline; raise TraceError if the file is too large, damaged, or not a list of such entries."""
    try:
        rows = msgspec.json.decode(_read_unpacked(stream), type=list[tuple[int, int, int, int]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"the file is not a memory timeline: {error}", hint=_HINT) from error
    try:
        table = np.array(rows, np.int64).reshape(-1, 4)
    except OverflowError as error:
        raise TraceError(
            "the file is not a memory timeline: a number has more than 64 bits", hint=_HINT
        ) from error
    if len(table) == 0:
        raise TraceError("the memory timeline is empty", hint="record with `profile_memory=True`")
    table = table[np.argsort(table[:, 0], kind="stable")]
    category = table[:, 3]
    category = np.where((category >= 0) & (category < len(CATEGORIES)), category, len(CATEGORIES) - 1)
    return RecordedTimeline(table[:, 0], table[:, 2], category.astype(np.int8))


def _read_unpacked(stream: BinaryIO) -> bytes:
    health = HealthLog()
    source = UnpackedStream(stream, 0, ignore_progress, health)
    chunks: list[bytes] = []
    buffer = bytearray(_CHUNK_BYTES)
    while count := source.read_into(memoryview(buffer)):
        chunks.append(bytes(buffer[:count]))
        if source.offset > MAX_BYTES:
            raise TraceError(f"the file has more than {MAX_BYTES // 2**20} MiB", hint="profile fewer steps")
    for note in health.notes():
        raise TraceError(note.message, hint="copy the file again")
    return b"".join(chunks)
