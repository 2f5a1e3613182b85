"""Read what the log of a vLLM or SGLang server says of its requests and its queue.

    INFO 11-26 07:00:01 [loggers.py:259] Engine 000: Avg prompt throughput: 98.0 tokens/s, Avg generation
        throughput: 19.4 tokens/s, Running: 4 reqs, Waiting: 1 reqs, GPU KV cache usage: 64.6%, ...
    INFO 11-26 07:00:01 [logger.py:43] Received request cmpl-7: params: SamplingParams(...), lora_request: None.
    [2026-11-26 07:00:01 TP0] Decode batch, #running-req: 4, #token: 512, token usage: 0.65, #queue-req: 1
    [2026-11-26 07:00:02] ReqTimeStats(rid=7f, input_len=38, output_len=9, type=unified): queue_duration=0.98ms,
        initial_prefill_elapsed=12.10ms, forward_duration=66.00ms, entry_time=1795676401.934

Lines carry the server's local time, most without the year, the time zone, or fractions of a second. A line that
also has a time since the epoch gives the zone; so does the line that reports the start of the profiler, because
the trace starts then, too. A message is read only where it begins a line: prompts are text of others.

Sources: vLLM `v1/metrics/loggers.py`, `v1/engine/core.py`, `entrypoints/logger.py`, `logger.py`; SGLang
`managers/scheduler_metrics_mixin.py`, `observability/req_time_stats.py`, `utils/request_logger.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.runtime import ignore_progress
from torch_tb_profiler.ingest.source import UnpackedStream, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.queue import QueueSample
from torch_tb_profiler.model.serving.requests import RequestRecord
from torch_tb_profiler.model.trace import MAX_RECORDING_NS

MAX_LOG_BYTES = 2**30
"""Largest unpacked log."""

ZONE_STEP_NS = 900 * 10**9
"""Time zones differ from UTC by multiples of 15 minutes."""

MAX_START_DELAY_NS = 60 * 10**9
"""Between the line that says that the profiler starts and the first event of its trace pass fewer ns than this."""

NEAR_NS = 36 * 3600 * 10**9
"""Lines further from the trace's begin than this are of no use in any zone."""

_SECOND, _MILLISECOND = 10**9, 10**6
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_COLOR = lazy_regex(r"\x1b\[[0-9;]*m")
_COLLECTED = lazy_regex(r"^(?:\d+\s)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:\d\d)\s+")
"""What `docker logs --timestamps` and `kubectl logs --timestamps` put before a line: a time with its zone."""
_CLOCK = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_VLLM = lazy_regex(
    rf"^(?:\d+: )?(?:\([^()]{{1,80}}\) )?(?:DEBUG|INFO|WARNING) (\d\d)-(\d\d) {_CLOCK} (?:\[?[^\]\s]{{1,80}}\] )"
)
_SGLANG = lazy_regex(rf"^\[(\d{{4}})-(\d\d)-(\d\d) {_CLOCK}((?: [A-Z_]+\d+){{0,8}})\] ")
_ISO = lazy_regex(rf"^(\d{{4}})-(\d\d)-(\d\d)T{_CLOCK}$")

_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_THROUGHPUT = lazy_regex(
    rf"(?:Engine (\d{{1,6}}): )?Avg prompt throughput: {_NUMBER} tokens/s, "
    rf"Avg generation throughput: {_NUMBER} tokens/s, Running: (\d{{1,9}}) reqs, (.{{0,400}})"
)
_VLLM_QUEUE = lazy_regex(r"(?:Waiting|Pending): (\d{1,9}) reqs")
_VLLM_CACHE = lazy_regex(rf"GPU KV cache usage: {_NUMBER}%")
_ITERATION = lazy_regex(
    r"(?:Engine (\d{1,6}): )?Iteration\(\d{1,12}\): (\d{1,9}) context requests, \d{1,12} context tokens, "
    r"(\d{1,9}) generation requests, \d{1,12} generation tokens, (.{0,200})"
)
_BATCH = lazy_regex(r"(?:Decode|Prefill) batch\b.{0,20}?(#.{0,600})")
_BATCH_FIELD = lazy_regex(rf"(#[a-z-]+-req|(?:full )?token usage|\w+ throughput \(token/s\)): {_NUMBER}")
_TIME_STATS = lazy_regex(
    r"Req ?Time ?Stats\(rid=([^,()\s]{1,200}), (?:[^()]{0,200}, )?input[ _]len=(\d{1,9}), "
    r"(?:[^()]{0,80}, )?output[ _]len=(\d{1,9}), [^()]{0,80}type=(\w{1,16})\): (.{0,400})"
)
_DURATION = lazy_regex(rf"(\w+)={_NUMBER}(ms)?")
_VLLM_REQUEST = lazy_regex(r"(Received|Added) request ([^\s:]{1,200}?)(?:: |\.$|\.\s|$)")
_VLLM_RESPONSE = lazy_regex(r"Generated response (\S{1,200}?)(?: \(streaming (delta|complete)\))?: ")
_RECEIVE = lazy_regex(r"Receive: obj=\w+\(")
_FINISH = lazy_regex(r"Finish: obj=\w+\(")
_RID = lazy_regex(r"\brid='([^']{1,200})'")
_META_FIELD = lazy_regex(rf"'(\w+)': {_NUMBER}(?=[,}}])")
_PROFILER_STARTS = lazy_regex(r"Profiling starts\.|Starting profiler|Profiler started")


