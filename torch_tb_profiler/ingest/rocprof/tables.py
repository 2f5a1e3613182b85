"""Tables of rocprofv3 (`--output-format csv`, the default before ROCm 7), those of one recording in a row.

"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API","hipLaunchKernel",717,717,3,1520113899684965,1520113901491622
"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",...
"KERNEL_DISPATCH","Agent 1",1,0,717,1,15,"transpose(float*, int)",3,1520113899690000,1520113899700000,...
"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id",...
"Node_Id","Logical_Node_Id","Agent_Type",...

Versions differ in their columns, which are found by name. What `rocpd2csv` writes of several processes has a
`Guid` of each. Bytes of copies are not in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.rocprof.counters import cells_of
from torch_tb_profiler.ingest.rocprof.finish import finish
from torch_tb_profiler.ingest.rocprof.labels import Labels
from torch_tb_profiler.ingest.rocprof.records import PROCESS_SHIFT, Recording, Work
from torch_tb_profiler.ingest.rocprof.sniff import header_of
from torch_tb_profiler.ingest.runtime import Progress, Report, without_gc
from torch_tb_profiler.ingest.slices import CodedTexts
from torch_tb_profiler.ingest.source import Source, read_lines
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

ROWS = 1 << 16
"""Rows that are held as texts at a time."""

HELD_BYTES = 16 << 20
"""Of the lines of these rows, however long they are."""

_AXES = ("x", "y", "z")
_AGENT = (
    "node_id",
    "logical_node_id",
    "agent_type",
    "cu_count",
    "wave_front_size",
    "name",
    "product_name",
    "model_name",
)
_MARKERS = "MARKER_CORE"
_COPIES = "MEMORY_COPY_"


def read_tables(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Raises TraceError if there is no row of work or calls, TooLargeError if there is more than `limit`."""
    health, recording = HealthLog(), Recording()
    source = Source(stream, size, report, health, limit)
    tables = _Tables(recording, health)
    with without_gc():
        for offset, line in read_lines(source, health):
            tables.add(line, offset)
            source.events = recording.columns.length
        tables.finish()
        arranging = partial(report, Progress("arranging", size, size, recording.columns.length))
        arranging()
        return finish(recording, health, {}, arranging)


