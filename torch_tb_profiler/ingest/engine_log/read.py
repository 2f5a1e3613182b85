"""Read the log of a vLLM or SGLang server: its requests, and how long its queue was.

The server reports its queue every few seconds or at every iteration:

    INFO 11-26 07:00:01 [loggers.py:259] Engine 000: Avg prompt throughput: 98.0 tokens/s, Avg generation
        throughput: 19.4 tokens/s, Running: 4 reqs, Waiting: 1 reqs, GPU KV cache usage: 64.6%, ...
    [2026-11-26 07:00:01 TP0] Decode batch, #running-req: 4, #token: 512, token usage: 0.65, #queue-req: 1

Sources: vLLM `v1/metrics/loggers.py`, `v1/engine/core.py`; SGLang `managers/scheduler_metrics_mixin.py`.
"""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.engine_log.lines import Clock, LogLine, Stamp, parse_line
from torch_tb_profiler.ingest.engine_log.requests import LoggedRequests
from torch_tb_profiler.ingest.runtime import ignore_progress
from torch_tb_profiler.ingest.source import UnpackedStream, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.requests import QueueSample, RequestRecord

MAX_LOG_BYTES = 2**30
"""Largest unpacked log."""

_PROFILER_STARTS = lazy_regex(r"Profiling starts(?: for \w+)?\.|Starting profiler|Profiler started")

_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_THROUGHPUT = lazy_regex(
    rf"(?:Engine (\d{{1,6}}): |\d{{1,6}} Engines Aggregated: )?Avg prompt throughput: {_NUMBER} tokens/s, "
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


class EngineLog(msgspec.Struct, frozen=True):
    """The requests and the lengths of the queue in a log, in time since the epoch."""

    requests: list[RequestRecord]
    samples: list[QueueSample]


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
    clock = Clock(near_ns)
    requests = LoggedRequests(clock)
    samples: list[tuple[Stamp, QueueSample]] = []
    is_known = False
    for _, raw in read_lines(source, health):
        line = parse_line(raw.decode("utf-8", "replace").rstrip("\r"), near_ns)
        if line is None:
            continue
        if (sample := _read_queue(line)) is not None:
            samples.append((line.stamp, sample))
        elif requests.add(line):
            is_known = True
        elif _PROFILER_STARTS.match(line.text):
            clock.add_profiler_start(line.stamp)
    if not is_known and not samples:
        return None
    for stamp in [each for each, _ in samples if each.local is not None and each.epoch is not None][:1]:
        clock.add_known_time(stamp, stamp.epoch or 0)
    zone = clock.zone()
    placed = [(stamp.at(zone), sample) for stamp, sample in samples]
    log = EngineLog(
        list(requests.records(zone)),
        [msgspec.structs.replace(sample, time_ns=time) for time, sample in placed if time is not None],
    )
    if not log.requests and not log.samples:
        raise TraceError(
            "its times have no time zone, and no line near the trace says that the profiler started; "
            "save the log with `docker logs --timestamps`, or with the lines from `/start_profile` on"
        )
    return log


def _read_queue(line: LogLine) -> QueueSample | None:
    """Return the length of the queue that a line reports, without its time, or None if it reports none."""
    text = line.text
    if match := _THROUGHPUT.match(text):
        queue = _VLLM_QUEUE.search(match[5])
        waiting = int(queue[1]) if queue else None
        return QueueSample(0, match[1] or "", int(match[4]), waiting, _vllm_cache(match[5]))
    if match := _ITERATION.match(text):
        running = int(match[2]) + int(match[3])
        return QueueSample(0, match[1] or line.engine, running, kv_share=_vllm_cache(match[4]))
    if match := _BATCH.match(text):
        fields = {name: float(value) for name, value in _BATCH_FIELD.findall(match[1])}
        usage = fields.get("token usage", fields.get("full token usage"))
        return QueueSample(0, line.engine, _count(fields, "#running-req"), _count(fields, "#queue-req"), usage)
    return None


def _count(fields: dict[str, float], name: str) -> int | None:
    return int(fields[name]) if name in fields else None


def _vllm_cache(text: str) -> float | None:
    match = _VLLM_CACHE.search(text)
    return float(match[1]) / 100 if match else None
