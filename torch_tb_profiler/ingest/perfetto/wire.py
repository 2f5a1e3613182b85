"""Protobuf as bytes: the fields of a message, and the packets of a trace as they are read.

Only the fields that are shown are decoded, a message at a time; nested ones stay bytes until they are asked for,
so a message nested a million times costs nothing. The generated classes of Perfetto's own package would bind this
one to their version of protobuf, which TensorBoard binds as well.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog

LONGEST_PACKET = 64 << 20
"""Bytes; the tracing service writes packets of at most some megabytes."""

MOST_INFLATED = 4 << 30
"""Bytes that compressed packets may hold in all."""

_PIECE = 1 << 20
_PACKET = 0x0A
"""Field 1 of the message Trace, with a length."""

_COMPRESSED = 50
"""Field of a packet: further packets, deflated."""

Fields = list[tuple[int, int | bytes]]


def fields(message: bytes) -> Fields:
    """(number, value) of the fields of a message in its order: integers (of 4 and 8 bytes, too) and bytes.

    Raises TraceError where it is damaged.
    """
    found: Fields = []
    at, end = 0, len(message)
    while at < end:
        tag, at = varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(message, at)
            found.append((tag >> 3, value))
            continue
        if kind == 2:
            size, at = varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise TraceError("a packet is damaged: a field of no known kind")
        if size > end - at:
            raise TraceError("a packet is damaged: a field reaches over its end")
        part = message[at : at + size]
        found.append((tag >> 3, part if kind == 2 else int.from_bytes(part, "little")))
        at += size
    return found


def varint(message: bytes | bytearray, at: int) -> tuple[int, int]:
    """(number, where it ends); TraceError if it does not end."""
    number = shift = 0
    try:
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift > 63:
                raise TraceError("a packet is damaged: a number does not end")
    except IndexError:
        raise TraceError("a packet is damaged: it ends inside a number") from None


def signed(number: int) -> int:
    """An int64 that a varint holds."""
    return number - 2**64 if number >= 2**63 else number


def packets(source: Source, health: HealthLog) -> Iterator[Fields]:
    """The packets of a trace, those that are compressed unpacked; damaged ones are noted and left out."""
    inflated = 0
    for packet in _stored(source, health):
        try:
            read = fields(packet)
        except TraceError as error:
            health.add("skipped_event", "error", error.message)
            continue
        yield read
        for number, value in read:
            if number == _COMPRESSED and isinstance(value, bytes):
                inner = _inflate(value)
                inflated += len(inner or b"")
                if inner is None or inflated > MOST_INFLATED:
                    health.add("skipped_event", "error", "compressed packets are damaged or too large; left out")
                    continue
                yield from _inner(inner, health)


def _inner(content: bytes, health: HealthLog) -> Iterator[Fields]:
    """Compressed packets hold no further compressed ones."""
    try:
        for number, packet in fields(content):
            if number == 1 and isinstance(packet, bytes):
                yield fields(packet)
    except TraceError as error:
        health.add("skipped_event", "error", error.message)


def _inflate(packed: bytes) -> bytes | None:
    """None if it is damaged or larger than any packet."""
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(packed, LONGEST_PACKET)
    except zlib.error:
        return None
    return content if inflate.eof else None


def _stored(source: Source, health: HealthLog) -> Iterator[bytes]:
    buffer, piece, at = bytearray(), bytearray(_PIECE), 0
    while count := source.read_into(memoryview(piece)):
        del buffer[:at]
        at = 0
        buffer += memoryview(piece)[:count]
        while (packet := _next(buffer, at)) is not None:
            begin, at = packet
            yield bytes(memoryview(buffer)[begin:at])
        if len(buffer) - at > LONGEST_PACKET:
            health.add("endless_packet", "error", "a packet does not end; what came before is shown")
            return
    if at < len(buffer):
        health.add("truncated", "error", "the file ends too early or is damaged; what came before is shown")


def _next(buffer: bytearray, at: int) -> tuple[int, int] | None:
    """(begin, end) of the packet that begins here; None if it is not complete (or none begins here)."""
    if len(buffer) - at < 2 or buffer[at] != _PACKET:
        return None
    try:
        size, begin = varint(buffer, at + 1)
    except TraceError:
        return None
    return (begin, begin + size) if begin + size <= len(buffer) else None
