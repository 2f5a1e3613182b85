"""Read a `.pftrace` of rocprofv3 into a Trace.

Each record is a slice with its own times (`begin_ns`, `end_ns`), independent of the clock of its packet, so the
packet that ends it adds nothing. Grids and blocks are given as products of their sizes. Agents are identified by
index ("GPU-1") and not described. Samples of counter tracks have only the time of their packet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.kineto.codes import Codes
from torch_tb_profiler.ingest.perfetto.counters import CounterTracks, CounterWriter, sample_values
from torch_tb_profiler.ingest.perfetto.interned import InternedTexts
from torch_tb_profiler.ingest.perfetto.packets import (
    EVENT_ANNOTATIONS,
    EVENT_CATEGORY,
    EVENT_NAME,
    EVENT_TRACK,
    EVENT_TYPE,
    SAMPLE,
    SLICE_BEGIN,
    TRACK_DESCRIPTOR,
    TRACK_EVENT,
    Packets,
    read_packets,
)
from torch_tb_profiler.ingest.perfetto.protobuf import decode_text, parse_fields, to_signed
from torch_tb_profiler.ingest.perfetto.values import AnnotationReader, ArgumentCells, integer_values
from torch_tb_profiler.ingest.rocprof.agents import Agent, Agents
from torch_tb_profiler.ingest.rocprof.records import RecordingBuilder, WorkRecords, build_trace
from torch_tb_profiler.ingest.runtime import Report, ReportStep
from torch_tb_profiler.ingest.slices import CodedTexts
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

_SAMPLES_LEFT_OUT = "counter samples without a time, a value, or a described track; left out"
_CALL_DOMAINS = {
    "hip_api": "HIP_RUNTIME_API",
    "hsa_api": "HSA_CORE_API",
    "marker_api": "MARKER_CORE_RANGE_API",
    "rccl_api": "RCCL_API",
}
_AGENT_NUMBER = lazy_regex(r"\d+")
_CLONE = " [clone .kd]"
"""Suffix that demangling adds to a kernel's symbol."""


