"""An open chrome trace to a Trace. One module per step: bytes, layout, events, columns."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.gc import without_gc
from torch_tb_profiler.ingest.kineto import native
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.columns import MAX_ARGUMENTS, Columns
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.ingest.kineto.document import read_document
from torch_tb_profiler.ingest.kineto.native.decode import NativeDecoder
from torch_tb_profiler.ingest.kineto.part import PartColumns, StartColumns, Window
from torch_tb_profiler.ingest.kineto.repair import Salvage
from torch_tb_profiler.ingest.progress import Progress, Report, ignore
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace


def read_chrome_trace(stream: BinaryIO, *, size: int = 0, report: Report = ignore, limit: int = 0) -> Trace:
    """Read a Kineto chrome trace, plain or gzip, of any generation.

    stream  open for reading in binary; read forward once, in pieces
    size    stored bytes, for the progress (0 if unknown)
    limit   bytes of JSON that may be read, 0 for any number

    Everything that can be read is in the trace; what was skipped or repaired is said in `Trace.health`.
    Raises TraceError if the file holds no list of events, TooLargeError as soon as it is known that the file
    holds more than `limit`; errors of the stream itself pass through.
    """
    health, columns = HealthLog(), Columns()
    library = native.load()
    with without_gc():
        decoder = BlockDecoder(columns) if library is None else NativeDecoder(columns, library)
        metadata = _read(stream, decoder, columns, health, size, report, limit)
        arranging = partial(report, Progress("arranging", size, size, columns.length))
        arranging()
        return assemble(columns, metadata, health, arranging)


def collect_events(
    stream: BinaryIO, columns: Columns, health: HealthLog, *, report: Report = ignore, limit: int = 0
) -> dict[str, Any]:
    """Append the events of a chrome trace to columns that may hold those of another; returns its metadata."""
    with without_gc():
        return _read(stream, BlockDecoder(columns), columns, health, 0, report, limit)


def read_metadata(stream: BinaryIO, *, report: Report = ignore, limit: int = 0) -> dict[str, Any]:
    """What stands around the events of a chrome trace, which are passed over."""
    health = HealthLog()
    source = Source(stream, 0, report, health, limit)
    return read_document(source, health, lambda block: True, lambda text, offset, final: None)


def find_start(stream: BinaryIO, *, size: int = 0, report: Report = ignore) -> int:
    """When the trace starts, ns in the file's clock (`Trace.trace_start_ns`), in memory that does not grow.

    Raises TraceError if no event of the file has a time.
    """
    columns = StartColumns()
    with without_gc():
        _read(stream, BlockDecoder(columns), columns, HealthLog(), size, report, 0)
    if columns.start is None:
        raise TraceError("no event of the trace has a time")
    return columns.start


def read_part(
    stream: BinaryIO, window: Window, *, size: int = 0, report: Report = ignore, max_events: int
) -> Trace:
    """Like `read_chrome_trace`, but only of events that touch a window; memory grows with what is kept.

    Raises TooLargeError if that is more than `max_events`.
    """
    health, columns = HealthLog(), PartColumns(window, max_events)
    with without_gc():
        metadata = _read(stream, BlockDecoder(columns), columns, health, size, report, 0)
        return assemble(columns, metadata, health)


def _read(
    stream: BinaryIO,
    decoder: BlockDecoder,
    columns: Columns,
    health: HealthLog,
    size: int,
    report: Report,
    limit: int,
) -> dict[str, Any]:
    """All events of a file into the `columns` of `decoder`; returns the metadata around them."""
    source = Source(stream, size, report, health, limit)

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

    def damaged(text: bytes, offset: int, final: bool) -> str | None:
        salvage = Salvage(text, offset, health, final=final)
        note(decoder.add_objects(salvage.events))
        return salvage.rest

    metadata = read_document(source, health, add, damaged, decoder.ahead(note))
    decoder.finish()
    if columns.dropped:
        message = f"arguments beyond the first {MAX_ARGUMENTS:,} keys were left out"
        health.add("too_many_arguments", "warning", message, count=columns.dropped)
    return metadata


def _note_strays(count: int, health: HealthLog) -> None:
    if count:
        health.add("not_an_event", "warning", "entries of the event list that are no objects", count=count)
