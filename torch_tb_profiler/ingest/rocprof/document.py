"""JSON of rocprofv3, read a block of records at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isfinite
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.ingest.rocprof.agents import Agents, parse_agent
from torch_tb_profiler.ingest.rocprof.counters import CounterSums
from torch_tb_profiler.ingest.rocprof.records import RecordingBuilder, WorkRecords, build_trace
from torch_tb_profiler.ingest.rocprof.schema import (
    CallRecord,
    CopyRecord,
    CountedDispatchRecord,
    DispatchRecord,
    ProcessDescription,
    RocprofRecord,
)
from torch_tb_profiler.ingest.rocprof.split import DescriptionText, DocumentSplitter, RecordBlock
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.slices import integers_or_absent
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Int64, Trace

_CALLS = ("hip_api", "hsa_api", "marker_api", "rccl_api", "rocdecode_api", "rocjpeg_api", "rocshmem_api")


def read_rocprof_json(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read a JSON file; raise TraceError if it has no work and no calls, TooLargeError if it exceeds `limit`."""
    health, recording = HealthLog(), RecordingBuilder()
    source = UnpackedStream(stream, size, report, health, limit)
    reader = _RecordReader(recording, health)
    with without_gc():
        for part in DocumentSplitter(source, health).parts():
            if isinstance(part, DescriptionText):
                reader.describe(part)
            else:
                reader.add(part)
            source.events = recording.columns.length
        reader.end_process()
        report_arranging = partial(report, Progress("arranging", size, size, recording.columns.length))
        report_arranging()
        return build_trace(recording, health, {}, report_arranging)


class _RecordReader:
    """Reads the records of the process that was described last."""

    def __init__(self, recording: RecordingBuilder, health: HealthLog) -> None:
        self._recording, self._health = recording, health
        self._process = ProcessDescription()
        self._kernels: dict[int, str] = {}
        self._messages: dict[int, str] = {}
        self._counter_names: dict[int | None, str] = {}
        self._counter_sums = CounterSums()
        self._counted_dispatches: list[DispatchRecord] = []
        readers: dict[str, tuple[type[Any], Callable[[Sequence[Any]], None]]] = {
            "counter_collection": (CountedDispatchRecord, self._add_counters),
            "kernel_dispatch": (DispatchRecord, self._add_dispatches),
            "memory_copy": (CopyRecord, self._add_copies),
        }
        readers.update(dict.fromkeys(_CALLS, (CallRecord, self._add_calls)))
        self._readers = readers

    def describe(self, description: DescriptionText) -> None:
        """Start the described process; raise TraceError if its description isn't JSON."""
        self.end_process()
        try:
            self._process = msgspec.json.decode(description.text, type=threadsafe(ProcessDescription))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TraceError(f"the description of a process cannot be read: {error}") from error
        agents = [parse_agent(each) for each in self._process.agents]
        self._kernels = {each.kernel_id: each.name for each in self._process.kernel_symbols}
        self._messages = {each.key: each.value for each in self._process.strings.marker_api}
        self._counter_names = {each.id.handle: each.name for each in self._process.counters}
        self._counter_sums = CounterSums()
        self._recording.begin_process(
            self._process.metadata.pid,
            self._process.metadata.command_line,
            Agents(agent for agent in agents if agent is not None),
        )

    def add(self, block: RecordBlock) -> None:
        """Add records; unreadable ones are noted and skipped, and kinds that no view shows are skipped."""
        if block.kind in self._readers:
            type_, add = self._readers[block.kind]
            add([*self._decode(block, type_)])

    def end_process(self) -> None:
        """Add the dispatches that were counted but not traced: they are kernels as well."""
        if self._counted_dispatches:
            self._add_dispatches(self._counted_dispatches)

    def _decode(self, block: RecordBlock, type_: type[Any]) -> Iterator[Any]:
        try:
            yield from msgspec.json.decode(block.text, type=threadsafe(list[type_]))  # type: ignore[valid-type]
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            single = msgspec.json.decode(block.text, type=list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._note_skipped("blocks of records")
            return
        for each in single:
            try:
                yield msgspec.json.decode(each, type=threadsafe(type_))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._note_skipped("records")

    def _note_skipped(self, what: str) -> None:
        self._health.add("skipped_event", "error", f"{what} that cannot be read were skipped")

    def _add_counters(self, records: Sequence[CountedDispatchRecord]) -> None:
        """Add counters; they come before the dispatches in the file."""
        for record in records:
            dispatch = record.dispatch_data.dispatch_info.dispatch_id
            if dispatch is None:
                continue
            for each in record.records:
                name = self._counter_names.get(each.counter_id.handle)
                if name and isfinite(each.value):
                    self._counter_sums.add(name, dispatch, each.value)
            self._counted_dispatches.append(record.dispatch())

    def _add_dispatches(self, records: Sequence[DispatchRecord]) -> None:
        self._counted_dispatches = []
        dispatches = [each.dispatch_info for each in records]
        ids = integers_or_absent([each.dispatch_id for each in dispatches])
        self._recording.add_dispatches(
            self._device_work(
                records,
                [self._kernels.get(each.kernel_id) for each in dispatches],
                [d.queue_id.handle for d in dispatches],
            ),
            integers_or_absent([each.agent_id.handle for each in dispatches]),
            [integers_or_absent([getattr(each.grid_size, axis) for each in dispatches]) for axis in "xyz"],
            [integers_or_absent([getattr(each.workgroup_size, axis) for each in dispatches]) for axis in "xyz"],
            self._counter_sums.values(ids),
            dispatch_id=ids,
            shared_memory=integers_or_absent([each.group_segment_size for each in dispatches]),
            scratch_memory=integers_or_absent([each.private_segment_size for each in dispatches]),
        )

    def _add_copies(self, records: Sequence[CopyRecord]) -> None:
        self._recording.add_copies(
            self._device_work(records, [self._operation_name(each) for each in records], [None] * len(records)),
            integers_or_absent([each.src_agent_id.handle for each in records]),
            integers_or_absent([each.dst_agent_id.handle for each in records]),
            integers_or_absent([each.bytes for each in records]),
        )

    def _add_calls(self, records: Sequence[CallRecord]) -> None:
        domains = [self._process.domain_name(each.kind) for each in records]
        correlation = [each.correlation_id.internal for each in records]
        self._recording.add_calls(
            domains,
            [self._operation_name(each) for each in records],
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

    def _device_work(
        self, records: Sequence[Any], names: Sequence[str | None], queues: Sequence[Any]
    ) -> WorkRecords:
        return WorkRecords(
            names,
            _starts(records),
            _ends(records),
            integers_or_absent([each.correlation_id.internal for each in records]),
            integers_or_absent([each.stream_id.handle if each.stream_id else None for each in records]),
            integers_or_absent(queues),
        )

    def _operation_name(self, record: RocprofRecord) -> str | None:
        return self._process.operation_name(record.kind, record.operation)


def _starts(records: Sequence[RocprofRecord]) -> Int64:
    return integers_or_absent([each.start_timestamp for each in records])


def _ends(records: Sequence[RocprofRecord]) -> Int64:
    return integers_or_absent([each.end_timestamp for each in records])