def read_rocprof_pftrace(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read the trace. Raises TraceError without any record, TooLargeError beyond `limit` bytes."""
    return read_packets(_RocprofReader(), stream, size=size, report=report, limit=limit)


class _RocprofReader:
    """A `PacketReader` of rocprofv3's traces."""

    def __init__(self) -> None:
        self.interned = InternedTexts()
        self._recording = RecordingBuilder()
        self.columns = self._recording.columns
        self._values = AnnotationReader(self.interned)
        self._process: int | None = None
        self._tracks = CounterTracks()
        self._left_out_samples = 0

    def finish(self, health: HealthLog, base_ns: int | None, step: ReportStep) -> Trace:
        self._tracks.append_to(CounterWriter(self.columns, self.interned), self._process)
        step()
        if self._left_out_samples:
            health.add("counters_not_read", "warning", _SAMPLES_LEFT_OUT, count=self._left_out_samples)
        return build_trace(self._recording, health, {}, step, base_ns)

    def add(self, packets: Packets) -> int:
        damaged = 0
        for track in packets.messages(TRACK_DESCRIPTOR):
            try:
                self._add_track(track)
            except TraceError:
                damaged += 1
        packet, at, size = packets.parts(TRACK_EVENT)
        content, generation = packets.content, packets.generation[packet]
        read = content.parse_fields(at, size)
        sampled = np.flatnonzero((read.numbers(EVENT_TYPE) == SAMPLE) & ~read.damaged)
        self._left_out_samples += self._tracks.add(
            read.numbers(EVENT_TRACK)[sampled], packets.time[packet][sampled], sample_values(read, sampled)
        )
        annotations = read.parts(EVENT_ANNOTATIONS)
        is_begin = read.numbers(EVENT_TYPE)[annotations[0]] == SLICE_BEGIN
        cells = list(
            self._values.annotations(
                content, tuple(part[is_begin] for part in annotations), generation, read.damaged
            )
        )
        names, categories = Codes(), Codes()
        name = self.interned.field_codes("event", generation, content, read, EVENT_NAME, names)
        category = self.interned.field_codes("category", generation, content, read, EVENT_CATEGORY, categories)
        slices = _RecordValues(cells, read.count, CodedTexts([*names.table(), None], name))
        wanted = (read.numbers(EVENT_TYPE) == SLICE_BEGIN) & ~read.damaged & (slices.numbers("begin_ns") != ABSENT)
        for code, kind in enumerate(categories.table()):
            chosen = np.flatnonzero(wanted & (category == code))
            if len(chosen):
                self._add_records(kind, slices.select(chosen))
        return damaged + int(read.damaged.sum())

    def _add_records(self, category: str, slices: _RecordValues) -> None:
        if category == "kernel_dispatch":
            self._add_dispatches(slices)
        elif category == "memory_copy":
            self._add_copies(slices)
        elif category in _CALL_DOMAINS:
            self._add_calls(category, slices)

    def _add_track(self, content: bytes) -> None:
        track = dict(parse_fields(content))
        uuid, name, counter = track.get(1), track.get(2, track.get(10)), track.get(8)
        if isinstance(uuid, int) and isinstance(name, bytes) and isinstance(counter, bytes):
            self._tracks.describe(to_signed(uuid), decode_text(name), counter)
        for descriptor in (track.get(3), track.get(4)):  # of a process, of a thread
            if self._process is None and isinstance(descriptor, bytes):
                pid = dict(parse_fields(descriptor)).get(1)
                self._process = pid if isinstance(pid, int) else None

    def _add_calls(self, category: str, slices: _RecordValues) -> None:
        count = len(slices)
        self._recording.add_calls(
            CodedTexts([_CALL_DOMAINS[category]], np.zeros(count, np.int64)),
            slices.name,
            slices.name if category == "marker_api" else CodedTexts([None], np.zeros(count, np.int64)),
            np.full(count, ABSENT if self._process is None else self._process, np.int64),
            slices.numbers("tid"),
            slices.numbers("begin_ns"),
            slices.numbers("end_ns"),
            slices.numbers("corr_id"),
        )

    def _add_dispatches(self, slices: _RecordValues) -> None:
        self._recording.add_dispatches(
            slices.work(slices.name.map(lambda name: name.removesuffix(_CLONE) or None)),
            slices.agents("agent"),
            None,
            None,
            work_items=slices.numbers("grid_size"),
            block_size=slices.numbers("workgroup_size"),
            shared_memory=slices.numbers("LDS_Block_Size"),
            scratch_memory=slices.numbers("Scratch_Size"),
        )

    def _add_copies(self, slices: _RecordValues) -> None:
        source, target = slices.agents("src_agent"), slices.agents("dst_agent")
        # Labels don't say which agent is a GPU, but the names of copies do.
        inbound = np.array([str(name).endswith("_TO_DEVICE") for name in slices.name.texts], np.bool_)[
            slices.name.index
        ]
        gpus = np.unique(target[inbound & (target != ABSENT)]).tolist()
        self._recording.set_agents(Agents(Agent(id, id, gpu=True) for id in gpus))
        self._recording.add_copies(slices.work(slices.name), source, target, slices.numbers("copy_bytes"))


class _RecordValues:
    """The values of k records, by key."""

    def __init__(
        self, cells: Sequence[ArgumentCells], count: int, name: CodedTexts, chosen: Int64 | None = None
    ) -> None:
        self._cells, self._count = cells, count
        self._chosen = np.arange(count) if chosen is None else chosen
        self.name = CodedTexts(name.texts, name.index[self._chosen])

    def __len__(self) -> int:
        return len(self._chosen)

    def select(self, chosen: Int64) -> _RecordValues:
        return _RecordValues(self._cells, self._count, self.name, chosen)

    def numbers(self, key: str) -> Int64:
        return integer_values(self._cells, key, self._count)[self._chosen]

    def agents(self, key: str) -> Int64:
        """Return the agent numbers: from "GPU-1" or "Agent-4", or plain numbers before ROCm 7."""
        agent = integer_values(self._cells, key, self._count)
        for each in self._cells:
            if each.key == key and each.kind == "text":
                numbers = {label: _agent_number(label) for label in set(each.values)}
                agent[each.events] = [numbers[label] for label in each.values]
        return agent[self._chosen]

    def work(self, names: CodedTexts) -> WorkRecords:
        keys = ("begin_ns", "end_ns", "corr_id", "stream_ID", "queue")
        return WorkRecords(names, *(self.numbers(key) for key in keys))


def _agent_number(label: str) -> int:
    match = _AGENT_NUMBER.search(label)
    return int(match[0][:18]) if match else int(ABSENT)
