"""The lines of a file, one at a time, however long it is."""

from __future__ import annotations

from collections.abc import Iterator

from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog

LONGEST_LINE = 64 << 20
"""Bytes: an iteration with a million ranges. A longer line is skipped, so that memory stays bounded."""

_PIECE = 1 << 20


def read_lines(source: Source, health: HealthLog) -> Iterator[tuple[int, bytes]]:
    """(offset of its first byte, line without its end) of each line that is not empty; unpacked bytes."""
    buffer, line = bytearray(_PIECE), bytearray()
    begin, skipping = 0, False
    while count := source.read_into(memoryview(buffer)):
        at = 0
        while (end := buffer.find(b"\n", at, count)) >= 0:
            line += buffer[at:end]
            if line.strip() and not skipping:
                yield begin, bytes(line)
            line.clear()
            skipping = False
            at = end + 1
            begin = source.offset - count + at
        if not skipping:
            line += buffer[at:count]
        if len(line) > LONGEST_LINE:
            health.add("line_too_long", "warning", "a line is too long and is skipped", offset=begin)
            skipping = True
            line.clear()
    if line.strip():
        yield begin, bytes(line)