class _Tables:
    """Takes one line after the other; a header begins another table."""

    def __init__(self, recording: Recording, health: HealthLog) -> None:
        self._recording, self._health = recording, health
        self._names: list[str] = []
        self._handle: Callable[[_Piece], None] | None = None
        self._rows: list[list[str]] = []
        self._held = 0
        self._processes: dict[str, int] = {}
        self._labels = Labels()

    def add(self, line: bytes, offset: int) -> None:
        """Append a row; one that cannot be read is noted and left out."""
        if names := header_of(line):
            self._flush()
            self._names, self._handle = names, self._handler(set(names))
            return
        cells = cells_of(line)
        if self._handle is None or len(cells) != len(self._names):
            self._health.add(
                "line_unreadable", "warning", "a line is no row of its table and is left out", offset=offset
            )
        else:
            self._rows.append(cells)
            self._held += len(line)
            if len(self._rows) >= ROWS or self._held >= HELD_BYTES:
                self._flush()

    def finish(self) -> None:
        """All lines are added. Raises TraceError if none was a row of work or calls."""
        self._flush()
        if self._recording.columns.length == 0:
            raise TraceError(
                "the table holds no calls, kernels or copies",
                hint="what is traced is chosen by options of rocprofv3, such as `--hip-trace --kernel-trace`",
            )
        self._recording.devices.update((each["id"], each) for each in self._labels.devices())

    def _handler(self, names: set[str]) -> Callable[[_Piece], None]:
        if "kernel_name" in names:
            return self._add_kernels
        if "direction" in names:
            return self._add_copies
        return self._add_calls if "function" in names else self._add_agents

    def _flush(self) -> None:
        rows, self._rows, self._held = self._rows, [], 0
        if rows and self._handle is not None:
            self._handle(_Piece(dict(zip(self._names, zip(*rows, strict=True), strict=True)), len(rows)))

    def _add_agents(self, piece: _Piece) -> None:
        for row in zip(*(piece.texts(name) for name in _AGENT), strict=True):
            self._labels.describe(dict(zip(_AGENT, row, strict=True)))

    def _add_kernels(self, piece: _Piece) -> None:
        device = self._labels.numbers(piece.coded("agent_id"))
        grid, block = ([piece.numbers(f"{what}_size_{axis}") for axis in _AXES] for what in ("grid", "workgroup"))
        self._recording.dispatches(
            self._work(piece, piece.coded("kernel_name")),
            device,
            grid,
            block,
            dispatch_id=piece.numbers("dispatch_id"),
            shared_memory=piece.numbers("lds_block_size", "group_segment_size"),
            scratch_memory=piece.numbers("scratch_size", "private_segment_size"),
        )

    def _add_copies(self, piece: _Piece) -> None:
        """A copy lies on the GPU that it goes to, else on the one that it comes from: so its direction says."""
        names = piece.coded("direction").map(lambda name: _COPIES + name.removeprefix(_COPIES))
        inward = np.array([(name or "").endswith("_TO_DEVICE") for name in names.texts], np.bool_)[names.of]
        outward = np.array([(name or "").startswith(f"{_COPIES}DEVICE_TO_") for name in names.texts], np.bool_)[
            names.of
        ]
        target = self._labels.numbers(piece.coded("destination_agent_id"), inward)
        source = self._labels.numbers(piece.coded("source_agent_id"), outward & ~inward)
        device = np.where(inward, target, source)
        unknown = np.full(piece.count, ABSENT, np.int64)
        self._recording.copies(self._work(piece, names), device, device, unknown)

    def _add_calls(self, piece: _Piece) -> None:
        domains, names = piece.coded("domain"), piece.coded("function")
        is_marker = np.array([(each or "").startswith(_MARKERS) for each in domains.texts], np.bool_)[domains.of]
        messages = CodedTexts([*names.texts, None], np.where(is_marker, names.of, len(names.texts)))
        self._recording.calls(
            domains,
            names,
            messages,
            piece.numbers("process_id"),
            piece.numbers("thread_id"),
            piece.numbers("start_timestamp"),
            piece.numbers("end_timestamp"),
            self._correlation(piece),
        )

    def _work(self, piece: _Piece, names: CodedTexts) -> Work:
        return Work(
            names,
            piece.numbers("start_timestamp"),
            piece.numbers("end_timestamp"),
            self._correlation(piece),
            piece.numbers("stream_id"),
            piece.numbers("queue_id"),
        )

    def _correlation(self, piece: _Piece) -> Int64:
        """Ids count from 1 in each process; only a `Guid` tells processes of one table apart."""
        process = piece.coded("guid")
        nth = np.array(
            [self._processes.setdefault(each or "", len(self._processes)) for each in process.texts], np.int64
        )
        own = piece.numbers("correlation_id")
        return np.where(own > 0, own + nth[process.of] * PROCESS_SHIFT, ABSENT)


class _Piece:
    """`count` rows: texts by column."""

    def __init__(self, columns: dict[str, Sequence[str]], count: int) -> None:
        self._columns, self.count = columns, count

    def texts(self, name: str) -> Sequence[str]:
        """Empty texts of a column that this version has not."""
        return self._columns.get(name) or [""] * self.count

    def numbers(self, *names: str) -> Int64:
        """int64[k] of the first column that is there, ABSENT where a cell is no whole number of 63 bits."""
        column = next((self._columns[name] for name in names if name in self._columns), None)
        if column is None:
            return np.full(self.count, ABSENT, np.int64)
        return np.array([_whole(text) for text in column], np.int64)

    def coded(self, name: str) -> CodedTexts:
        """Empty texts are none."""
        codes: dict[str, int] = {}
        of = np.array([codes.setdefault(text, len(codes)) for text in self.texts(name)], np.int64)
        return CodedTexts([text or None for text in codes], of)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else int(ABSENT)
