"""A `.pftrace` of rocprofv3 to a Trace.

Each record is a slice that carries its own times (`begin_ns`, `end_ns`), whatever the clock of its packet, so the
packet that ends it says nothing more. Products of sizes take the place of grids and blocks. Agents are told by
their index ("GPU-1"), not described.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.gc import without_gc
from torch_tb_profiler.ingest.perfetto.sequences import Sequences, text
from torch_tb_profiler.ingest.perfetto.wire import Fields, fields, packets
from torch_tb_profiler.ingest.progress import Progress, Report
from torch_tb_profiler.ingest.rocprof.finish import finish
from torch_tb_profiler.ingest.rocprof.records import Agent, Agents, Recording, Work
from torch_tb_profiler.ingest.slices import whole_numbers
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace

_EVENT, _TRACK = 11, 60
_BEGIN = 1
_BLOCK = 1 << 14
"""Records that are held as Python objects at a time."""

_CALLS = {
    "hip_api": "HIP_RUNTIME_API",
    "hsa_api": "HSA_CORE_API",
    "marker_api": "MARKER_CORE_RANGE_API",
    "rccl_api": "RCCL_API",
}
_AGENT = re.compile(r"\d+")
_CLONE = " [clone .kd]"
"""What demangling makes of the end of a kernel's symbol."""


def read_rocprof_pftrace(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Raises TraceError if the file holds no record, TooLargeError if it holds more than `limit`."""
    health, reader = HealthLog(), _Reader()
    source = Source(stream, size, report, health, limit)
    with without_gc():
        for packet in packets(source, health):
            try:
                reader.add(packet)
            except TraceError as error:
                health.add("skipped_event", "error", error.message)
            source.events = reader.recording.columns.length
        reader.flush()
        report(Progress("arranging", size, size, reader.recording.columns.length))
        return finish(reader.recording, health, {})


class _Reader:
    """Collects records by category and hands them on in blocks."""

    def __init__(self) -> None:
        self.recording = Recording()
        self._sequences = Sequences()
        self._process: int | None = None
        self._held: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._count = 0

    def add(self, packet: Fields) -> None:
        """Raises TraceError if a message in it is damaged."""
        self._sequences.enter(packet)
        for field, content in packet:
            if field == _EVENT and isinstance(content, bytes):
                self._event(content)
            elif field == _TRACK and isinstance(content, bytes) and self._process is None:
                self._track(content)

    def flush(self) -> None:
        """Hand on all that is collected."""
        for category, records in self._held.items():
            if category == "kernel_dispatch":
                self._dispatches(records)
            elif category == "memory_copy":
                self._copies(records)
            else:
                self._calls(category, records)
        self._held.clear()
        self._count = 0

    def _track(self, content: bytes) -> None:
        for field, descriptor in fields(content):
            if field in (3, 4) and isinstance(descriptor, bytes):  # of a process, of a thread
                pid = dict(fields(descriptor)).get(1)
                if isinstance(pid, int):
                    self._process = pid

    def _event(self, content: bytes) -> None:
        said: dict[str, Any] = {}
        category, name, kind = None, None, None
        for field, value in fields(content):
            if field == 9:
                kind = value
            elif field == 3:
                category = self._sequences.name("category", value) or category
            elif field == 22 and isinstance(value, bytes):
                category = text(value)
            elif field == 10:
                name = self._sequences.name("event", value)
            elif field == 23 and isinstance(value, bytes):
                name = text(value)
            elif field == 4 and isinstance(value, bytes):
                key, told = self._sequences.annotation(value)
                if key is not None:
                    said[key] = told
        if kind != _BEGIN or category is None or "begin_ns" not in said:
            return
        if category in _CALLS or category in ("kernel_dispatch", "memory_copy"):
            said["name"] = name
            self._held[category].append(said)
            self._count += 1
            if self._count >= _BLOCK:
                self.flush()

    def _calls(self, category: str, records: list[dict[str, Any]]) -> None:
        names = [each["name"] for each in records]
        self.recording.calls(
            [_CALLS[category]] * len(records),
            names,
            names if category == "marker_api" else [None] * len(records),
            [self._process] * len(records),
            [each.get("tid") for each in records],
            _column(records, "begin_ns"),
            _column(records, "end_ns"),
            _column(records, "corr_id"),
        )

    def _dispatches(self, records: list[dict[str, Any]]) -> None:
        for each in records:
            each["name"] = (each["name"] or "").removesuffix(_CLONE) or None
        agents = whole_numbers([_agent(each.get("agent")) for each in records])
        self.recording.dispatches(
            self._work(records),
            agents,
            None,
            None,
            work_items=_column(records, "grid_size"),
            block_size=_column(records, "workgroup_size"),
            shared_memory=_column(records, "LDS_Block_Size"),
            scratch_memory=_column(records, "Scratch_Size"),
        )

    def _copies(self, records: list[dict[str, Any]]) -> None:
        ends = [[each.get(key) for each in records] for key in ("src_agent", "dst_agent")]
        # Labels do not say which agent is a GPU; the names of copies do.
        gpus = {_agent(each.get("dst_agent")) for each in records if str(each["name"]).endswith("_TO_DEVICE")}
        self.recording.know(Agents(Agent(id, id, gpu=True) for id in gpus if id is not None))
        source, target = (whole_numbers([_agent(value) for value in column]) for column in ends)
        self.recording.copies(self._work(records), source, target, _column(records, "copy_bytes"))

    @staticmethod
    def _work(records: list[dict[str, Any]]) -> Work:
        return Work(
            [each["name"] for each in records],
            _column(records, "begin_ns"),
            _column(records, "end_ns"),
            _column(records, "corr_id"),
            _column(records, "stream_ID"),
            _column(records, "queue"),
        )


def _column(records: list[dict[str, Any]], key: str) -> Any:
    return whole_numbers([each.get(key) for each in records])


def _agent(label: object) -> int | None:
    """The number in "GPU-1", "Agent-4" or, before ROCm 7, the number itself."""
    match = _AGENT.search(str(label))
    return int(match[0][:18]) if match else None