class EngineLog(msgspec.Struct, frozen=True):
    """What a log says, in time since the epoch."""

    requests: list[RequestRecord]
    samples: list[QueueSample]


class _Stamp(msgspec.Struct, frozen=True):
    """When a line was written: local time of the server and time since the epoch in ns, each if known."""

    local: int | None
    epoch: int | None
    precision: int


class _Request(msgspec.Struct):
    """A request whose lines are being collected; times since the epoch where they are ints, else stamps."""

    arrival: int | None = None
    received: _Stamp | None = None
    ended: _Stamp | None = None
    duration: int | None = None
    queue: int | None = None
    first_token: int | None = None
    first_line: _Stamp | None = None
    prompt: int | None = None
    output: int | None = None


class _Lines:
    """Collects what lines say until the zone of their clock is known."""

    def __init__(self, near_ns: int) -> None:
        self.near = near_ns
        self.requests: dict[str, _Request] = {}
        self.added: dict[str, _Stamp] = {}
        self.samples: list[tuple[_Stamp, QueueSample]] = []
        self.starts: list[_Stamp] = []
        self.zones: list[int] = []
        self.known = 0

    def add(self, line: str) -> None:
        """Add a line; one of another program is left out."""
        line = _COLOR.sub("", line)
        epoch, precision = None, _MILLISECOND
        if match := _COLLECTED.match(line):
            epoch, line = _epoch_of(match), line[match.end() :]
        engine = ""
        if line.startswith("{"):
            self._add_json(line, epoch)
            return
        local: int | None = None
        if match := _VLLM.match(line):
            local, precision = self._vllm_time(match)
        elif match := _SGLANG.match(line):
            local, precision = _local_time(match.groups()[:7])
            engine = " ".join(part for part in match[8].split() if part.startswith("DP"))
        elif epoch is None and not _FINISH.match(line):
            return
        text = line[match.end() :] if match else line
        stamp = _Stamp(local, epoch, _MILLISECOND if epoch is not None else precision)
        if (local is None and epoch is None and not _FINISH.match(text)) or self._is_far(stamp):
            return
        self._add_message(text, stamp, engine)

    def _is_far(self, stamp: _Stamp) -> bool:
        time = stamp.epoch if stamp.epoch is not None else stamp.local
        return time is not None and abs(time - self.near) > NEAR_NS

    def _vllm_time(self, match: re.Match[str]) -> tuple[int | None, int]:
        """Return the time of a line without a year: the one nearest to the trace."""
        year = (_EPOCH + timedelta(seconds=self.near // _SECOND)).year
        times = [_local_time((str(each), *match.groups()[:6])) for each in (year - 1, year, year + 1)]
        known = [(local, precision) for local, precision in times if local is not None]
        return min(known, key=lambda each: abs(each[0] - self.near), default=(None, _SECOND))

    def _add_message(self, text: str, stamp: _Stamp, engine: str) -> None:
        if match := _THROUGHPUT.match(text):
            queue, cache = _VLLM_QUEUE.search(match[5]), _VLLM_CACHE.search(match[5])
            self._sample(
                stamp,
                match[1] or "",
                running=int(match[4]),
                waiting=int(queue[1]) if queue else None,
                kv_share=float(cache[1]) / 100 if cache else None,
            )
        elif match := _ITERATION.match(text):
            cache = _VLLM_CACHE.search(match[4])
            share = float(cache[1]) / 100 if cache else None
            self._sample(stamp, match[1] or "", running=int(match[2]) + int(match[3]), kv_share=share)
        elif match := _BATCH.match(text):
            fields = dict(_BATCH_FIELD.findall(match[1]))
            usage = fields.get("token usage", fields.get("full token usage"))
            self._sample(
                stamp,
                engine,
                running=_whole(fields.get("#running-req")),
                waiting=_whole(fields.get("#queue-req")),
                kv_share=float(usage) if usage is not None else None,
            )
        elif match := _TIME_STATS.match(text):
            self._add_time_stats(match, stamp)
        elif match := _VLLM_REQUEST.match(text):
            self.known += 1
            if match[1] == "Received":
                self._request(match[2]).received = stamp
            else:
                self.added[match[2]] = stamp
        elif match := _VLLM_RESPONSE.match(text):
            request = self.requests.get(match[1])
            if request is not None and match[2] == "delta":
                request.first_line = request.first_line or stamp
            elif request is not None:
                request.ended = stamp
        elif _RECEIVE.match(text):
            self.known += 1
            if rid := _RID.search(text):
                self._request(rid[1]).received = stamp
        elif _FINISH.match(text):
            self.known += 1
            at = text.rfind("'meta_info': {")  # what a prompt or an answer says comes before it
            if at >= 0 and (rid := _RID.search(text)):
                self._finish(rid[1], dict(_META_FIELD.findall(text[at:])), stamp)
        elif _PROFILER_STARTS.match(text):
            self.starts.append(stamp)

    def _request(self, name: str) -> _Request:
        return self.requests.setdefault(name, _Request())

    def _sample(self, stamp: _Stamp, engine: str, **values: Any) -> None:
        self.known += 1
        self.samples.append((stamp, QueueSample(0, engine, **values)))

    def _add_time_stats(self, match: re.Match[str], stamp: _Stamp) -> None:
        self.known += 1
        values = {name: float(value) for name, value, _ in _DURATION.findall(match[5])}
        request = self._request(match[1])
        request.prompt, request.output = int(match[2]), int(match[3])
        queue, forward = _milliseconds(values.get("queue_duration")), _milliseconds(values.get("forward_duration"))
        prefill, entry = _milliseconds(values.get("initial_prefill_elapsed")), _seconds(values.get("entry_time"))
        if queue is None or forward is None:
            return
        request.queue = queue
        if prefill is not None and match[4] == "unified":
            request.first_token = queue + prefill
        request.duration, request.ended = queue + forward, stamp
        if entry is not None:
            request.arrival = entry
            self._learn_zone(stamp, entry + queue + forward)

    def _finish(self, name: str, meta: dict[str, Any], stamp: _Stamp) -> None:
        request = self._request(name)
        received, finished = _seconds(meta.get("request_received_ts")), _seconds(meta.get("request_finished_ts"))
        first, whole = _seconds(meta.get("prefill_finished_ts")), _span(meta.get("e2e_latency"))
        request.prompt = _whole(meta.get("prompt_tokens"))
        request.output = _whole(meta.get("completion_tokens"))
        request.queue = _span(meta.get("queue_time")) if request.queue is None else request.queue
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
            self._learn_zone(stamp, received + request.duration)

    def _add_json(self, line: str, epoch: int | None) -> None:
        """Add a line of `--log-requests-format json`."""
        try:
            record = _json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return
        match = _ISO.match(record.timestamp)
        local, precision = _local_time(match.groups()) if match else (None, _MILLISECOND)
        stamp = _Stamp(local, epoch, precision)
        if not record.rid or self._is_far(stamp):
            return
        if record.event == "request.received":
            self.known += 1
            self._request(record.rid).received = stamp
        elif record.event == "request.finished":
            self.known += 1
            meta = record.out.get("meta_info")
            numbers = (
                {key: value for key, value in meta.items() if isinstance(value, int | float)}
                if isinstance(meta, dict)
                else {}
            )
            self._finish(record.rid, numbers, stamp)

    def _learn_zone(self, stamp: _Stamp, epoch: int) -> None:
        if stamp.local is not None:
            self.zones.append(round((stamp.local - epoch) / ZONE_STEP_NS) * ZONE_STEP_NS)

    def zone(self) -> int | None:
        """Return the ns that the server's clock is ahead of UTC, or None if the log doesn't tell."""
        both = [each for each, _ in self.samples if each.local is not None and each.epoch is not None]
        for stamp in both[:1]:
            self._learn_zone(stamp, stamp.epoch or 0)
        if self.zones:
            return max(sorted(set(self.zones)), key=self.zones.count)
        delays = [each.local - self.near for each in self.starts if each.local is not None]
        zones = [(abs(delay - (zone := round(delay / ZONE_STEP_NS) * ZONE_STEP_NS)), zone) for delay in delays]
        delay, zone = min(zones, default=(MAX_START_DELAY_NS, 0))
        return zone if delay < MAX_START_DELAY_NS else None


class _JsonLine(msgspec.Struct, frozen=True):
    timestamp: str = ""
    event: str = ""
    rid: str = ""
    out: dict[str, Any] = {}


_json = msgspec.json.Decoder(_JsonLine)


def read_engine_log(
    stream: BinaryIO, *, size: int, health: HealthLog, near_ns: int | None, limit: int = 0
) -> EngineLog | None:
    """Return what a log says of the time around `near_ns`, or None if no line in it is of vLLM or SGLang.

    near_ns  ns since the epoch at which the trace begins; None if the trace doesn't say

    Raises TraceError if the log doesn't tell in which zone its clock is, TooLargeError if it holds more than
    `limit` bytes.
    """
    source = UnpackedStream(stream, size, ignore_progress, health, min(limit or MAX_LOG_BYTES, MAX_LOG_BYTES))
    if near_ns is None:
        raise TraceError("the trace doesn't say when it was recorded")
    lines = _Lines(near_ns)
    for _, line in read_lines(source, health):
        lines.add(line.decode("utf-8", "replace").rstrip("\r"))
    if not lines.known:
        return None
    zone = lines.zone()
    log = EngineLog(list(_requests(lines, zone)), list(_samples(lines, zone)))
    if not log.requests and not log.samples:
        raise TraceError(
            "its times have no zone, and no line near the trace says that the profiler started; "
            "save the log with `docker logs --timestamps`, or with the lines from `/start_profile` on"
        )
    return log


def _samples(lines: _Lines, zone: int | None) -> Iterator[QueueSample]:
    for stamp, sample in lines.samples:
        if (time := _at(stamp, zone)) is not None:
            yield msgspec.structs.replace(sample, time_ns=time)


def _requests(lines: _Lines, zone: int | None) -> Iterator[RequestRecord]:
    requests = lines.requests
    if not any(each.received for each in requests.values()):
        # vLLM names a request when it receives it and when it adds it: the second only where it stands alone.
        for name, stamp in lines.added.items():
            requests.setdefault(name, _Request()).received = stamp
    for name, each in requests.items():
        arrival, precision = each.arrival, 0
        ended = _at(each.ended, zone)
        if arrival is None and (received := _at(each.received, zone)) is not None and each.received is not None:
            arrival, precision = received, each.received.precision
        elif arrival is None and ended is not None and each.duration is not None and each.ended is not None:
            arrival, precision = ended - each.duration, each.ended.precision
        if arrival is None:
            continue
        end = arrival + each.duration if each.duration is not None else ended
        first_token, first = each.first_token, _at(each.first_line, zone)
        if first_token is None and first is not None and precision <= _MILLISECOND:
            first_token = max(first - arrival, 0)
        if end is not None and not arrival <= end < arrival + MAX_RECORDING_NS:
            end = None
        yield RequestRecord(
            name,
            arrival,
            end,
            queue_ns=each.queue,
            first_token_ns=first_token,
            prompt_tokens=each.prompt,
            output_tokens=each.output,
            arrival_precision_ns=precision,
        )


def _at(stamp: _Stamp | None, zone: int | None) -> int | None:
    """Return when a line was written in ns since the epoch, or None if its clock's zone is unknown."""
    if stamp is None or stamp.epoch is not None:
        return None if stamp is None else stamp.epoch
    return stamp.local - zone if stamp.local is not None and zone is not None else None


def _local_time(parts: tuple[str | Any, ...]) -> tuple[int | None, int]:
    """Return (ns, precision in ns) of (year, month, day, hour, minute, second, fraction or None)."""
    *whole, fraction = parts
    try:
        moment = datetime(*map(int, whole), tzinfo=timezone.utc)  # type: ignore[misc, arg-type]
    except ValueError:
        return None, _SECOND
    return _nanoseconds_of(moment, fraction), _MILLISECOND if fraction else _SECOND


def _epoch_of(match: re.Match[str]) -> int | None:
    try:
        moment = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    except ValueError:
        return None
    return _nanoseconds_of(moment, match[2])


def _nanoseconds_of(moment: datetime, fraction: str | None) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1) * _SECOND + int((fraction or "").ljust(9, "0")[:9])


def _whole(value: float | str | None) -> int | None:
    """Return a count, or None if it is none."""
    number = None if value is None else float(value)
    return int(number) if number is not None and 0 <= number < 2**53 else None


def _span(seconds: float | str | None) -> int | None:
    """Return a time in seconds as ns, or None if it is none."""
    value = None if seconds is None else round(float(seconds) * _SECOND)
    return value if value is not None and 0 <= value < MAX_RECORDING_NS else None


def _milliseconds(value: float | None) -> int | None:
    return None if value is None else _span(value / 1000)


def _seconds(value: float | str | None) -> int | None:
    """Return seconds since the epoch as ns, or None if they are none: SGLang writes 0.0 for unknown."""
    moment = None if value is None else round(float(value) * 1000) * _MILLISECOND
    return moment if moment is not None and 10**18 < moment < 2**62 else None
