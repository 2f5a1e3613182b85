"""A `.pftrace` of rocprofv3 to a Trace.

Each record is a slice that carries its own times (`begin_ns`, `end_ns`), whatever the clock of its packet, so the
packet that ends it says nothing more. Products of sizes take the place of grids and blocks. Agents are told by
their index ("GPU-1"), not described. Samples of counter tracks have no time but that of their packet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.codes import Codes
from torch_tb_profiler.ingest.perfetto.content import Columns, Content
from torch_tb_profiler.ingest.perfetto.counters import Counters, Tracks, samples
from torch_tb_profiler.ingest.perfetto.reading import Packets, read_packets
from torch_tb_profiler.ingest.perfetto.sequences import Sequences
from torch_tb_profiler.ingest.perfetto.values import Cells, Reader, numbers_of, text_codes
from torch_tb_profiler.ingest.perfetto.wire import fields, signed, text
from torch_tb_profiler.ingest.progress import Report, Step
from torch_tb_profiler.ingest.rocprof.finish import finish
from torch_tb_profiler.ingest.rocprof.records import Agent, Agents, Recording, Work
from torch_tb_profiler.ingest.slices import Coded
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace

_EVENT, _TRACK = 11, 60
_BEGIN, _SAMPLE = 1, 4
"""Types of events."""

_NOT_READ = "samples of counters are left out: the file does not say their time, their value or their track"
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
    return read_packets(_Reader(), stream, size=size, report=report, limit=limit)


class _Reader:
    def __init__(self) -> None:
        self.sequences = Sequences()
        self._recording = Recording()
        self.columns = self._recording.columns
        self._values = Reader(self.sequences)
        self._process: int | None = None
        self._tracks = Tracks()
        self._not_read = 0

    def finish(self, health: HealthLog, base_ns: int | None, step: Step) -> Trace:
        self._tracks.append_to(Counters(self.columns, self.sequences), self._process)
        step()
        if self._not_read:
            health.add("counters_not_read", "warning", _NOT_READ, count=self._not_read)
        return finish(self._recording, health, {}, step, base_ns)

    def add(self, packets: Packets) -> int:
        damaged = 0
        for begin, size in zip(*(part.tolist() for part in packets.parts(_TRACK)[1:]), strict=True):
            try:
                self._track(packets.content.content[begin : begin + size])
            except TraceError:
                damaged += 1
        packet, at, size = packets.parts(_EVENT)
        content, generation = packets.content, packets.generation[packet]
        read = content.fields(at, size)
        sampled = np.flatnonzero((read.numbers(9) == _SAMPLE) & ~read.damaged)
        self._not_read += self._tracks.add(
            read.numbers(11)[sampled], packets.time[packet][sampled], samples(read, sampled)
        )
        noted = read.parts(4)
        begun = read.numbers(9)[noted[0]] == _BEGIN
        cells = list(
            self._values.annotations(content, tuple(part[begun] for part in noted), generation, read.damaged)
        )
        names, categories = Codes(), Codes()
        name = self._named(content, read, 10, 23, "event", generation, names)
        category = self._named(content, read, 3, 22, "category", generation, categories)
        slices = _Told(cells, read.count, Coded([*names.table(), None], name))
        wanted = (read.numbers(9) == _BEGIN) & ~read.damaged & (slices.numbers("begin_ns") != ABSENT)
        for code, kind in enumerate(categories.table()):
            chosen = np.flatnonzero(wanted & (category == code))
            if len(chosen):
                self._add(kind, slices.of(chosen))
        return damaged + int(read.damaged.sum())

    def _add(self, category: str, slices: _Told) -> None:
        if category == "kernel_dispatch":
            self._dispatches(slices)
        elif category == "memory_copy":
            self._copies(slices)
        elif category in _CALLS:
            self._calls(category, slices)

    def _track(self, content: bytes) -> None:
        track = dict(fields(content))
        uuid, name, counter = track.get(1), track.get(2, track.get(10)), track.get(8)
        if isinstance(uuid, int) and isinstance(name, bytes) and isinstance(counter, bytes):
            self._tracks.describe(signed(uuid), text(name), counter)
        for descriptor in (track.get(3), track.get(4)):  # of a process, of a thread
            if self._process is None and isinstance(descriptor, bytes):
                pid = dict(fields(descriptor)).get(1)
                self._process = pid if isinstance(pid, int) else None

    def _named(
        self,
        content: Content,
        read: Columns,
        by_number: int,
        spelled: int,
        kind: str,
        generation: Int64,
        table: Codes,
    ) -> Int32:
        """int32[k]: codes of texts that events refer to by number or spell out."""
        code = self.sequences.codes(kind, generation, read.numbers(by_number), table)
        event, at, size = read.parts(spelled)
        code[event] = text_codes(table, content.pieces(at, size))
        return code

    def _calls(self, category: str, slices: _Told) -> None:
        count = len(slices)
        self._recording.calls(
            Coded([_CALLS[category]], np.zeros(count, np.int64)),
            slices.name,
            slices.name if category == "marker_api" else Coded([None], np.zeros(count, np.int64)),
            np.full(count, ABSENT if self._process is None else self._process, np.int64),
            slices.numbers("tid"),
            slices.numbers("begin_ns"),
            slices.numbers("end_ns"),
            slices.numbers("corr_id"),
        )

    def _dispatches(self, slices: _Told) -> None:
        self._recording.dispatches(
            slices.work(slices.name.map(lambda name: name.removesuffix(_CLONE) or None)),
            slices.agents("agent"),
            None,
            None,
            work_items=slices.numbers("grid_size"),
            block_size=slices.numbers("workgroup_size"),
            shared_memory=slices.numbers("LDS_Block_Size"),
            scratch_memory=slices.numbers("Scratch_Size"),
        )

    def _copies(self, slices: _Told) -> None:
        source, target = slices.agents("src_agent"), slices.agents("dst_agent")
        # Labels do not say which agent is a GPU; the names of copies do.
        inbound = np.array([str(name).endswith("_TO_DEVICE") for name in slices.name.texts], np.bool_)[
            slices.name.of
        ]
        gpus = np.unique(target[inbound & (target != ABSENT)]).tolist()
        self._recording.know(Agents(Agent(id, id, gpu=True) for id in gpus))
        self._recording.copies(slices.work(slices.name), source, target, slices.numbers("copy_bytes"))


class _Told:
    """What k records say, by key."""

    def __init__(self, cells: Sequence[Cells], count: int, name: Coded, chosen: Int64 | None = None) -> None:
        self._cells, self._count = cells, count
        self._chosen = np.arange(count) if chosen is None else chosen
        self.name = Coded(name.texts, name.of[self._chosen])

    def __len__(self) -> int:
        return len(self._chosen)

    def of(self, chosen: Int64) -> _Told:
        return _Told(self._cells, self._count, self.name, chosen)

    def numbers(self, key: str) -> Int64:
        return numbers_of(self._cells, key, self._count)[self._chosen]

    def agents(self, key: str) -> Int64:
        """The numbers in "GPU-1", "Agent-4" or, before ROCm 7, the numbers themselves."""
        agent = numbers_of(self._cells, key, self._count)
        for each in self._cells:
            if each.key == key and each.kind == "text":
                known = {text: _agent(text) for text in set(each.values)}
                agent[each.events] = [known[text] for text in each.values]
        return agent[self._chosen]

    def work(self, names: Coded) -> Work:
        keys = ("begin_ns", "end_ns", "corr_id", "stream_ID", "queue")
        return Work(names, *(self.numbers(key) for key in keys))


def _agent(label: str) -> int:
    match = _AGENT.search(label)
    return int(match[0][:18]) if match else int(ABSENT)
