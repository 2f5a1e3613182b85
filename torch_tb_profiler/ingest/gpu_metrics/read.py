"""Samples of GPUs, a line or a few at a time, to a Trace of counters: a process per GPU, a counter per column."""

from __future__ import annotations

from array import array
from datetime import datetime, timedelta
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.gpu_metrics.lines import ReadLine, Sample, Tool
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.source import Source, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, NO_CODE, ArgColumn, Events, Thread, Trace

VALUE = "value"


def read_samples(
    stream: BinaryIO, tool: Tool, read_line: ReadLine, *, size: int, report: Report, limit: int
) -> Trace:
    """Lines that cannot be read are left out and noted; times of a local clock count from the first sample.

    Raises TraceError if there is no sample, TooLargeError if the file holds more than `limit`.
    """
    health, columns = HealthLog(), _Columns(tool)
    source = Source(stream, size, report, health, limit)
    with without_gc():
        for offset, line in read_lines(source, health):
            sample = read_line(line.decode("utf-8-sig", "replace"))
            if isinstance(sample, Sample):
                columns.add(sample, health)
            elif not sample:
                health.add("line_unreadable", "warning", "a line is no sample and is left out", offset=offset)
            source.events = columns.length
        if columns.length == 0:
            raise TraceError("the table holds no sample", hint=tool.hint)
        report(Progress("arranging", size, size, columns.length))
        return columns.trace(health)


class _Columns:
    """Grows by one sample after the other."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._first: int | None = None
        self._last: dict[tuple[str, str], int] = {}
        self._start, self._values = array("q"), array("d")
        self._name, self._thread = array("i"), array("i")
        self._names: dict[str, int] = {}
        self._gpus: dict[str, int] = {}

    @property
    def length(self) -> int:
        return len(self._start)

    def add(self, sample: Sample, health: HealthLog) -> None:
        """Append the values of a sample; one that is more than a week from the first is noted and left out."""
        if self._first is None:
            self._first = sample.time
        if abs(sample.time - self._first) > MAX_RECORDING_NS:
            health.add("bad_time", "warning", "a sample is more than a week away from the first and is left out")
            return
        series = [(sample.gpu, name) for name, _ in sample.values]
        if any(sample.time < self._last.get(each, sample.time) for each in series):
            health.add("clock_back", "warning", "the clock went back between two samples")
        self._last.update((each, sample.time) for each in series)
        for name, value in sample.values:
            self._start.append(sample.time - self._first)
            self._name.append(self._names.setdefault(name, len(self._names)))
            self._thread.append(self._gpus.setdefault(sample.gpu, len(self._gpus)))
            self._values.append(value)

    def trace(self, health: HealthLog) -> Trace:
        first, local = self._first or 0, self._tool.clock == "local"
        if local:
            moment = datetime(1970, 1, 1) + timedelta(microseconds=first // 1000)
            message = (
                f"the file does not say of which zone its times are: they count from the first sample, {moment}"
            )
            health.add("local_time", "info", message)
        count = self.length
        start = np.array(self._start, np.int64)
        earliest = int(start.min())
        events = Events(
            phase=np.full(count, ord("C"), np.uint8),
            category=np.full(count, NO_CODE, np.int32),
            name=np.array(self._name, np.int32),
            thread=np.array(self._thread, np.int32),
            start=start - earliest,
            duration=np.full(count, ABSENT),
            id=np.full(count, ABSENT),
        )
        values = ArgColumn("float", np.arange(count, dtype=np.int32), np.array(self._values))
        threads = [Thread(gpu, 0) for gpu in self._gpus]
        return Trace(
            events, list(self._names), threads, [], {VALUE: values}, {}, 0 if local else first + earliest, 0,
            health.notes(), producer=self._tool.name, clock=self._tool.clock,
        )  # fmt: skip
