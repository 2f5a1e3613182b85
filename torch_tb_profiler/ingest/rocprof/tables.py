"""Tables of rocprofv3 (`--output-format csv`, the default before ROCm 7), one recording's tables in sequence.

"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API","hipLaunchKernel",717,717,3,1520113899684965,1520113901491622
"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",...
"KERNEL_DISPATCH","Agent 1",1,0,717,1,15,"transpose(float*, int)",3,1520113899690000,1520113899700000,...
"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id",...
"Node_Id","Logical_Node_Id","Agent_Type",...

Columns differ between versions and are found by name. `rocpd2csv` adds a `Guid` per process. The tables have no
sizes of copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.rocprof.agents import DeviceLabels
from torch_tb_profiler.ingest.rocprof.counters import split_cells
from torch_tb_profiler.ingest.rocprof.records import PROCESS_SHIFT, RecordingBuilder, WorkRecords, build_trace
from torch_tb_profiler.ingest.rocprof.sniff import parse_header
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.slices import CodedTexts
from torch_tb_profiler.ingest.source import UnpackedStream, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

CHUNK_ROWS = 1 << 16
"""Limit of the rows that are in memory as texts."""

CHUNK_BYTES = 16 << 20
"""Limit of the lines of these rows."""

_AXES = ("x", "y", "z")
_AGENT_COLUMNS = (
    "node_id",
    "logical_node_id",
    "agent_type",
    "cu_count",
    "wave_front_size",
    "name",
    "product_name",
    "model_name",
)
_MARKER_PREFIX = "MARKER_CORE"
_COPY_PREFIX = "MEMORY_COPY_"


def read_tables(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read tables; raise TraceError if they have no row of work or calls, TooLargeError if they exceed `limit`."""
    health, recording = HealthLog(), RecordingBuilder()
    source = UnpackedStream(stream, size, report, health, limit)
    tables = _TableReader(recording, health)
    with without_gc():
        for offset, line in read_lines(source, health):
            tables.add(line, offset)
            source.events = recording.columns.length
        tables.finish()
        report_arranging = partial(report, Progress("arranging", size, size, recording.columns.length))
        report_arranging()
        return build_trace(recording, health, {}, report_arranging)


