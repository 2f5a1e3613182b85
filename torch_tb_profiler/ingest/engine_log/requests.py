"""Collect what the lines of a server's log tell of each request.

    INFO 11-26 07:00:01 [logger.py:43] Received request cmpl-7: params: SamplingParams(...), lora_request: None.
    [2026-11-26 07:00:02] ReqTimeStats(rid=7f, input_len=38, output_len=9, type=unified): queue_duration=0.98ms,
        initial_prefill_elapsed=12.10ms, forward_duration=66.00ms, entry_time=1795676401.934
    [2026-11-26 07:00:02] Finish: obj=GenerateReqInput(rid='7f', ...), out={'meta_info': {'e2e_latency': 0.5, ...}}

A message is read only where it begins a line: prompts are text of others.

Sources: vLLM `entrypoints/logger.py`; SGLang `observability/req_time_stats.py`, `utils/request_logger.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.engine_log.lines import MILLISECOND, SECOND, Clock, JsonLine, LogLine, Stamp
from torch_tb_profiler.model.serving.requests import RequestRecord
from torch_tb_profiler.model.trace import MAX_RECORDING_NS

_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_TIME_STATS = lazy_regex(
    r"Req ?Time ?Stats\(rid=([^,()\s]{1,200}), (?:[^()]{0,200}, )?input[ _]len=(\d{1,9}), "
    r"(?:[^()]{0,80}, )?output[ _]len=(\d{1,9}), [^()]{0,80}type=(\w{1,16})\): (.{0,400})"
)
_DURATION = lazy_regex(rf"(\w+)[=(]{_NUMBER}(?:ms)?")
_VLLM_REQUEST = lazy_regex(r"(Received|Added) request ([^\s:]{1,200}?)(?:: |\.$|\.\s|$)")
_VLLM_RESPONSE = lazy_regex(r"Generated response (\S{1,200}?)(?: \(streaming (delta|complete)\))?: ")
_VLLM_END = lazy_regex(r"Finished request (\S{1,200}?)\.$|Request (\S{1,200}) (?:aborted|failed)\b")
_RECEIVE = lazy_regex(r"Receive: obj=\w+\(")
_FINISH = lazy_regex(r"Finish: obj=\w+\(")
_RID = lazy_regex(r"\brid='([^']{1,200})'")
_META_FIELD = lazy_regex(rf"'(\w+)': {_NUMBER}(?=[,}}])")


class _Request(msgspec.Struct):
    """A request whose lines are being collected; times since the epoch where they are ints, else stamps."""

    arrival: int | None = None
    received: Stamp | None = None
    ended: Stamp | None = None
    duration: int | None = None
    queue: int | None = None
    first_token: int | None = None
    first_line: Stamp | None = None
    prompt: int | None = None
    output: int | None = None


class LoggedRequests:
    """Collects what lines tell of requests until the zone of their clock is known."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._requests: dict[str, _Request] = {}
        self._added: dict[str, Stamp] = {}

    def add(self, line: LogLine) -> bool:
        """Add what a line tells; return whether it names a request or reports its end."""
        text, stamp = line.text, line.stamp
        if line.json is not None:
            return self._add_json(line.json, stamp)
        if match := _TIME_STATS.match(text):
            self._add_time_stats(match, stamp)
        elif match := _VLLM_REQUEST.match(text):
            if match[1] == "Received":
                self._request(match[2]).received = stamp
            else:
                self._added[match[2]] = stamp
        elif match := _VLLM_RESPONSE.match(text):
            self._add_response(match, stamp)
            return False
        elif match := _VLLM_END.match(text):
            if (request := self._requests.get(match[1] or match[2])) is not None:
                request.ended = stamp
            return False
        elif _RECEIVE.match(text):
            if rid := _RID.search(text):
                self._request(rid[1]).received = stamp
        elif _FINISH.match(text):
            at = text.rfind("'meta_info': {")  # what a prompt or an answer says comes before it
            if at >= 0 and (rid := _RID.search(text)):
                self._finish(rid[1], dict(_META_FIELD.findall(text[at:])), stamp)
        else:
            return False
        return True

    def _request(self, name: str) -> _Request:
        return self._requests.setdefault(name, _Request())

    def _add_time_stats(self, match: re.Match[str], stamp: Stamp) -> None:
        values = {name: float(value) for name, value in _DURATION.findall(match[5])}
        request = self._request(match[1])
        request.prompt, request.output = int(match[2]), int(match[3])
        queue, forward = _milliseconds(values.get("queue_duration")), _milliseconds(values.get("forward_duration"))
        prefill, entry = _milliseconds(values.get("initial_prefill_elapsed")), _seconds(values.get("entry_time"))
        if queue is None or forward is None:
            return
        request.queue = queue
        if prefill is not None and match[4] == "unified":
            request.first_token = queue + prefill
        # With prefill and decode on different servers, a request also waits for memory and its cache's transfer.
        spans = [_milliseconds(value) for name, value in values.items() if name.endswith("_duration")]
        request.duration, request.ended = sum(each or 0 for each in spans), stamp
        if entry is not None:
            request.arrival = entry
            self._clock.add_known_time(stamp, entry + request.duration)

    def _add_response(self, match: re.Match[str], stamp: Stamp) -> None:
        request = self._requests.get(match[1])
        if request is not None and match[2] == "delta":
            request.first_line = request.first_line or stamp
        elif request is not None:
            request.ended = stamp

    def _add_json(self, record: JsonLine, stamp: Stamp) -> bool:
        if record.event == "request.received":
            self._request(record.rid).received = stamp
        elif record.event == "request.finished":
            meta = record.out.get("meta_info")
            fields = meta.items() if isinstance(meta, dict) else ()
            self._finish(
                record.rid, {key: value for key, value in fields if isinstance(value, int | float)}, stamp
            )
        else:
            return False
        return True

    def _finish(self, name: str, meta: dict[str, Any], stamp: Stamp) -> None:
        request = self._request(name)
        received, finished = _seconds(meta.get("request_received_ts")), _seconds(meta.get("request_finished_ts"))
        first, whole = _seconds(meta.get("prefill_finished_ts")), _parse_duration(meta.get("e2e_latency"))
        request.prompt = _parse_count(meta.get("prompt_tokens"))
        request.output = _parse_count(meta.get("completion_tokens"))
        request.queue = _parse_duration(meta.get("queue_time")) if request.queue is None else request.queue
        request.ended = stamp
        if whole is not None:
            request.duration = whole
        if received is None:
            return
        request.arrival = received
        if first is not None and received <= first:
            request.first_token = first - received
        if finished is not None and received <= finished:
            request.duration = finished - received
        if request.duration is not None:
            self._clock.add_known_time(stamp, received + request.duration)

    def records(self, zone: int | None) -> Iterator[RequestRecord]:
        """Yield the requests whose arrival is known; `zone` is how many ns the server's clock is ahead of UTC."""
        requests = self._requests
        if not any(each.received for each in requests.values()):
            # vLLM names a request when it receives it and when it adds it: the second only where it stands alone.
            for name, stamp in self._added.items():
                requests.setdefault(name, _Request()).received = stamp
        for name, each in requests.items():
            if (record := _build_record(name, each, zone)) is not None:
                yield record


