"""Files of OpenTelemetry spans, as the Collector's file exporter writes those of vLLM."""

from __future__ import annotations

import json
from typing import Any


def attribute(key: str, value: float | str) -> dict[str, Any]:
    if isinstance(value, str):
        return {"key": key, "value": {"stringValue": value}}
    # int64 is text in OTLP/JSON.
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}}


def request_span(
    start_ns: int, end_ns: int, *, span: str = "llm_request", **attributes: float | str
) -> dict[str, Any]:
    """Return a span; `attributes` with `__` for dots: latency__time_in_queue=0.012 (seconds)."""
    listed = [attribute(f"gen_ai.{key.replace('__', '.')}", value) for key, value in attributes.items()]
    times = {"startTimeUnixNano": str(start_ns), "endTimeUnixNano": str(end_ns)}
    return {"name": span, "kind": 2, **times, "attributes": listed}


def spans_document(*spans: dict[str, Any]) -> str:
    """Return one line of the exporter's file."""
    scope = {"scope": {"name": "vllm.llm_engine"}, "spans": list(spans)}
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]})
