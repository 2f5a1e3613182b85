"""Read the log of a vLLM or SGLang server: its requests, and how long its queue was."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.engine_log.lines import Clock, Stamp, parse_line
from torch_tb_profiler.ingest.engine_log.queue import read_queue
from torch_tb_profiler.ingest.engine_log.requests import LoggedRequests
from torch_tb_profiler.ingest.runtime import ignore_progress
from torch_tb_profiler.ingest.source import UnpackedStream, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.queue import QueueSample
from torch_tb_profiler.model.serving.requests import RequestRecord

MAX_LOG_BYTES = 2**30
"""Largest unpacked log."""

_PROFILER_STARTS = lazy_regex(r"Profiling starts(?: for \w+)?\.|Starting profiler|Profiler started")


class EngineLog(msgspec.Struct, frozen=True):
    """What a log says, in time since the epoch."""

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
        if (sample := read_queue(line)) is not None:
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
