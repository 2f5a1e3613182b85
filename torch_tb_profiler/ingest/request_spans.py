"""Read the requests in a file of OpenTelemetry spans, as the Collector's file exporter writes it.

    {"resourceSpans": [{"scopeSpans": [{"spans": [{
        "name": "llm_request", "startTimeUnixNano": "1795000000000000000", "endTimeUnixNano": "...",
        "attributes": [{"key": "gen_ai.latency.time_in_queue", "value": {"doubleValue": 0.012}}, ...]}]}]}]}

One JSON document, or one a line. The span of a request begins at its arrival; times in its attributes are seconds.

Sources: the OTLP/JSON encoding of the OpenTelemetry protocol; `SpanAttributes` in vLLM's `vllm/tracing`, and
`do_tracing` in its `v1/engine/output_processor.py`.
"""

from __future__ import annotations

import math
from typing import BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.ingest.runtime import ignore_progress
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.requests import RequestRecord
from torch_tb_profiler.model.trace import MAX_RECORDING_NS

REQUEST_SPAN = "llm_request"

MAX_DOCUMENT_BYTES = 256 * 2**20
"""Largest unpacked file of spans; a request takes about 1 KB."""

_PIECE_BYTES = 1 << 20
_MAX_EPOCH_NS = 2**62

_TIMES = {
    "gen_ai.latency.time_in_queue": "queue",
    "gen_ai.latency.time_to_first_token": "first_token",
    "gen_ai.latency.time_in_model_prefill": "prefill",
    "gen_ai.latency.e2e": "end_to_end",
}
_COUNTS = {
    "gen_ai.usage.prompt_tokens": "prompt",
    "gen_ai.usage.input_tokens": "prompt",
    "gen_ai.usage.completion_tokens": "output",
    "gen_ai.usage.output_tokens": "output",
}
_REQUEST_ID = "gen_ai.request.id"


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | None = None


class _Attribute(msgspec.Struct, frozen=True):
    key: str
    value: _Value = _Value()


class _Span(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    start_time_unix_nano: int | str = 0
    end_time_unix_nano: int | str = 0
    attributes: tuple[_Attribute, ...] = ()


class _ScopeSpans(msgspec.Struct, frozen=True):
    spans: tuple[_Span, ...] = ()


class _ResourceSpans(msgspec.Struct, frozen=True, rename="camel"):
    scope_spans: tuple[_ScopeSpans, ...] = ()


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    resource_spans: tuple[_ResourceSpans, ...]


_decoder = msgspec.json.Decoder(threadsafe(_Document))


def read_request_spans(stream: BinaryIO, *, size: int, health: HealthLog, limit: int = 0) -> list[RequestRecord]:
    """Return the requests in a file of spans, in file order; other spans are left out.

    Lines that aren't spans are skipped and noted. Raises TraceError if nothing in the file is one, TooLargeError
    if it holds more than `limit` bytes.
    """
    data = _read(stream, size, health, min(limit or MAX_DOCUMENT_BYTES, MAX_DOCUMENT_BYTES))
    documents, problem, unreadable = [], "", 0
    try:
        documents.append(_decoder.decode(data))
    except (msgspec.DecodeError, RecursionError) as error:
        problem = str(error)
        for line in filter(bytes.strip, data.splitlines()):
            try:
                documents.append(_decoder.decode(line))
            except (msgspec.DecodeError, RecursionError):
                unreadable += 1
    if not documents:
        raise TraceError(f"it holds no OpenTelemetry spans: {problem}")
    if unreadable:
        message = "a line that holds no OpenTelemetry spans was skipped"
        health.add("requests_unreadable", "warning", message, count=unreadable)
    spans = [
        span
        for each in documents
        for part in each.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]
    requests = [request for span in spans if (request := _request(span)) is not None]
    if not requests:
        raise TraceError(f"none of its {len(spans):,} spans is of a request (`{REQUEST_SPAN}`)")
    return requests


def _read(stream: BinaryIO, size: int, health: HealthLog, limit: int) -> bytes:
    source, data = UnpackedStream(stream, size, ignore_progress, health, limit), bytearray()
    piece = memoryview(bytearray(_PIECE_BYTES))
    while count := source.read_into(piece):
        data += piece[:count]
    return bytes(data)


def _request(span: _Span) -> RequestRecord | None:
    """Return the request of a span, or None if it is of something else or has no valid time."""
    times, counts, name = {}, {}, ""
    for attribute in span.attributes:
        value = attribute.value
        if attribute.key in _TIMES:
            times[_TIMES[attribute.key]] = _nanoseconds(value)
        elif attribute.key in _COUNTS:
            counts[_COUNTS[attribute.key]] = _integer(value.int_value)
        elif attribute.key == _REQUEST_ID:
            name = value.string_value or ""
    if span.name != REQUEST_SPAN and not times:
        return None
    start, end = _integer(span.start_time_unix_nano), _integer(span.end_time_unix_nano)
    if start is None or not 0 < start < _MAX_EPOCH_NS:
        return None
    # A span may end later than its request, when the engine gets to it.
    if (whole := times.get("end_to_end")) is not None:
        end = start + whole
    if end is None or not start <= end < start + MAX_RECORDING_NS:
        return None
    return RequestRecord(
        name or REQUEST_SPAN,
        start,
        end,
        queue_ns=times.get("queue"),
        first_token_ns=times.get("first_token"),
        prefill_ns=times.get("prefill"),
        prompt_tokens=counts.get("prompt"),
        output_tokens=counts.get("output"),
    )


def _nanoseconds(value: _Value) -> int | None:
    """Return a time in seconds as ns, or None if it is no time."""
    seconds = value.double_value if value.double_value is not None else _integer(value.int_value)
    if seconds is None or not math.isfinite(seconds) or not 0 <= seconds < MAX_RECORDING_NS / 1e9:
        return None
    return round(seconds * 1e9)


def _integer(value: int | str | None) -> int | None:
    """Return an int64 of JSON, which OTLP writes as text, or None if it is none."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= 19 else None
    return value if value is not None and 0 <= value < 2**63 else None
