"""JSON of rocprofv3: an open file to a Trace, a block of records at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isfinite
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.rocprof.agents import agent_of
from torch_tb_profiler.ingest.rocprof.counted import Counted
from torch_tb_profiler.ingest.rocprof.finish import finish
from torch_tb_profiler.ingest.rocprof.records import Agents, Recording, Work
from torch_tb_profiler.ingest.rocprof.schema import Call, Copy, Counters, Dispatch, Process, Record
from torch_tb_profiler.ingest.rocprof.split import Description, Records, Splitter
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.slices import integers_or_absent
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Int64, Trace

_CALLS = ("hip_api", "hsa_api", "marker_api", "rccl_api", "rocdecode_api", "rocjpeg_api", "rocshmem_api")


def read_rocprof_json(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Raises TraceError if the file holds no work and no calls, TooLargeError if it holds more than `limit`."""
    health, recording = HealthLog(), Recording()
    source = Source(stream, size, report, health, limit)
    reader = _Reader(recording, health)
    with without_gc():
        for part in Splitter(source, health).parts():
            if isinstance(part, Description):
                reader.describe(part)
            else:
                reader.add(part)
            source.events = recording.columns.length
        reader.end_process()
        arranging = partial(report, Progress("arranging", size, size, recording.columns.length))
        arranging()
        return finish(recording, health, {}, arranging)


class _Reader:
    """Records of the process that was described last."""

    def __init__(self, recording: Recording, health: HealthLog) -> None:
        self._recording, self._health = recording, health
        self._process = Process()
        self._kernels: dict[int, str] = {}
        self._messages: dict[int, str] = {}
        self._counters: dict[int | None, str] = {}
        self._counted = Counted()
        self._only_counted: list[Dispatch] = []
        readers: dict[str, tuple[type[Any], Callable[[Sequence[Any]], None]]] = {
            "counter_collection": (Counters, self._add_counters),
            "kernel_dispatch": (Dispatch, self._add_dispatches),
            "memory_copy": (Copy, self._add_copies),
        }
        readers.update(dict.fromkeys(_CALLS, (Call, self._add_calls)))
        self._readers = readers

    def describe(self, description: Description) -> None:
        """Raises TraceError if it is no JSON."""
        self.end_process()
        try:
            self._process = msgspec.json.decode(description.text, type=Process)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TraceError(f"the description of a process cannot be read: {error}") from error
        agents = [agent_of(each) for each in self._process.agents]
        self._kernels = {each.kernel_id: each.name for each in self._process.kernel_symbols}
        self._messages = {each.key: each.value for each in self._process.strings.marker_api}
        self._counters = {each.id.handle: each.name for each in self._process.counters}
        self._counted = Counted()
        self._recording.begin_process(
            self._process.metadata.pid,
            self._process.metadata.command_line,
            Agents(agent for agent in agents if agent is not None),
        )

    def add(self, block: Records) -> None:
        """Records that cannot be read are noted and left out, and so are kinds that are not shown."""
        if block.kind in self._readers:
            type_, add = self._readers[block.kind]
            add([*self._decoded(block, type_)])

    def end_process(self) -> None:
        """Dispatches that were counted and not traced are kernels, too."""
        if self._only_counted:
            self._add_dispatches(self._only_counted)

    def _decoded(self, block: Records, type_: type[Any]) -> Iterator[Any]:
        try:
            yield from msgspec.json.decode(block.text, type=list[type_])  # type: ignore[valid-type]
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            single = msgspec.json.decode(block.text, type=list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._skipped("blocks of records")
            return
        for each in single:
            try:
                yield msgspec.json.decode(each, type=type_)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._skipped("records")

    def _skipped(self, what: str) -> None:
        self._health.add("skipped_event", "error", f"{what} that cannot be read were skipped")

    def _add_counters(self, records: Sequence[Counters]) -> None:
        """They come before the dispatches."""
        for record in records:
            dispatch = record.dispatch_data.dispatch_info.dispatch_id
            if dispatch is None:
                continue
            for each in record.records:
                name = self._counters.get(each.counter_id.handle)
                if name and isfinite(each.value):
                    self._counted.add(name, dispatch, each.value)
            self._only_counted.append(record.dispatch())

    def _add_dispatches(self, records: Sequence[Dispatch]) -> None:
        self._only_counted = []
        dispatches = [each.dispatch_info for each in records]
        ids = integers_or_absent([each.dispatch_id for each in dispatches])
        self._recording.dispatches(
            self._work(
                records,
                [self._kernels.get(each.kernel_id) for each in dispatches],
                [d.queue_id.handle for d in dispatches],
            ),
            integers_or_absent([each.agent_id.handle for each in dispatches]),
            [integers_or_absent([getattr(each.grid_size, axis) for each in dispatches]) for axis in "xyz"],
            [integers_or_absent([getattr(each.workgroup_size, axis) for each in dispatches]) for axis in "xyz"],
            self._counted.of(ids),
            dispatch_id=ids,
            shared_memory=integers_or_absent([each.group_segment_size for each in dispatches]),
            scratch_memory=integers_or_absent([each.private_segment_size for each in dispatches]),
        )

    def _add_copies(self, records: Sequence[Copy]) -> None:
        self._recording.copies(
            self._work(records, [self._operation(each) for each in records], [None] * len(records)),
            integers_or_absent([each.src_agent_id.handle for each in records]),
            integers_or_absent([each.dst_agent_id.handle for each in records]),
            integers_or_absent([each.bytes for each in records]),
        )

    def _add_calls(self, records: Sequence[Call]) -> None:
        domains = [self._process.domain(each.kind) for each in records]
        correlation = [each.correlation_id.internal for each in records]
        self._recording.calls(
            domains,
            [self._operation(each) for each in records],
            [
                self._messages.get(id) if domain and domain.startswith("MARKER_CORE") and id is not None else None
                for id, domain in zip(correlation, domains, strict=True)
            ],
            integers_or_absent([self._process.metadata.pid] * len(records)),
            integers_or_absent([each.thread_id for each in records]),
            _starts(records),
            _ends(records),
            integers_or_absent(correlation),
        )

    def _work(self, records: Sequence[Any], names: Sequence[str | None], queues: Sequence[Any]) -> Work:
        return Work(
            names,
            _starts(records),
            _ends(records),
            integers_or_absent([each.correlation_id.internal for each in records]),
            integers_or_absent([each.stream_id.handle if each.stream_id else None for each in records]),
            integers_or_absent(queues),
        )

    def _operation(self, record: Record) -> str | None:
        return self._process.operation(record.kind, record.operation)


def _starts(records: Sequence[Record]) -> Int64:
    return integers_or_absent([each.start_timestamp for each in records])


def _ends(records: Sequence[Record]) -> Int64:
    return integers_or_absent([each.end_timestamp for each in records])