class _TableReader:
    """Collects rows line by line; a header starts another table."""

    def __init__(self, recording: RecordingBuilder, health: HealthLog) -> None:
        self._recording, self._health = recording, health
        self._names: list[str] = []
        self._add_rows: Callable[[_RowChunk], None] | None = None
        self._rows: list[list[str]] = []
        self._row_bytes = 0
        self._processes: dict[str, int] = {}
        self._labels = DeviceLabels()

    def add(self, line: bytes, offset: int) -> None:
        """Add a row; an unreadable one is noted and skipped."""
        if names := parse_header(line):
            self._flush()
            self._names, self._add_rows = names, self._row_adder(set(names))
            return
        cells = split_cells(line)
        if self._add_rows is None or len(cells) != len(self._names):
            self._health.add(
                "line_unreadable", "warning", "a line that is not a row of its table is skipped", offset=offset
            )
        else:
            self._rows.append(cells)
            self._row_bytes += len(line)
            if len(self._rows) >= CHUNK_ROWS or self._row_bytes >= CHUNK_BYTES:
                self._flush()

    def finish(self) -> None:
        """Add the remaining rows; raise TraceError if no line was a row of work or calls."""
        self._flush()
        if self._recording.columns.length == 0:
            raise TraceError(
                "the table has no calls, kernels, or copies",
                hint="choose what rocprofv3 traces, for example `--hip-trace --kernel-trace`",
            )
        self._recording.devices.update((each["id"], each) for each in self._labels.device_properties())

    def _row_adder(self, names: set[str]) -> Callable[[_RowChunk], None]:
        if "kernel_name" in names:
            return self._add_kernels
        if "direction" in names:
            return self._add_copies
        return self._add_calls if "function" in names else self._add_agents

    def _flush(self) -> None:
        rows, self._rows, self._row_bytes = self._rows, [], 0
        if rows and self._add_rows is not None:
            self._add_rows(_RowChunk(dict(zip(self._names, zip(*rows, strict=True), strict=True)), len(rows)))

    def _add_agents(self, chunk: _RowChunk) -> None:
        for row in zip(*(chunk.texts(name) for name in _AGENT_COLUMNS), strict=True):
            self._labels.add_description(dict(zip(_AGENT_COLUMNS, row, strict=True)))

    def _add_kernels(self, chunk: _RowChunk) -> None:
        device = self._labels.numbers(chunk.coded_texts("agent_id"))
        grid, block = ([chunk.numbers(f"{what}_size_{axis}") for axis in _AXES] for what in ("grid", "workgroup"))
        self._recording.add_dispatches(
            self._device_work(chunk, chunk.coded_texts("kernel_name")),
            device,
            grid,
            block,
            dispatch_id=chunk.numbers("dispatch_id"),
            shared_memory=chunk.numbers("lds_block_size", "group_segment_size"),
            scratch_memory=chunk.numbers("scratch_size", "private_segment_size"),
        )

    def _add_copies(self, chunk: _RowChunk) -> None:
        """Add copies; the direction says whether each lies on the GPU that it goes to or that it comes from."""
        names = chunk.coded_texts("direction").map(lambda name: _COPY_PREFIX + name.removeprefix(_COPY_PREFIX))
        to_device = np.array([(name or "").endswith("_TO_DEVICE") for name in names.texts], np.bool_)[names.index]
        from_device = np.array(
            [(name or "").startswith(f"{_COPY_PREFIX}DEVICE_TO_") for name in names.texts], np.bool_
        )[names.index]
        target = self._labels.numbers(chunk.coded_texts("destination_agent_id"), to_device)
        source = self._labels.numbers(chunk.coded_texts("source_agent_id"), from_device & ~to_device)
        device = np.where(to_device, target, source)
        unknown = np.full(chunk.count, ABSENT, np.int64)
        self._recording.add_copies(self._device_work(chunk, names), device, device, unknown)

    def _add_calls(self, chunk: _RowChunk) -> None:
        domains, names = chunk.coded_texts("domain"), chunk.coded_texts("function")
        is_marker = np.array([(each or "").startswith(_MARKER_PREFIX) for each in domains.texts], np.bool_)[
            domains.index
        ]
        messages = CodedTexts([*names.texts, None], np.where(is_marker, names.index, len(names.texts)))
        self._recording.add_calls(
            domains,
            names,
            messages,
            chunk.numbers("process_id"),
            chunk.numbers("thread_id"),
            chunk.numbers("start_timestamp"),
            chunk.numbers("end_timestamp"),
            self._correlation_ids(chunk),
        )

    def _device_work(self, chunk: _RowChunk, names: CodedTexts) -> WorkRecords:
        return WorkRecords(
            names,
            chunk.numbers("start_timestamp"),
            chunk.numbers("end_timestamp"),
            self._correlation_ids(chunk),
            chunk.numbers("stream_id"),
            chunk.numbers("queue_id"),
        )

    def _correlation_ids(self, chunk: _RowChunk) -> Int64:
        """Return ids that are unique among the processes, which only a `Guid` distinguishes in one table."""
        process = chunk.coded_texts("guid")
        process_index = np.array(
            [self._processes.setdefault(each or "", len(self._processes)) for each in process.texts], np.int64
        )
        local = chunk.numbers("correlation_id")
        return np.where(local > 0, local + process_index[process.index] * PROCESS_SHIFT, ABSENT)


class _RowChunk:
    """`count` rows of a table, as texts by column."""

    def __init__(self, columns: dict[str, Sequence[str]], count: int) -> None:
        self._columns, self.count = columns, count

    def texts(self, name: str) -> Sequence[str]:
        """Return the texts of a column; empty ones if this version lacks the column."""
        return self._columns.get(name) or [""] * self.count

    def numbers(self, *names: str) -> Int64:
        """Return the first of these columns that exists (int64[k]), ABSENT where a cell isn't a 63-bit integer."""
        column = next((self._columns[name] for name in names if name in self._columns), None)
        if column is None:
            return np.full(self.count, ABSENT, np.int64)
        return np.array([_parse_integer(text) for text in column], np.int64)

    def coded_texts(self, name: str) -> CodedTexts:
        """Return a column of texts, None for empty ones."""
        codes: dict[str, int] = {}
        index = np.array([codes.setdefault(text, len(codes)) for text in self.texts(name)], np.int64)
        return CodedTexts([text or None for text in codes], index)


def _parse_integer(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else int(ABSENT)
