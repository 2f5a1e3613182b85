"""The packets of a file, thousands at a time, handed to the reader of whoever wrote them.

Compressed packets are unpacked, with bounds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Protocol

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.perfetto.clocks import BOOT, REAL, SNAPSHOT, PacketClocks, parse_snapshot
from torch_tb_profiler.ingest.perfetto.interned import InternedTexts
from torch_tb_profiler.ingest.perfetto.protobuf import MessageBuffer, MessageFields, read_varint, to_signed
from torch_tb_profiler.ingest.runtime import Progress, Report, ReportStep, without_gc
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Int64, Trace

MAX_PACKET_BYTES = 64 << 20
"""Longest packet in bytes; the tracing service writes packets of a few megabytes at most."""

MAX_INFLATED_BYTES = 4 << 30
"""Most bytes that compressed packets may unpack to in total."""

TRACK_EVENT, TRACK_DESCRIPTOR = 11, 60
"""Fields of a packet."""

EVENT_ANNOTATIONS, EVENT_TYPE, EVENT_TRACK = 4, 9, 11
EVENT_CATEGORY, EVENT_NAME = (3, 22), (10, 23)
"""Fields of a track event; a text is the number of an interned one, or spelled out."""

SLICE_BEGIN, SLICE_END, SAMPLE = 1, 2, 4
"""Types of track events."""

_PIECE_BYTES = 1 << 21
_PACKET = 0x0A
"""Tag of field 1 of the message Trace, length-delimited."""

_COMPRESSED = b"\x92\x03"
"""Tag of field 50 of a packet, length-delimited: further packets, deflated. Such packets hold nothing else."""

Batch = tuple[MessageBuffer, Int64, Int64]
"""A buffer, and the offsets and lengths of the packets in it."""


@dataclass(frozen=True)
class Packets:
    """k packets that lie in `content`.

    time        int64[k]  ns since boot, ABSENT where missing or of a clock with no relation to the boot
    generation  int64[k]  generation of the interned texts that they refer to
    """

    content: MessageBuffer
    fields: MessageFields
    time: Int64
    generation: Int64

    def parts(self, number: int) -> tuple[Int64, Int64, Int64]:
        """Return (packet, offset, length) of the messages in this field of undamaged packets, in packet order."""
        packet, at, size = self.fields.parts(number)
        undamaged = np.flatnonzero(~self.fields.damaged[packet])
        undamaged = undamaged[np.argsort(packet[undamaged], kind="stable")]
        return packet[undamaged], at[undamaged], size[undamaged]

    def messages(self, number: int) -> Iterator[bytes]:
        """Yield the bytes of the messages in this field of undamaged packets, in packet order."""
        _, at, size = self.parts(number)
        content = self.content.content
        for begin, length in zip(at.tolist(), size.tolist(), strict=True):
            yield content[begin : begin + length]


class PacketReader(Protocol):
    """A consumer of packets that builds a trace; `add` returns how many messages are damaged."""

    columns: EventColumns
    interned: InternedTexts

    def add(self, packets: Packets) -> int: ...

    def finish(self, health: HealthLog, base_ns: int | None, step: ReportStep) -> Trace:
        """Return the trace; `base_ns` leads from the packets' time since boot to the epoch."""
        ...


