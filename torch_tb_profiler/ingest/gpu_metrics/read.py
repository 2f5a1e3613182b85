"""Build a Trace of counters from samples of GPUs: a process per GPU, a counter per column."""

from __future__ import annotations

from array import array
from datetime import datetime, timedelta
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.gpu_metrics.sample import GpuSample, ReadLine, SamplingTool
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.source import UnpackedStream, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, NO_CODE, ArgColumn, Events, Thread, Trace

_VALUE_ARGUMENT = "value"


def read_samples(
    stream: BinaryIO, tool: SamplingTool, read_line: ReadLine, *, size: int, report: Report, limit: int
) -> Trace:
    """Read the samples of `tool`; times of a local clock count from the first sample.

    Unreadable lines are skipped and noted. Raises TraceError if there is no sample, TooLargeError if the file
    holds more than `limit` bytes.
    """
    health, columns = HealthLog(), _SampleColumns(tool)
    source = UnpackedStream(stream, size, report, health, limit)
    with without_gc():
        for offset, line in read_lines(source, health):
            sample = read_line(line.decode("utf-8-sig", "replace"))
            if isinstance(sample, GpuSample):
                columns.add(sample, health)
            elif not sample:
                health.add("line_unreadable", "warning", "a line that is not a sample was skipped", offset=offset)
            source.events = columns.length
        if columns.length == 0:
            raise TraceError("the file has no samples", hint=tool.hint)
        report(Progress("arranging", size, size, columns.length))
        return columns.build_trace(health)


class _SampleColumns:
    """Columns that grow by one sample at a time."""

    def __init__(self, tool: SamplingTool) -> None:
        self._tool = tool
        self._first_ns: int | None = None
        self._last_ns: dict[tuple[str, str], int] = {}
        self._start, self._values = array("q"), array("d")
        self._name, self._thread = array("i"), array("i")
        self._names: dict[str, int] = {}
        self._gpus: dict[str, int] = {}

    @property
    def length(self) -> int:
        return len(self._start)

    def add(self, sample: GpuSample, health: HealthLog) -> None:
        """Append the values of a sample; one more than a week from the first is skipped and noted."""
        if self._first_ns is None:
            self._first_ns = sample.time
        if abs(sample.time - self._first_ns) > MAX_RECORDING_NS:
            health.add("bad_time", "warning", "a sample more than a week from the first was skipped")
            return
        series = [(sample.gpu, name) for name, _ in sample.values]
        if any(sample.time < self._last_ns.get(each, sample.time) for each in series):
            health.add("clock_back", "warning", "the clock went back between two samples")
        self._last_ns.update((each, sample.time) for each in series)
        for name, value in sample.values:
            self._start.append(sample.time - self._first_ns)
            self._name.append(self._names.setdefault(name, len(self._names)))
            self._thread.append(self._gpus.setdefault(sample.gpu, len(self._gpus)))
            self._values.append(value)

    def build_trace(self, health: HealthLog) -> Trace:
        """Return the trace of all samples; there is at least one."""
        first_ns, is_local = self._first_ns or 0, self._tool.clock == "local"
        if is_local:
            first_time = datetime(1970, 1, 1) + timedelta(microseconds=first_ns // 1000)
            message = f"the file doesn't name its time zone; times count from the first sample, {first_time}"
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
        return Trace(
            events,
            list(self._names),
            [Thread(gpu, 0) for gpu in self._gpus],
            [],
            {_VALUE_ARGUMENT: values},
            {},
            0 if is_local else first_ns + earliest,
            0,
            health.notes(),
            producer=self._tool.name,
            clock=self._tool.clock,
        )
