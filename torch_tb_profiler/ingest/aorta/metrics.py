"""Read iteration metrics into a Trace: iterations laid end to end, a lane per stream.

    iteration    |- ProfilerStep#0 ------|- ProfilerStep#1 ------|
    compute         [forward][backward]     [forward][backward]
    allreduce                    [all_reduce]            [all_reduce]
    active streams  [compute][compute + allreduce]...                     the recorder's segments
    GPU 0 edge, °C  71                      73                             counters: readings of `rocm-smi`

In the file, times are ms since the start of their iteration; an iteration is placed where the previous one and all
of its ranges end.
"""

from __future__ import annotations

import json
import math
from array import array
from typing import Annotated, Any, BinaryIO

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.markers import STEP_PREFIX
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.source import UnpackedStream, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.iterations import (
    ITERATION_LANE,
    MARKER_CATEGORY,
    RANGE_CATEGORY,
    READING_CATEGORY,
    READING_LANE,
    SEGMENT_CATEGORY,
    SEGMENT_LANE,
)
from torch_tb_profiler.model.rocm_smi import parse_rocm_smi, short_sensor_name
from torch_tb_profiler.model.trace import (
    ABSENT,
    AORTA,
    MAX_RECORDING_NS,
    ArgColumn,
    ArgKind,
    Events,
    Thread,
    Trace,
)

_MAX_START_NS = 2**62
"""Latest start of an iteration; if all iterations together take longer, their durations are damaged."""

_INTEGER_ARGS = ("global_step", "epoch", "step")
_FLOAT_ARGS = ("loss", "grad_norm", "lr")

ExactInteger = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
"""An integer that a JSON writer with doubles writes exactly."""


class StreamRange(msgspec.Struct):
    """The work between two events of a stream; `metadata` of a collective has its `function`."""

    stream: str
    start_ms: float
    end_ms: float
    tag: str = ""
    metadata: dict[str, Any] = {}


class StreamMarker(msgspec.Struct):
    """A point in time on a stream."""

    stream: str
    time_ms: float
    tag: str = ""


class RecordedOverlap(msgspec.Struct):
    """The recorder's own sums over the ranges, in ms; a missing name means 0. `segments_of` reads its segments."""

    per_stream_ms: dict[str, float] = {}
    overlap_ms: dict[str, float] = {}
    active_segments: Any = None


class ActiveSegment(msgspec.Struct):
    """A time in which the same streams are active."""

    start_ms: float
    end_ms: float
    active_streams: list[str]


class IterationProfile(msgspec.Struct):
    """The streams of one iteration; `index` is the N of `ProfilerStep#N`."""

    index: ExactInteger
    total_ms: float
    ranges: list[StreamRange] = []
    markers: list[StreamMarker] = []
    overlap: RecordedOverlap = msgspec.field(default_factory=RecordedOverlap)


class IterationRecord(msgspec.Struct):
    """A line of the file: an iteration with its metrics and profile."""

    global_step: ExactInteger
    profile: IterationProfile
    rank: ExactInteger | None = None
    world_size: ExactInteger | None = None
    epoch: ExactInteger | None = None
    step: ExactInteger | None = None
    loss: float | None = None
    grad_norm: float | None = None
    lr: float | None = None
    rocm_smi_output: Any = None
    rocm_smi_error: Any = None
    rocm_smi_exit_code: Any = None


_decode = msgspec.json.Decoder(threadsafe(IterationRecord)).decode


def decode_record(line: bytes) -> IterationRecord:
    """Return the iteration in a line; raise TraceError if it isn't one.

    NaN is accepted, which isn't JSON, but Python writes it for a loss.
    """
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError as error:
        raise TraceError("the line is nested too deeply") from error
    try:
        return msgspec.convert(json.loads(line), threadsafe(IterationRecord))
    except (ValueError, RecursionError) as error:
        raise TraceError(f"the line is not an iteration: {error}") from error


def segments_of(overlap: RecordedOverlap) -> list[ActiveSegment] | None:
    """Return the recorder's segments; None if it wrote something else in their place, which costs nothing else."""
    try:
        return msgspec.convert(overlap.active_segments or [], threadsafe(list[ActiveSegment]))
    except msgspec.ValidationError:
        return None


