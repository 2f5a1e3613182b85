"""Read an open chrome trace into a Trace; one module per step: bytes, document, events, columns."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.memory import growing_in_place
from torch_tb_profiler.ingest.kineto import native
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.columns import MAX_ARGUMENT_KEYS, EventColumns
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.ingest.kineto.document import read_document
from torch_tb_profiler.ingest.kineto.native.decode import NativeDecoder
from torch_tb_profiler.ingest.runtime import Progress, Report, ignore_progress, without_gc
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace

if TYPE_CHECKING:
    from torch_tb_profiler.ingest.kineto.part import PartWindow


def read_chrome_trace(
    stream: BinaryIO, *, size: int = 0, report: Report = ignore_progress, limit: int = 0
) -> Trace:
    """Read a Kineto chrome trace, plain or gzip, of any generation.

    stream  open for reading in binary; read forward once, in pieces
    size    stored bytes, for the progress (0 if unknown)
    limit   bytes of JSON that may be read, 0 for any number

    Everything that can be read is in the trace; `Trace.health` lists what was skipped or repaired.
    Raises TraceError if the file holds no list of events, and TooLargeError as soon as it is
    known to hold more than `limit` bytes; errors of the stream itself pass through.
    """
    health, columns = HealthLog(), EventColumns()
    library = native.load_library()
    with without_gc():
        decoder = BlockDecoder(columns) if library is None else NativeDecoder(columns, library)
        with growing_in_place():
            metadata = _read_events(stream, decoder, columns, health, size, report, limit)
        arranging = partial(report, Progress("arranging", size, size, columns.length))
        arranging()
        return assemble(columns, metadata, health, arranging)


def collect_events(
    stream: BinaryIO, columns: EventColumns, health: HealthLog, *, report: Report = ignore_progress, limit: int = 0
) -> dict[str, Any]:
    """Append the events of a chrome trace to columns that may hold those of another; return its metadata."""
    with without_gc():
        return _read_events(stream, BlockDecoder(columns), columns, health, 0, report, limit)


def read_metadata(stream: BinaryIO, *, report: Report = ignore_progress, limit: int = 0) -> dict[str, Any]:
    """Return the metadata of a chrome trace, skipping its events."""
    health = HealthLog()
    source = UnpackedStream(stream, 0, report, health, limit)
    return read_document(source, health, lambda block: True, lambda text, offset, final: None)


def find_start(stream: BinaryIO, *, size: int = 0, report: Report = ignore_progress) -> int:
    """Return when the trace starts, ns in the file's clock (`Trace.trace_start_ns`), in constant memory.

    Raises TraceError if no event of the file has a time.
    """
    from torch_tb_profiler.ingest.kineto.part import StartColumns

    columns = StartColumns()
    with without_gc():
        _read_events(stream, BlockDecoder(columns), columns, HealthLog(), size, report, 0)
    if columns.start is None:
        raise TraceError("no event of the trace has a start time")
    return columns.start


def read_part(
    stream: BinaryIO, window: PartWindow, *, size: int = 0, report: Report = ignore_progress, max_events: int
) -> Trace:
    """Read only the events that overlap `window`, as `read_chrome_trace` does; memory grows with what is kept.

    Raises TooLargeError if more than `max_events` are kept.
    """
    from torch_tb_profiler.ingest.kineto.part import PartColumns

    health, columns = HealthLog(), PartColumns(window, max_events)
    with without_gc():
        metadata = _read_events(stream, BlockDecoder(columns), columns, health, size, report, 0)
        return assemble(columns, metadata, health)


def _read_events(
    stream: BinaryIO,
    decoder: BlockDecoder,
    columns: EventColumns,
    health: HealthLog,
    size: int,
    report: Report,
    limit: int,
) -> dict[str, Any]:
    """Read all events of a file into the `columns` of `decoder`; return the metadata around them."""
    source = UnpackedStream(stream, size, report, health, limit)

    def add(block: bytes | memoryview) -> bool:
        try:
            strays = decoder.add(block)
        except (msgspec.DecodeError, json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            return False
        note(strays)
        return True

    def note(strays: int) -> None:
        _note_strays(strays, health)
        source.events = decoder.events

    def salvage_events(text: bytes, offset: int, final: bool) -> str | None:
        from torch_tb_profiler.ingest.kineto.repair import EventSalvage  # few files are damaged

        salvage = EventSalvage(text, offset, health, final=final)
        note(decoder.add_objects(salvage.events))
        return salvage.rest

    metadata = read_document(source, health, add, salvage_events, decoder.create_read_ahead(note))
    decoder.finish()
    if columns.dropped:
        message = f"arguments beyond the first {MAX_ARGUMENT_KEYS:,} keys are left out"
        health.add("too_many_arguments", "warning", message, count=columns.dropped)
    return metadata


def _note_strays(count: int, health: HealthLog) -> None:
    if count:
        health.add("not_an_event", "warning", "entries of the event list are not objects; skipped", count=count)