def _build_record(name: str, each: _Request, zone: int | None) -> RequestRecord | None:
    arrival, precision = each.arrival, 0
    received, ended, first = _at(each.received, zone), _at(each.ended, zone), _at(each.first_line, zone)
    if arrival is None and received is not None and each.received is not None:
        arrival, precision = received, each.received.precision
    elif arrival is None and ended is not None and each.duration is not None and each.ended is not None:
        arrival, precision = ended - each.duration, each.ended.precision
    if arrival is None:
        return None
    end = arrival + each.duration if each.duration is not None else ended
    first_token = each.first_token
    if first_token is None and first is not None and precision <= MILLISECOND:
        first_token = max(first - arrival, 0)
    if end is not None and not arrival <= end < arrival + MAX_RECORDING_NS:
        end = None
    return RequestRecord(
        name,
        arrival,
        end,
        queue_ns=each.queue,
        first_token_ns=first_token,
        prompt_tokens=each.prompt,
        output_tokens=each.output,
        arrival_precision_ns=precision,
    )


def _at(stamp: Stamp | None, zone: int | None) -> int | None:
    return None if stamp is None else stamp.at(zone)


def _parse_count(value: float | str | None) -> int | None:
    """Return a count, or None if it is none."""
    number = None if value is None else float(value)
    return int(number) if number is not None and 0 <= number < 2**53 else None


def _parse_duration(seconds: float | str | None) -> int | None:
    """Return a time in seconds as ns, or None if it is none."""
    value = None if seconds is None else round(float(seconds) * SECOND)
    return value if value is not None and 0 <= value < MAX_RECORDING_NS else None


def _milliseconds(value: float | None) -> int | None:
    return None if value is None else _parse_duration(value / 1000)


def _seconds(value: float | str | None) -> int | None:
    """Return seconds since the epoch as ns, or None if they are none: SGLang writes 0.0 for unknown."""
    moment = None if value is None else round(float(value) * 1000) * MILLISECOND
    return moment if moment is not None and 10**18 < moment < 2**62 else None