def read_metrics(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read a file of iterations; lines that aren't iterations are skipped and noted.

    Each run of the program appends to the file, so a global step that doesn't increase starts another recording.
    Raises TraceError if there is no iteration, TooLargeError if the file holds more than `limit` bytes.
    """
    health, columns = HealthLog(), _IterationColumns()
    source = UnpackedStream(stream, size, report, health, limit)
    last_error = None
    with without_gc():
        for offset, line in read_lines(source, health):
            try:
                columns.add(decode_record(line), health)
            except TraceError as error:
                last_error = error.message
                health.add(
                    "line_unreadable", "warning", "a line that is not an iteration was skipped", offset=offset
                )
            source.events = columns.length
        if columns.iterations == 0:
            raise TraceError("the file has no iterations", hint=last_error)
        report(Progress("arranging", size, size, columns.length))
        return columns.build_trace(health)


class _IterationColumns:
    """Columns of events that grow by one iteration at a time."""

    def __init__(self) -> None:
        self.iterations = 0
        self._phase, self._category, self._name, self._thread = (array("i") for _ in range(4))
        self._start, self._duration = array("q"), array("q")
        self._codes: dict[str, int] = {}
        self._threads: dict[Thread, int] = {}
        self._args: dict[str, tuple[ArgKind, array[int], list[float | int | str]]] = {}
        self._recordings: list[int] = []
        self._previous_step = 0
        self._next_start_ns = 0
        self._rank: int | None = None
        self._world_size: int | None = None

    @property
    def length(self) -> int:
        return len(self._start)

    def add(self, record: IterationRecord, health: HealthLog) -> None:
        """Append an iteration; ranges and markers without a valid time are skipped and noted."""
        profile = record.profile
        total_ns = _to_ns(profile.total_ms)
        if total_ns is None or total_ns < 0 or self._next_start_ns > _MAX_START_NS:
            health.add("bad_time", "warning", "an iteration without a valid duration was skipped")
            return
        if self.iterations == 0:
            self._rank, self._world_size = record.rank, record.world_size
        elif record.rank != self._rank:
            health.add("other_rank", "warning", "an iteration has a different rank than the first one")
        if self.iterations == 0 or record.global_step <= self._previous_step:
            self._recordings.append(self.length)
        self._previous_step = record.global_step
        self.iterations += 1
        spans = [(_to_ns(each.start_ms), _to_ns(each.end_ms), each) for each in profile.ranges]
        valid = [(start, end, each) for start, end, each in spans if start is not None and end is not None]
        if len(valid) < len(spans):
            count = len(spans) - len(valid)
            health.add("bad_time", "warning", "a range without a valid time was skipped", count=count)
        start_ns = self._next_start_ns - min(0, min((start for start, _, _ in valid), default=0))
        self._add_iteration(record, start_ns, total_ns)
        for start, end, each in valid:
            # elapsed_time of two events may be negative by its resolution.
            self._add_row(
                "X", RANGE_CATEGORY, each.tag or each.stream, each.stream, start_ns + start, max(end - start, 0)
            )
            function = each.metadata.get("function")
            if isinstance(function, str):
                self._add_arg("function", "text", function)
        last_ns = max(total_ns, max((end for _, end, _ in valid), default=0))
        for marker in profile.markers:
            time_ns = _to_ns(marker.time_ms)
            if time_ns is not None and start_ns + time_ns >= self._next_start_ns:
                name = marker.tag or marker.stream
                self._add_row("i", MARKER_CATEGORY, name, marker.stream, start_ns + time_ns, None)
                last_ns = max(last_ns, time_ns)
        self._add_segments(record, start_ns, health)
        self._add_readings(record, start_ns, health)
        self._next_start_ns = start_ns + last_ns

    def _add_segments(self, record: IterationRecord, start_ns: int, health: HealthLog) -> None:
        """Append a slice for each time in which the recorder saw the same streams active."""
        segments = segments_of(record.profile.overlap)
        if segments is None:
            health.add("segments_unreadable", "warning", "the active segments of an iteration can't be read")
            return
        for each in segments:
            begin, end = _to_ns(each.start_ms), _to_ns(each.end_ms)
            if each.active_streams and begin is not None and end is not None:
                begin = max(start_ns + begin, self._next_start_ns)
                if begin < start_ns + end:
                    name = " + ".join(each.active_streams)
                    self._add_row("X", SEGMENT_CATEGORY, name, SEGMENT_LANE, begin, start_ns + end - begin)

    def _add_readings(self, record: IterationRecord, time_ns: int, health: HealthLog) -> None:
        """Append a counter for each reading of `rocm-smi`, which holds for its iteration.

        The tool runs after the iteration, at a time that isn't recorded.
        """
        text, code = record.rocm_smi_output, record.rocm_smi_exit_code
        if record.rocm_smi_error is not None or code not in (None, 0):
            reason = record.rocm_smi_error if record.rocm_smi_error is not None else f"exit code {code}"
            health.add("rocm_smi_failed", "warning", f"rocm-smi failed in an iteration: {str(reason)[:200]}")
        readings = parse_rocm_smi(text) if isinstance(text, str) else []
        if text and not readings:
            health.add("rocm_smi_unreadable", "warning", "an output of rocm-smi has no readings")
        for each in readings:
            name = f"GPU {each.gpu} {short_sensor_name(each.name)}"
            self._add_row("C", READING_CATEGORY, name, READING_LANE, time_ns, None)
            self._add_arg("value", "float", each.value)

    def _add_iteration(self, record: IterationRecord, start: int, duration: int) -> None:
        name = f"{STEP_PREFIX}{record.profile.index}"
        self._add_row("X", "user_annotation", name, ITERATION_LANE, start, duration)
        for key in _INTEGER_ARGS:
            if (integer := getattr(record, key)) is not None:
                self._add_arg(key, "int", integer)
        for key in _FLOAT_ARGS:
            if (number := getattr(record, key)) is not None and math.isfinite(number):
                self._add_arg(key, "float", number)
        overlap = record.profile.overlap
        if overlap.per_stream_ms or overlap.overlap_ms:
            self._add_arg("per_stream_ms", "json", msgspec.json.encode(overlap.per_stream_ms).decode())
            self._add_arg("overlap_ms", "json", msgspec.json.encode(overlap.overlap_ms).decode())
        if isinstance(record.rocm_smi_output, str) and record.rocm_smi_output:
            self._add_arg("rocm_smi_output", "text", record.rocm_smi_output)

    def _add_row(self, phase: str, category: str, name: str, lane: str, start: int, duration: int | None) -> None:
        process = "iterations" if self._rank is None else f"rank {self._rank}"
        self._phase.append(ord(phase))
        self._category.append(self._codes.setdefault(category, len(self._codes)))
        self._name.append(self._codes.setdefault(name, len(self._codes)))
        self._thread.append(self._threads.setdefault(Thread(process, lane), len(self._threads)))
        self._start.append(start)
        self._duration.append(int(ABSENT) if duration is None else duration)

    def _add_arg(self, key: str, kind: ArgKind, value: float | int | str) -> None:
        """Add an argument to the last row."""
        _, rows, values = self._args.setdefault(key, (kind, array("i"), []))
        rows.append(self.length - 1)
        values.append(value)

    def build_trace(self, health: HealthLog) -> Trace:
        """Return the trace of all iterations; there is at least one."""
        health.add(
            "clock_of_iterations",
            "info",
            "times count from the start of each iteration; the time between iterations is unknown, so they are "
            "laid end to end",
            count=self.iterations,
        )
        events = Events(
            phase=np.array(self._phase, np.uint8),
            category=np.array(self._category, np.int32),
            name=np.array(self._name, np.int32),
            thread=np.array(self._thread, np.int32),
            start=np.array(self._start, np.int64),
            duration=np.array(self._duration, np.int64),
            id=np.full(self.length, ABSENT, np.int64),
        )
        info = {"backend": None, "rank": self._rank, "world_size": self._world_size}
        return Trace(
            events,
            list(self._codes),
            list(self._threads),
            [],
            {key: _arg_column(*values) for key, values in self._args.items()},
            {"distributedInfo": info},
            0,
            0,
            health.notes(),
            producer=AORTA,
            clock="iteration",
            recordings=tuple(self._recordings),
        )


def _arg_column(kind: ArgKind, rows: array[int], values: list[float | int | str]) -> ArgColumn:
    indices = np.array(rows, np.int32)
    if kind in ("int", "float"):
        return ArgColumn(kind, indices, np.array(values, np.int64 if kind == "int" else np.float64))
    codes: dict[str, int] = {}
    numbers = [codes.setdefault(str(value), len(codes)) for value in values]
    return ArgColumn(kind, indices, np.array(numbers, np.int32), list(codes))


def _to_ns(milliseconds: float) -> int | None:
    """Return a time in ns, or None if it isn't finite or exceeds MAX_RECORDING_NS."""
    if not abs(milliseconds) < MAX_RECORDING_NS / 1e6:  # NaN as well
        return None
    return round(milliseconds * 1e6)
