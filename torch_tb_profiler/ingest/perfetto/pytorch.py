"""A `.pftrace` of PyTorch (`export_chrome_trace("x.pftrace")`) to a Trace.

Host slices are track events with the arguments of the JSON as annotations; those of a GPU are track events or, in
newer versions, stages of its queues ("stream 7"), whose launch lies apart. The first versions write no categories:
what a slice is, is then told by its arguments and its name.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.markers import is_data_loading, is_optimizer, is_step
from torch_tb_profiler.ingest.gc import without_gc
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.perfetto.events import Events
from torch_tb_profiler.ingest.perfetto.sequences import Sequences, text
from torch_tb_profiler.ingest.perfetto.wire import Fields, fields, packets
from torch_tb_profiler.ingest.progress import Progress, Report
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace

_TIME, _EVENT, _STAGE, _TRACK = 8, 11, 53, 60
_BEGIN, _END = 1, 2
_STAGES = {"Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Annotation": "gpu_user_annotation"}
"""Stage of a queue -> category; all others but Kernel keep their name."""

_STREAM = re.compile(r"stream (\d{1,18})")
_LANE = re.compile(r"\[(\d{1,18})\]")
_OPERATOR = re.compile(r"\w+::|autograd::|\w+Backward\d*$")


def read_pytorch_pftrace(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Raises TraceError if the file holds no event, TooLargeError if it holds more than `limit`."""
    health, reader = HealthLog(), _Reader()
    source = Source(stream, size, report, health, limit)
    with without_gc():
        for packet in packets(source, health):
            try:
                reader.add(packet)
            except TraceError as error:
                health.add("skipped_event", "error", error.message)
            source.events = len(reader.events)
        report(Progress("arranging", size, size, len(reader.events)))
        if reader.alone:
            message = "begin or end events without their partner"
            health.add("unmatched_begin_end", "warning", message, count=reader.alone)
        return assemble(reader.events.finish(), {"schemaVersion": 1}, health)


class _Reader:
    def __init__(self) -> None:
        self.events = Events()
        self.alone = 0
        self._sequences = Sequences()
        self._places: dict[int, tuple[int, int]] = {}

    def add(self, packet: Fields) -> None:
        """Raises TraceError if a message in it is damaged."""
        self._sequences.enter(packet)
        time = next((value for field, value in packet if field == _TIME), None)
        for field, content in packet:
            if not isinstance(content, bytes):
                continue
            if field == _TRACK:
                self._track(content)
            elif field == _EVENT and isinstance(time, int):
                self._event(content, time)
            elif field == _STAGE and isinstance(time, int):
                self._stage(content, time)

    def _track(self, content: bytes) -> None:
        told = dict(fields(content))
        uuid, thread = told.get(1), told.get(4)
        if isinstance(uuid, int) and isinstance(thread, bytes):
            said = dict(fields(thread))
            pid, tid = said.get(1, 0), said.get(2, 0)
            if isinstance(pid, int) and isinstance(tid, int):
                self._places[uuid] = (pid, tid)

    def _event(self, content: bytes, time: int) -> None:
        name: str | None = None
        category: str | None = None
        kind = track = 0
        said: dict[str, Any] = {}
        for field, value in fields(content):
            if isinstance(value, int):
                if field == 9:
                    kind = value
                elif field == 11:
                    track = value
                elif field == 10:
                    name = self._sequences.name("event", value)
                elif field == 3:
                    category = self._sequences.name("category", value)
            elif field == 23:
                name = text(value)
            elif field == 22:
                category = text(value)
            elif field == 4:
                key, told = self._sequences.annotation(value)
                if key is not None:
                    said[key] = told
        if kind == _END:
            self.alone += not self.events.end(track, time)
        elif kind == _BEGIN:
            place = self._places.get(track, (0, track % 2**31))
            row = self.events.begin(track, place, category or category_of(name or "", said), name, time, None)
            self._arguments(row, said)

    def _stage(self, content: bytes, time: int) -> None:
        """Work of a GPU: one packet says all."""
        numbers: dict[int, int] = {}
        said: dict[str, Any] = {}
        name: str | None = None
        for field, value in fields(content):
            if isinstance(value, int):
                numbers[field] = value
            elif field == 17:
                name = text(value)
            elif field == 6:
                extra = dict(fields(value))
                key, told = extra.get(1), extra.get(2)
                if isinstance(key, bytes) and isinstance(told, bytes):
                    said[text(key)] = _number(text(told))
            elif field == 21:
                self._launch(value, said)
        stage = self._sequences.name("stage", numbers.get(14)) or "Kernel"
        name = (
            name
            or self._sequences.name("event", numbers.get(20))
            or self._sequences.name("kernel", numbers.get(19))
        )
        queue = self._sequences.name("stage", numbers.get(13)) or ""
        match = _STREAM.search(queue) or _LANE.match(queue)
        device, stream = numbers.get(11, 0), int(match[1]) if match else numbers.get(13, 0)
        category = "kernel" if stage == "Kernel" else _STAGES.get(stage, stage)
        row = self.events.begin(None, (device, stream), category, name or stage, time, numbers.get(2, 0))
        place = {"device": device, "stream": stream, "correlation": numbers.get(1)}
        self._arguments(row, {**place, **said})

    def _launch(self, content: bytes, said: dict[str, Any]) -> None:
        for field, value in fields(content):
            if field in (1, 2) and isinstance(value, bytes):
                size = dict(fields(value))
                said["grid" if field == 1 else "block"] = [size.get(axis, 1) for axis in (1, 2, 3)]
            elif field == 3 and isinstance(value, bytes):
                argument = dict(fields(value))
                key = self._sequences.name("argument", argument.get(1))
                if key is not None:
                    said[key] = argument.get(3, argument.get(4))

    def _arguments(self, row: int, said: dict[str, Any]) -> None:
        for key, told in said.items():
            self.events.argument(row, key, told)


def category_of(name: str, said: dict[str, Any]) -> str:
    """What a slice is whose file says no categories."""
    if "cuda_sync_kind" in said:
        return "cuda_sync"
    if "cbid" in said:
        vendor = "hip" if name.startswith("hip") else "cuda"
        return f"{vendor}_runtime" if name.startswith(("cuda", "hip")) else f"{vendor}_driver"
    if "Python id" in said or "Python module id" in said:
        return "python_function"
    if "stream" in said and "device" in said:
        return (
            "gpu_memcpy" if name.startswith("Memcpy") else "gpu_memset" if name.startswith("Memset") else "kernel"
        )
    if is_step(name) or is_data_loading(name) or is_optimizer(name):
        return "user_annotation"
    shaped = "Input Dims" in said or "Sequence number" in said
    return "cpu_op" if shaped or _OPERATOR.match(name) else "user_annotation"


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() and len(value) < 19 else value
