"""Records as the columns of a Trace.

    iteration    |- ProfilerStep#0 ------|- ProfilerStep#1 ------|
    compute         [forward][backward]     [forward][backward]
    allreduce                    [all_reduce]            [all_reduce]

Each iteration counts from its own start. They are laid end to end: one begins where the one before it, and
all ranges of it, have ended.
"""

from __future__ import annotations

import math
from array import array

import msgspec
import numpy as np

from torch_tb_profiler.base.markers import STEP_PREFIX
from torch_tb_profiler.ingest.aorta.records import Record
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.iterations import ITERATION_LANE, MARKER_CATEGORY, RANGE_CATEGORY
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

_LATEST = 2**62
"""ns; where all iterations together last longer, their lengths are damage."""

_INTEGERS = ("global_step", "epoch", "step")
_NUMBERS = ("loss", "grad_norm", "lr")


class Columns:
    """Grows by one record after the other."""

    def __init__(self) -> None:
        self.iterations = 0
        self._phase, self._category, self._name, self._thread = (array("i") for _ in range(4))
        self._start, self._duration = array("q"), array("q")
        self._codes: dict[str, int] = {}
        self._threads: dict[Thread, int] = {}
        self._args: dict[str, tuple[ArgKind, array[int], list[float | int | str]]] = {}
        self._recordings: list[int] = []
        self._previous = 0
        self._begin = 0
        self._rank: int | None = None
        self._world_size: int | None = None

    @property
    def length(self) -> int:
        return len(self._start)

    def add(self, record: Record, health: HealthLog) -> None:
        """Append an iteration; ranges and markers without a usable time are noted and left out."""
        profile = record.profile
        length = _ns(profile.total_ms)
        if length is None or length < 0 or self._begin > _LATEST:
            health.add("bad_time", "warning", "an iteration has no usable length and is left out")
            return
        if self.iterations == 0:
            self._rank, self._world_size = record.rank, record.world_size
        elif record.rank != self._rank:
            health.add("other_rank", "warning", "an iteration names another rank than the first one")
        if self.iterations == 0 or record.global_step <= self._previous:
            self._recordings.append(self.length)
        self._previous = record.global_step
        self.iterations += 1
        spans = [(_ns(each.start_ms), _ns(each.end_ms), each) for each in profile.ranges]
        usable = [(start, end, each) for start, end, each in spans if start is not None and end is not None]
        if len(usable) < len(spans):
            count = len(spans) - len(usable)
            health.add("bad_time", "warning", "a range has no usable time and is left out", count=count)
        begin = self._begin - min(0, min((start for start, _, _ in usable), default=0))
        self._iteration(record, begin, length)
        for start, end, each in usable:
            # elapsed_time of two events may be negative by its resolution.
            self._row(
                "X", RANGE_CATEGORY, each.tag or each.stream, each.stream, begin + start, max(end - start, 0)
            )
            function = each.metadata.get("function")
            if isinstance(function, str):
                self._arg("function", "text", function)
        last = max(length, max((end for _, end, _ in usable), default=0))
        for marker in profile.markers:
            moment = _ns(marker.time_ms)
            if moment is not None and begin + moment >= self._begin:
                self._row("i", MARKER_CATEGORY, marker.tag or marker.stream, marker.stream, begin + moment, None)
                last = max(last, moment)
        self._begin = begin + last

    def _iteration(self, record: Record, begin: int, length: int) -> None:
        self._row("X", "user_annotation", f"{STEP_PREFIX}{record.profile.index}", ITERATION_LANE, begin, length)
        for key in _INTEGERS:
            if (whole := getattr(record, key)) is not None:
                self._arg(key, "int", whole)
        for key in _NUMBERS:
            if (number := getattr(record, key)) is not None and math.isfinite(number):
                self._arg(key, "float", number)
        overlap = record.profile.overlap
        if overlap.per_stream_ms or overlap.overlap_ms:
            self._arg("per_stream_ms", "json", msgspec.json.encode(overlap.per_stream_ms).decode())
            self._arg("overlap_ms", "json", msgspec.json.encode(overlap.overlap_ms).decode())
        if record.rocm_smi_output:
            self._arg("rocm_smi_output", "text", record.rocm_smi_output)

    def _row(self, phase: str, category: str, name: str, lane: str, start: int, duration: int | None) -> None:
        process = "iterations" if self._rank is None else f"rank {self._rank}"
        self._phase.append(ord(phase))
        self._category.append(self._codes.setdefault(category, len(self._codes)))
        self._name.append(self._codes.setdefault(name, len(self._codes)))
        self._thread.append(self._threads.setdefault(Thread(process, lane), len(self._threads)))
        self._start.append(start)
        self._duration.append(int(ABSENT) if duration is None else duration)

    def _arg(self, key: str, kind: ArgKind, value: float | int | str) -> None:
        """An argument of the last row."""
        _, rows, values = self._args.setdefault(key, (kind, array("i"), []))
        rows.append(self.length - 1)
        values.append(value)

    def trace(self, health: HealthLog) -> Trace:
        health.add(
            "clock_of_iterations",
            "info",
            "times count from the start of each iteration: the time between iterations is unknown, they are laid "
            "end to end",
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
            {key: _column(*values) for key, values in self._args.items()},
            {"distributedInfo": info},
            0,
            0,
            health.notes(),
            producer=AORTA,
            clock="iteration",
            recordings=tuple(self._recordings),
        )


def _column(kind: ArgKind, rows: array[int], values: list[float | int | str]) -> ArgColumn:
    at = np.array(rows, np.int32)
    if kind in ("int", "float"):
        return ArgColumn(kind, at, np.array(values, np.int64 if kind == "int" else np.float64))
    codes: dict[str, int] = {}
    numbers = [codes.setdefault(str(value), len(codes)) for value in values]
    return ArgColumn(kind, at, np.array(numbers, np.int32), list(codes))


def _ns(milliseconds: float) -> int | None:
    """None for what is no time: not finite, or further than a week away."""
    if not abs(milliseconds) < MAX_RECORDING_NS / 1e6:  # NaN too
        return None
    return round(milliseconds * 1e6)
