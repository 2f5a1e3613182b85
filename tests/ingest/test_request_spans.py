"""Requests in OpenTelemetry spans: what each field becomes, and what is left out."""

from __future__ import annotations

import gzip
import io

import pytest

from tests.support.spans import request_span, spans_document
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest.request_spans import read_request_spans
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.requests import RequestRecord

BEGIN = 1_795_000_000_000_000_000
MS = 1_000_000
WHOLE = request_span(
    BEGIN,
    BEGIN + 500 * MS,
    request__id="cmpl-7",
    latency__time_in_queue=0.012,
    latency__time_to_first_token=0.08,
    latency__time_in_model_prefill=0.066,
    latency__e2e=0.4,
    usage__prompt_tokens=300,
    usage__completion_tokens=20,
)
OTHER = request_span(BEGIN, BEGIN + 1, span="Load model")


def read(content: str | bytes, limit: int = 0) -> tuple[list[RequestRecord], HealthLog]:
    data, health = content.encode() if isinstance(content, str) else content, HealthLog()
    return read_request_spans(io.BytesIO(data), size=len(data), health=health, limit=limit), health


def test_a_span_is_a_request_with_its_times_and_counts() -> None:
    (request,), health = read(spans_document(OTHER, WHOLE))
    assert request == RequestRecord(
        "cmpl-7",
        BEGIN,
        BEGIN + 400 * MS,
        queue_ns=12 * MS,
        first_token_ns=80 * MS,
        prefill_ns=66 * MS,
        prompt_tokens=300,
        output_tokens=20,
    )
    assert not health.notes()


def test_what_a_span_does_not_say_is_unknown() -> None:
    (request,), _ = read(spans_document(request_span(BEGIN, BEGIN + MS)))
    assert request == RequestRecord("llm_request", BEGIN, BEGIN + MS)


@pytest.mark.parametrize("seconds", [-1.0, 1e300, "0.5"])
def test_a_time_that_is_none_is_unknown(seconds: float | str) -> None:
    (request,), _ = read(spans_document(request_span(BEGIN, BEGIN + MS, latency__time_in_queue=seconds)))
    assert request.queue_ns is None and request.end_ns == BEGIN + MS


def test_a_document_a_line_and_a_damaged_line_is_noted() -> None:
    lines = "\n".join([spans_document(WHOLE), '{"resourceSpans": [', "", spans_document(WHOLE, OTHER)])
    for content in (lines, gzip.compress(lines.encode())):
        requests, health = read(content)
        assert len(requests) == 2
        assert [(note.kind, note.count) for note in health.notes()] == [("requests_unreadable", 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"traceEvents": []}', "no OpenTelemetry spans"),
        ("[" * 5000, "no OpenTelemetry spans"),
        (spans_document(OTHER), "none of its 1 spans is of a request"),
        (spans_document(request_span(BEGIN, BEGIN - 1)), "none of its 1 spans"),
        (spans_document(request_span(0, BEGIN)), "none of its 1 spans"),
    ],
)
def test_a_file_without_requests_says_so(content: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(content)


def test_a_file_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TooLargeError):
        read(spans_document(WHOLE), limit=100)