def read_packets(reader: PacketReader, stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read all packets of a file into a trace.

    Raises TraceError if the file has no event, TooLargeError if it holds more than `limit` bytes.
    """
    health = HealthLog()
    source = UnpackedStream(stream, size, report, health, limit)
    base_ns: int | None = None
    clocks = PacketClocks()
    with without_gc():
        for content, at, length in read_batches(source, health):
            read = content.parse_fields(at, length)
            generation = reader.interned.enter(content, read, at, length)
            packets = Packets(content, read, clocks.times(content, read, at, length), generation)
            if base_ns is None:
                base_ns = _epoch_offset(packets)
            damaged = reader.add(packets) + int(np.count_nonzero(read.damaged))
            if damaged:
                health.add("skipped_event", "error", "damaged packets are left out", count=damaged)
            source.events = reader.columns.length
        arranging = partial(report, Progress("arranging", size, size, reader.columns.length))
        arranging()
        return reader.finish(health, base_ns, arranging)


def _epoch_offset(packets: Packets) -> int | None:
    """Return epoch time minus time since boot if a clock snapshot has both, else None."""
    for snapshot in packets.messages(SNAPSHOT):
        try:
            readings = parse_snapshot(snapshot)
        except TraceError:
            continue  # no event depends on this snapshot
        if BOOT in readings and REAL in readings:
            return to_signed(readings[REAL][2] % 2**64) - to_signed(readings[BOOT][2] % 2**64)
    return None


def read_batches(source: UnpackedStream, health: HealthLog) -> Iterator[Batch]:
    """Yield all packets of a trace in order; note a truncated or damaged end."""
    unpacker, rest = _PacketUnpacker(health), b""
    piece = bytearray(_PIECE_BYTES)
    while count := _fill(source, piece):
        content = rest + piece[:count]
        begins, ends, at = _find_packets(content)
        yield from unpacker.batches(content, begins, ends)
        rest = content[at:]
        if len(rest) > MAX_PACKET_BYTES:
            health.add("endless_packet", "error", "a packet never ends; only what precedes it is shown")
            return
    if rest:
        health.add(
            "truncated", "error", "the file is truncated or damaged; only what precedes the damage is shown"
        )


def _fill(source: UnpackedStream, piece: bytearray) -> int:
    """Fill `piece` from its front; return how many bytes were read, fewer only at the end."""
    done, view = 0, memoryview(piece)
    while done < len(piece) and (count := source.read_into(view[done:])):
        done += count
    return done


def _find_packets(content: bytes) -> tuple[list[int], list[int], int]:
    """Return (begins, ends) of the complete packets at the front, and where the last one ends."""
    begins: list[int] = []
    ends: list[int] = []
    at, end = 0, len(content)
    while at + 1 < end and content[at] == _PACKET:
        size, begin = content[at + 1], at + 2
        if size > 0x7F:
            try:
                size, begin = read_varint(content, at + 1)
            except TraceError:
                break
        if size > end - begin:
            break
        at = begin + size
        begins.append(begin)
        ends.append(at)
    return begins, ends, at


class _PacketUnpacker:
    """Unpacks compressed packets, up to MAX_INFLATED_BYTES in total."""

    def __init__(self, health: HealthLog) -> None:
        self._health = health
        self._inflated = 0

    def batches(self, content: bytes, begins: list[int], ends: list[int]) -> Iterator[Batch]:
        """Yield the packets in order, with compressed ones replaced by what they contain."""
        first = 0
        if _COMPRESSED in content:
            for number, begin in enumerate(begins):
                if content.startswith(_COMPRESSED, begin, ends[number]):
                    yield from _make_batch(content, begins[first:number], ends[first:number])
                    yield from self._inner_batches(content[begin : ends[number]])
                    first = number + 1
        yield from _make_batch(content, begins[first:], ends[first:])

    def _inner_batches(self, packet: bytes) -> Iterator[Batch]:
        """Yield the packets inside a compressed one; they aren't compressed again."""
        inner = None
        try:
            size, at = read_varint(packet, len(_COMPRESSED))
            inner = _inflate(packet[at : at + size])
        except TraceError:
            pass  # treated like one that can't be inflated
        self._inflated += len(inner or b"")
        if inner is None or self._inflated > MAX_INFLATED_BYTES:
            self._health.add("skipped_event", "error", "compressed packets are damaged or too large; left out")
            return
        begins, ends, at = _find_packets(inner)
        if at < len(inner):
            self._health.add(
                "skipped_event", "error", "compressed packets are damaged; only what precedes the damage is shown"
            )
        yield from _make_batch(inner, begins, ends)


def _make_batch(content: bytes, begins: list[int], ends: list[int]) -> Iterator[Batch]:
    """Yield one batch of these packets, or none if there are no packets."""
    if begins:
        at = np.array(begins, np.int64)
        yield MessageBuffer(content), at, np.array(ends, np.int64) - at


def _inflate(packed: bytes) -> bytes | None:
    """Inflate a packet; return None if it is damaged or larger than any packet."""
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(packed, MAX_PACKET_BYTES)
    except zlib.error:
        return None
    return content if inflate.eof else None
