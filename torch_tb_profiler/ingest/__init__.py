"""An open file to a Trace. One module per step: bytes, layout, events, columns."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import msgspec

from torch_tb_profiler.ingest.assemble import assemble
from torch_tb_profiler.ingest.columns import Columns
from torch_tb_profiler.ingest.decode import BlockDecoder
from torch_tb_profiler.ingest.document import read_document
from torch_tb_profiler.ingest.progress import Progress, Report, ignore
from torch_tb_profiler.ingest.repair import Salvage
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace

__all__ = ["Progress", "Report", "ignore", "read_trace"]


def read_trace(stream: BinaryIO, *, size: int = 0, report: Report = ignore) -> Trace:
    """Read a Kineto chrome trace, plain or gzip, of any generation.

    stream  open for reading in binary; read forward once, in pieces
    size    stored bytes, for the progress (0 if unknown)

    Everything that can be read is in the trace; what was skipped or repaired stands in `Trace.health`.
    Raises TraceError if the file holds no list of events; errors of the stream itself pass through.
    """
    health = HealthLog()
    columns = Columns()
    decoder = BlockDecoder(columns)
    source = Source(stream, size, report, health)

    def add(block: bytes | memoryview) -> bool:
        try:
            strays = decoder.add(block)
        except (msgspec.DecodeError, json.JSONDecodeError, UnicodeDecodeError):
            return False
        _note_strays(strays, health)
        source.events = columns.length
        return True

    def damaged(text: bytes, offset: int, final: bool) -> str | None:
        salvage = Salvage(text, offset, health, final=final)
        _note_strays(decoder.add_objects(salvage.events), health)
        source.events = columns.length
        return salvage.rest

    with _without_gc():
        metadata = read_document(source, health, add, damaged)
        report(Progress("arranging", size, size, columns.length))
        return assemble(columns, metadata, health)


def _note_strays(count: int, health: HealthLog) -> None:
    if count:
        health.add("not_an_event", "warning", "entries of the event list that are no objects", count=count)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Millions of short-lived structs without cycles: the collector would only walk over them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
