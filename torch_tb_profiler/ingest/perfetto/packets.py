"""The packets of a trace as they are read, thousands at a time; compressed ones unpacked, with bounds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.perfetto.content import Content
from torch_tb_profiler.ingest.perfetto.wire import varint
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Int64

LONGEST_PACKET = 64 << 20
"""Bytes; the tracing service writes packets of at most some megabytes."""

MOST_INFLATED = 4 << 30
"""Bytes that compressed packets may hold in all."""

_PIECE = 1 << 21
_PACKET = 0x0A
"""Field 1 of the message Trace, with a length."""

_COMPRESSED = b"\x92\x03"
"""Field 50 of a packet, with a length: further packets, deflated. Their writer writes nothing beside it."""

Batch = tuple[Content, Int64, Int64]
"""Bytes, and where in them packets begin and how long they are."""


def batches(source: Source, health: HealthLog) -> Iterator[Batch]:
    """All packets of a trace, in its order. An end that is cut off or damaged is noted."""
    unpack, rest = _Unpack(health), b""
    piece = bytearray(_PIECE)
    while count := _fill(source, piece):
        content = rest + piece[:count]
        begins, ends, at = _cut(content)
        yield from unpack.batches(content, begins, ends)
        rest = content[at:]
        if len(rest) > LONGEST_PACKET:
            health.add("endless_packet", "error", "a packet does not end; what came before is shown")
            return
    if rest:
        health.add("truncated", "error", "the file ends too early or is damaged; what came before is shown")


def _fill(source: Source, piece: bytearray) -> int:
    done, view = 0, memoryview(piece)
    while done < len(piece) and (count := source.read_into(view[done:])):
        done += count
    return done


def _cut(content: bytes) -> tuple[list[int], list[int], int]:
    """(begins, ends) of the complete packets at the front, and where the last one ends."""
    begins: list[int] = []
    ends: list[int] = []
    at, end = 0, len(content)
    while at + 1 < end and content[at] == _PACKET:
        size, begin = content[at + 1], at + 2
        if size > 0x7F:
            try:
                size, begin = varint(content, at + 1)
            except TraceError:
                break
        if size > end - begin:
            break
        at = begin + size
        begins.append(begin)
        ends.append(at)
    return begins, ends, at


class _Unpack:
    def __init__(self, health: HealthLog) -> None:
        self._health = health
        self._inflated = 0

    def batches(self, content: bytes, begins: list[int], ends: list[int]) -> Iterator[Batch]:
        """Those of the packets, the packets in compressed ones in their place."""
        first = 0
        if _COMPRESSED in content:
            for number, begin in enumerate(begins):
                if content.startswith(_COMPRESSED, begin, ends[number]):
                    yield from _batch(content, begins[first:number], ends[first:number])
                    yield from self._inside(content[begin : ends[number]])
                    first = number + 1
        yield from _batch(content, begins[first:], ends[first:])

    def _inside(self, packet: bytes) -> Iterator[Batch]:
        """Compressed packets hold no further compressed ones."""
        inner = None
        try:
            size, at = varint(packet, len(_COMPRESSED))
            inner = _inflate(packet[at : at + size])
        except TraceError:
            pass  # as one that cannot be inflated
        self._inflated += len(inner or b"")
        if inner is None or self._inflated > MOST_INFLATED:
            self._health.add("skipped_event", "error", "compressed packets are damaged or too large; left out")
            return
        begins, ends, at = _cut(inner)
        if at < len(inner):
            self._health.add("skipped_event", "error", "compressed packets are damaged; what came before is shown")
        yield from _batch(inner, begins, ends)


def _batch(content: bytes, begins: list[int], ends: list[int]) -> Iterator[Batch]:
    if begins:
        at = np.array(begins, np.int64)
        yield Content(content), at, np.array(ends, np.int64) - at


def _inflate(packed: bytes) -> bytes | None:
    """None if it is damaged or larger than any packet."""
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(packed, LONGEST_PACKET)
    except zlib.error:
        return None
    return content if inflate.eof else None
